#pragma once
/// Checks documents against the schemas of docs/schemas: the part of JSON Schema (draft 2020-12) that these use.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>

#include "support/project.hpp"

namespace support {

/// A schema of docs/schemas. A keyword that the checker does not know is an error, so that no schema says more than is checked.
class json_schema {
  public:
    /// "topology" for docs/schemas/topology.schema.json.
    explicit json_schema(std::string const& format) {
        auto const path = project_file(std::filesystem::path("docs") / "schemas" / (format + ".schema.json"));
        std::ifstream in(path);
        if (!in) throw std::runtime_error(path.string() + " cannot be opened");
        root_ = nlohmann::json::parse(in);
    }

    /// Why `document` does not fit; empty where it does.
    [[nodiscard]] std::string complaint(nlohmann::json const& document) const { return check(root_, document, "$"); }
    [[nodiscard]] std::string complaint(std::string const& document) const { return complaint(nlohmann::json::parse(document)); }

    /// The names of all members that the schema declares, anywhere in it.
    [[nodiscard]] std::set<std::string> members() const {
        std::set<std::string> out;
        collect(root_, out);
        return out;
    }

  private:
    using json = nlohmann::json;

    static void collect(json const& schema, std::set<std::string>& out) {
        for (auto const& [keyword, rule] : schema.items()) {
            if (keyword == "properties")
                for (auto const& [name, inner] : rule.items()) out.insert(name);
            if (rule.is_structured()) collect(rule, out);
        }
    }

    [[nodiscard]] static bool is(std::string const& type, json const& v) {
        if (type == "object") return v.is_object();
        if (type == "array") return v.is_array();
        if (type == "string") return v.is_string();
        if (type == "boolean") return v.is_boolean();
        if (type == "number") return v.is_number();
        if (type == "integer") return v.is_number_integer() || (v.is_number_float() && std::floor(v.get<double>()) == v.get<double>());
        throw std::runtime_error("schema: unknown type " + type);
    }

    /// Against what a reference names: "#/$defs/kind", "graph.schema.json", "run.schema.json#/properties/space".
    [[nodiscard]] std::string check_as(std::string const& reference, json const& v, std::string const& path) const {
        auto const hash = reference.find('#');
        auto const file = reference.substr(0, hash), at = hash == reference.npos ? std::string() : reference.substr(hash + 1);
        if (file.empty()) return check(root_.at(json::json_pointer(at)), v, path);
        json_schema const other(file.substr(0, file.find('.')));
        return other.check(other.root_.at(json::json_pointer(at)), v, path);
    }

    [[nodiscard]] std::string check(json const& schema, json const& v, std::string const& path) const {
        using parsearch::text;
        if (schema.is_boolean()) return schema.get<bool>() ? "" : path + ": must not be there";
        for (auto const& [keyword, rule] : schema.items()) {
            std::string wrong;
            auto const fail = [&, &keyword = keyword](bool bad) {
                if (bad && wrong.empty()) wrong = path + ": " + keyword;
            };
            auto const first = [&](std::string complaint) {
                if (wrong.empty()) wrong = std::move(complaint);
            };
            auto const matches = [&, &rule = rule] {
                std::size_t n = 0;
                for (auto const& option : rule) n += check(option, v, path).empty();
                return n;
            };
            if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "$defs") continue;
            if (keyword == "$ref") first(check_as(rule.get<std::string>(), v, path));
            else if (keyword == "type") fail(!is(rule, v));
            else if (keyword == "const") fail(v != rule);
            else if (keyword == "enum") fail(std::find(rule.begin(), rule.end(), v) == rule.end());
            else if (keyword == "not") fail(check(rule, v, path).empty());
            else if (keyword == "oneOf") fail(matches() != 1);
            else if (keyword == "anyOf") fail(matches() < 1);
            else if (keyword == "minimum") fail(v.is_number() && v < rule);
            else if (keyword == "maximum") fail(v.is_number() && v > rule);
            else if (keyword == "exclusiveMinimum") fail(v.is_number() && v <= rule);
            else if (keyword == "exclusiveMaximum") fail(v.is_number() && v >= rule);
            else if (keyword == "minLength") fail(v.is_string() && v.get<std::string>().size() < rule);
            else if (keyword == "pattern") fail(v.is_string() && !std::regex_search(v.get<std::string>(), std::regex(rule.get<std::string>())));
            else if (keyword == "minItems") fail(v.is_array() && v.size() < rule);
            else if (keyword == "maxItems") fail(v.is_array() && v.size() > rule);
            else if (keyword == "required") {
                for (auto const& name : rule) fail(v.is_object() && !v.contains(name));
            } else if (keyword == "properties") {
                for (auto const& [name, inner] : rule.items())
                    if (v.is_object() && v.contains(name)) first(check(inner, v.at(name), text(path, '.', name)));
            } else if (keyword == "propertyNames") {
                if (v.is_object())
                    for (auto const& [name, inner] : v.items()) first(check(rule, json(name), text(path, '.', name)));
            } else if (keyword == "additionalProperties") {
                if (v.is_object())
                    for (auto const& [name, inner] : v.items())
                        if (!schema.contains("properties") || !schema.at("properties").contains(name))
                            first(check(rule, inner, text(path, '.', name)));
            } else if (keyword == "prefixItems") {
                for (std::size_t i = 0; v.is_array() && i < v.size() && i < rule.size(); ++i) first(check(rule[i], v[i], text(path, '[', i, ']')));
            } else if (keyword == "items") {
                auto const prefix = schema.contains("prefixItems") ? schema.at("prefixItems").size() : 0;
                for (std::size_t i = prefix; v.is_array() && i < v.size(); ++i) first(check(rule, v[i], text(path, '[', i, ']')));
            } else {
                throw std::runtime_error("schema: unknown keyword " + keyword);
            }
            if (!wrong.empty()) return wrong;
        }
        return {};
    }

    json root_;
};

/// The first example in docs/formats.md of a document of `format`.
inline std::string documented_example(std::string const& format) {
    auto const path = project_file("docs/formats.md");
    std::ifstream in(path);
    if (!in) throw std::runtime_error(path.string() + " cannot be opened");
    std::string const page(std::istreambuf_iterator<char>(in), {}), fence = "```";
    for (auto at = page.find(fence + "json"); at != page.npos; at = page.find(fence + "json", at + 1)) {
        auto const first = page.find('\n', at) + 1, last = page.find(fence, first);
        auto const example = page.substr(first, last - first);
        if (example.find("\"" + format + "\"") != example.npos) return example;
    }
    throw std::runtime_error("docs/formats.md has no example of " + format);
}

/// The names of all members that a reader knows: what it says when it meets another one in any of the objects of `document`. `refused` answers
/// what it says of a text.
template <class F> std::set<std::string> members_known(nlohmann::json document, F const& refused) {
    std::set<std::string> out;
    std::vector<nlohmann::json*> all{&document};
    for (std::size_t i = 0; i < all.size(); ++i)
        for (auto& inner : *all[i])
            if (inner.is_structured()) all.push_back(&inner);
    for (auto* const object : all) {
        if (!object->is_object()) continue;
        (*object)["no such member"] = 0;
        std::string const said = refused(document.dump()), before = "unknown member: known are ";
        object->erase("no such member");
        if (auto const at = said.find(before); at != said.npos) {
            std::istringstream names(said.substr(at + before.size()));
            for (std::string name; names >> name;) out.insert(name.ends_with(',') ? name.substr(0, name.size() - 1) : name);
        }
    }
    return out;
}

} // namespace support
