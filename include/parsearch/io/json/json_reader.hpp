#pragma once
/// Strict reading of JSON documents: what the library's formats share. Writing: io/json/json_writer.hpp.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <istream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/text/text.hpp>

namespace parsearch::io {

/// What a document may hold. In memory a document takes at most about 250 bytes per value beside its text.
struct json_limits {
    std::size_t bytes = std::size_t{64} << 20;
    std::size_t values = std::size_t{1} << 22; ///< numbers, strings, booleans, nulls, arrays, objects
    std::size_t depth = 32;                    ///< of arrays and objects in each other
};

/// The names of members that an object may have.
using member_names = std::vector<std::string_view>;

namespace detail {

/// What the parser says of a syntax error, without its prefix: "unexpected end of input; expected ']'".
[[nodiscard]] std::string reason_of(nlohmann::json::exception const& e);

/// Builds the value of a text from what the parser meets in it. (The parser's own callbacks do not: for each object that ends they go through
/// all that its parent holds.) The functions are those of nlohmann's SAX interface.
class strict_builder {
  public:
    strict_builder(std::string_view text, std::string_view document, json_limits const& limits) : text_(text), document_(document), limits_(limits) {}

    /// Throws `invalid_input` naming document, line, column and rule.
    [[nodiscard]] nlohmann::json build();

    bool null() { return put(nullptr); }
    bool boolean(bool v) { return put(v); }
    bool number_integer(std::int64_t v) { return put(v); }
    bool number_unsigned(std::uint64_t v) { return put(v); }
    bool number_float(double v, std::string const&) { return put(v); }
    bool string(std::string& v) { return put(std::move(v)); }
    bool binary(nlohmann::json::binary_t&) { return false; } // no JSON text has any
    bool start_object(std::size_t) { return open(nlohmann::json::object()); }
    bool start_array(std::size_t) { return open(nlohmann::json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& name);
    bool parse_error(std::size_t, std::string const&, nlohmann::json::exception const& e) {
        constexpr int number_overflow = 406;
        if (e.id == number_overflow) refuse("a number is too large: must fit a double");
        refuse("is no JSON: ", reason_of(e));
    }

  private:
    template <class... Parts> [[noreturn]] void refuse(Parts const&... parts) const {
        throw invalid_input(position_of(text_, taken_ == 0 ? 0 : taken_ - 1).in(document_), ": ", parts...);
    }
    bool put(nlohmann::json v);
    bool open(nlohmann::json v);
    bool close() {
        open_.pop_back();
        return true;
    }

    std::string_view text_, document_;
    json_limits limits_;
    std::size_t taken_ = 0, values_ = 0;
    nlohmann::json root_;
    nlohmann::json *member_ = nullptr, *last_ = nullptr;
    std::vector<nlohmann::json*> open_; ///< what is open, each in the one before; none moves before it is closed
};

/// "a, b, c".
[[nodiscard]] inline std::string joined(member_names const& names) {
    std::string out;
    for (auto const name : names) out += text(out.empty() ? "" : ", ", name);
    return out;
}

struct named_json {
    std::string name;
    nlohmann::json value;
};
} // namespace detail

class json_object;

/// A value of a document that knows where it stands. Refers to its document. Every function throws `invalid_input` with place, value
/// and rule where the value is not what is asked for: "cluster.json: links[3].latency_ps is -1: must be an integer from 0 to 10".
class json_value {
  public:
    json_value(detail::named_json const& document, nlohmann::json const& value, std::string path)
        : document_(&document), value_(&value), path_(std::move(path)) {}

    /// "cluster.json: links[3].latency_ps".
    [[nodiscard]] std::string place() const { return path_.empty() ? document_->name : text(document_->name, ": ", path_); }
    /// "links[3].latency_ps"; empty: the document.
    [[nodiscard]] std::string const& path() const noexcept { return path_; }

    /// Throws: place, value, and the rule that it breaks ("must be below 8").
    template <class... Rule> [[noreturn]] void refuse(Rule const&... rule) const {
        throw invalid_input(place(), path_.empty() ? ": the document is " : " is ", summary(), ": ", rule...);
    }

    /// An integer in [least, most]. A number with a fraction or an exponent is none.
    template <std::integral T> [[nodiscard]] T integer(T least = std::numeric_limits<T>::min(), T most = std::numeric_limits<T>::max()) const {
        auto const fits = [&](auto n) { return !std::cmp_less(n, least) && !std::cmp_greater(n, most); };
        if (auto const* const n = value_->get_ptr<std::uint64_t const*>(); n && fits(*n)) return static_cast<T>(*n);
        if (auto const* const n = value_->get_ptr<std::int64_t const*>(); n && !value_->is_number_unsigned() && fits(*n)) return static_cast<T>(*n);
        refuse("must be an integer from ", least, " to ", most);
    }
    /// A finite number of at least `least`.
    [[nodiscard]] double number(double least = std::numeric_limits<double>::lowest()) const;
    /// A finite number above 0.
    [[nodiscard]] double positive() const {
        if (value_->is_number())
            if (auto const n = value_->get<double>(); n > 0) return n;
        refuse("must be a number above 0");
    }
    [[nodiscard]] bool boolean() const {
        if (!value_->is_boolean()) refuse("must be true or false");
        return value_->get<bool>();
    }
    [[nodiscard]] bool is_string() const noexcept { return value_->is_string(); }
    [[nodiscard]] bool is_null() const noexcept { return value_->is_null(); }
    [[nodiscard]] std::string const& string() const {
        if (!value_->is_string()) refuse("must be a string");
        return value_->get_ref<std::string const&>();
    }
    /// The position of a string among `names`.
    [[nodiscard]] std::size_t one_of(member_names const& names) const;

