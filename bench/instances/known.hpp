#pragma once
/// What is known of the instances: their best solutions, bounds, and who found and proved them. A folder with known.json and a solution NAME.json
/// each.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>

#include "../write_file.hpp"
#include "rows.hpp"

namespace bench {

struct known_instance {
    std::string group, hash, what; ///< of the instance's document; its description
    std::size_t devices = 0, decisions = 0;
    std::string textbook{};                                  ///< the cheapest solution that people try first
    std::int64_t textbook_ps = infinite, best_ps = infinite; ///< infinite: none is feasible
    std::string found_by{}, proved_by{};                     ///< of the best solution, of the bound
    std::int64_t bound_ps = 0;                               ///< no solution costs less; 0: none is known
    std::optional<std::int64_t> default_ps{};                ///< what the library's default search finds in ten seconds

    [[nodiscard]] bool proved() const noexcept { return bound_ps >= best_ps; }
};

/// By name.
using known_instances = std::map<std::string, known_instance>;

inline constexpr auto known_format = "parsearch.known_instances";

[[nodiscard]] inline std::string solution_file(std::string const& folder, std::string const& name) { return folder + '/' + name + ".json"; }

inline void write_known(std::string const& folder, known_instances const& known) {
    auto list = ps::io::ordered_json::array();
    for (auto const& [name, k] : known) {
        ps::io::ordered_json one{{"name", name},
                                 {"class", k.group},
                                 {"description", k.what},
                                 {"hash", k.hash},
                                 {"devices", k.devices},
                                 {"decisions", k.decisions},
                                 {"textbook", k.textbook},
                                 {"textbook_ps", cost_to_json(k.textbook_ps)},
                                 {"best_ps", cost_to_json(k.best_ps)},
                                 {"found_by", k.found_by},
                                 {"bound_ps", k.bound_ps},
                                 {"proved_by", k.proved_by}};
        if (k.default_ps) one["default_ps"] = cost_to_json(*k.default_ps);
        list.push_back(std::move(one));
    }
    write_file(folder + "/known.json", [&](auto& out) {
        ps::io::write_json(out, {{"format", known_format}, {"version", 1}, {"instances", std::move(list)}});
    });
}

/// Nothing where there is no such file. Throws `invalid_input` with place, value and rule.
[[nodiscard]] inline known_instances read_known(std::string const& folder) {
    known_instances out;
    auto const path = folder + "/known.json";
    if (!std::filesystem::exists(path)) return out;
    ps::io::json_document const document(path);
    auto const list = document.object(known_format, 1, {"instances"}).at("instances");
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto const o = list[i].object({"name", "class", "description", "hash", "devices", "decisions", "textbook", "textbook_ps", "best_ps",
                                       "found_by", "bound_ps", "proved_by", "default_ps"});
        known_instance k{.group = o.at("class").string(),
                         .hash = o.at("hash").string(),
                         .what = o.at("description").string(),
                         .devices = o.at("devices").integer<std::size_t>(),
                         .decisions = o.at("decisions").integer<std::size_t>(),
                         .textbook = o.at("textbook").string(),
                         .textbook_ps = cost_from_json(o.at("textbook_ps")),
                         .best_ps = cost_from_json(o.at("best_ps")),
                         .found_by = o.at("found_by").string(),
                         .proved_by = o.at("proved_by").string(),
                         .bound_ps = o.at("bound_ps").integer<std::int64_t>(0)};
        if (o.has("default_ps")) k.default_ps = cost_from_json(o.at("default_ps"));
        if (!out.emplace(o.at("name").string(), std::move(k)).second) list[i].refuse("is an instance that is there already");
    }
    return out;
}

} // namespace bench