    /// The number of elements of an array.
    [[nodiscard]] std::size_t size() const {
        if (!value_->is_array()) refuse("must be an array");
        return value_->size();
    }
    /// Element `i` < size() of an array.
    [[nodiscard]] json_value operator[](std::size_t i) const { return {*document_, (*value_)[i], text(path_, '[', i, ']')}; }

    /// Calls `f(name, value)` for each member of an object, in the order of the names: for objects whose names are the writer's.
    template <class F> void for_members(F const& f) const {
        if (!value_->is_object()) refuse("must be an object");
        for (auto const& [name, member] : value_->items()) f(name, json_value{*document_, member, path_of(name)});
    }
    /// An object whose members must be among `known`.
    [[nodiscard]] json_object object(member_names known) const;
    /// An object that begins {"format": `format`, "version": v} with v from 1 to `newest`; `known` are the members beside these two.
    [[nodiscard]] json_object document(std::string_view format, std::uint64_t newest, member_names known) const;

    /// Whether it is a document that says that it is of `format`.
    [[nodiscard]] bool is_of(std::string_view format) const {
        return value_->is_object() && value_->contains("format") && value_->at("format") == format;
    }

    /// The value in few words: a scalar as it is written, "an array of 3", "an object".
    [[nodiscard]] std::string summary() const {
        if (value_->is_array()) return text("an array of ", value_->size());
        if (value_->is_object()) return "an object";
        return value_->is_string() ? in_quotes(value_->get_ref<std::string const&>()) : value_->dump();
    }

  private:
    friend class json_object;

    [[nodiscard]] std::string path_of(std::string_view member) const;

    detail::named_json const* document_;
    nlohmann::json const* value_;
    std::string path_;
};

namespace detail {
/// One of the first `Count` values of an enumeration, by its `name_of`.
template <class Enum, std::size_t Count> [[nodiscard]] Enum read_enum(json_value const& value) {
    member_names names;
    for (std::size_t i = 0; i < Count; ++i) names.push_back(name_of(static_cast<Enum>(i)));
    return static_cast<Enum>(value.one_of(names));
}
} // namespace detail

/// `f()`, with `value`'s place in front of what it refuses.
template <class F> decltype(auto) placed(json_value const& value, F const& f) {
    try {
        return f();
    } catch (invalid_input const& e) {
        throw invalid_input(value.place(), ": ", e.what());
    }
}

/// An object all of whose members are known by name.
class json_object {
  public:
    /// Throws `invalid_input` where `value` is no object or has a member that is not `known`.
    json_object(json_value value, member_names const& known);

    [[nodiscard]] json_value const& value() const noexcept { return value_; }
    [[nodiscard]] bool has(std::string_view member) const { return value_.value_->contains(member); }
    /// A member that must be there.
    [[nodiscard]] json_value at(std::string_view member) const {
        auto const found = value_.value_->find(member);
        if (found == value_.value_->end()) throw invalid_input(value_.place(), ": ", member, " is missing");
        return {*value_.document_, *found, value_.path_of(member)};
    }
    /// A member that may be there.
    [[nodiscard]] std::optional<json_value> find(std::string_view member) const {
        if (!has(member)) return std::nullopt;
        return at(member);
    }

  private:
    json_value value_;
};

inline json_object json_value::object(member_names known) const { return {*this, known}; }

/// A parsed document. Copies share it; values refer to it and must not outlive all copies.
class json_document {
  public:
    /// Reads all of `in`; `name` stands for it in messages. Throws `invalid_input` with line and column where it is no JSON, gives a member
    /// of an object twice, or passes a limit.
    explicit json_document(std::istream& in, std::string name = "JSON", json_limits const& limits = {}) {
        auto const text = read_text(in, name, limits.bytes);
        auto value = detail::strict_builder(text, name, limits).build();
        document_ = std::make_shared<detail::named_json const>(detail::named_json{std::move(name), std::move(value)});
    }
    /// The same from a file. Throws also where it cannot be opened.
    explicit json_document(std::string const& path, json_limits const& limits = {}) : json_document(opened(path), path, limits) {}

    [[nodiscard]] json_value root() const { return {*document_, document_->value, {}}; }

    /// Whether it says that it is of `format`.
    [[nodiscard]] bool is_of(std::string_view format) const { return root().is_of(format); }

    /// The root, checked to begin with `format` and a version: see `json_value::document`. Throws `invalid_input` on another format, an unknown
    /// version, an unknown member.
    [[nodiscard]] json_object object(std::string_view format, std::uint64_t newest, member_names known) const {
        return root().document(format, newest, std::move(known));
    }

  private:
    [[nodiscard]] static std::ifstream opened(std::string const& path) {
        std::ifstream in(path, std::ios::binary);
        if (!in) throw invalid_input(path, ": cannot be opened");
        return in;
    }
    json_document(std::ifstream in, std::string const& path, json_limits const& limits)
        : json_document(static_cast<std::istream&>(in), path, limits) {}

    std::shared_ptr<detail::named_json const> document_;
};

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/json/json_reader.ipp>
#endif
