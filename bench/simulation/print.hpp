#pragma once
/// Floors, the table, its JSON and the comparison with an earlier one.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>

#include "../write_file.hpp"
#include "rows.hpp"

namespace bench {

struct floor_check {
    std::string what;
    double measured = 0, wanted = 0;
    bool at_most = false; // else at least
    bool is_floor = true; // else for comparison only: what the same chain does without abort
    [[nodiscard]] bool met() const { return at_most ? measured <= wanted : measured >= wanted; }
};

// How many times FlexFlow's proposals per second a row of its own proposals must reach, with abort.
inline std::optional<double> wanted_over_flexflow(row const& r) {
    if (r.space != "flexflow" || r.threads != 1) return {};
    if (r.is(as_flexflow) && r.devices == 64) return 100;
    if (r.is(as_flexflow) && r.devices == 4) return 20;
    if (r.is(as_streams) && r.devices == 64) return 1000;
    return {};
}

inline std::string title(row const& r) {
    return fmt::format("{} {} {}+{} {}{}", r.workload, r.devices, r.movement, r.discipline, r.space, r.abort ? "" : " no abort");
}

// Of the largest GPT row over the smallest.
inline void check_growth(std::vector<row>& rows, std::vector<floor_check>& out) {
    for (auto& large : rows) {
        if (large.space != "hybrid" || large.devices != 1024 || !large.delta_us_median) continue;
        auto const small = std::find_if(rows.begin(), rows.end(), [&](row const& r) {
            return r.space == large.space && r.devices == 64 && r.movement == large.movement && r.discipline == large.discipline &&
                   r.abort == large.abort && r.threads == large.threads && r.delta_us_median;
        });
        if (small == rows.end()) continue;
        auto const check = [&](char const* what, double now, double before) {
            return floor_check{fmt::format("{}: {} proposal, 1024 over 64 devices", title(large), what), now / before, 2, true, large.abort};
        };
        auto const middle = check("median", *large.delta_us_median, *small->delta_us_median);
        auto const mean = check("mean", *large.delta_us_mean, *small->delta_us_mean);
        if (large.abort) large.floor_met = middle.met() && mean.met();
        out.push_back(middle);
        out.push_back(mean);
    }
}

// Checks all rows and notes in each whether its floors are met.
inline std::vector<floor_check> check_floors(std::vector<row>& rows) {
    std::vector<floor_check> out;
    for (auto& r : rows) {
        std::optional<floor_check> check;
        if (auto const times = wanted_over_flexflow(r); times && r.flexflow_proposals_per_s && r.proposals_per_s)
            check = {title(r) + ": proposals per second", *r.proposals_per_s, *times * *r.flexflow_proposals_per_s, false, r.abort};
        if (r.space == "random" && r.tasks >= large_graph) check = {title(r) + ": full pass, ns per task", r.full_ns_per_task, 15, true, true};
        if (!check) continue;
        if (check->is_floor) r.floor_met = check->met();
        out.push_back(*check);
    }
    check_growth(rows, out);
    return out;
}

inline std::string shown(std::optional<double> const& value, int decimals) { return value ? fmt::format("{:.{}f}", *value, decimals) : "-"; }

inline void print_head() {
    fmt::print("{:<13}{:>5}  {:<20}{:<9}{:<6}{:>9}{:>8}{:>10}{:>9}{:>10}{:>10}{:>9}{:>10}{:>10}{:>9}\n", "workload", "dev", "movement+discipline",
               "space", "abort", "tasks", "full", "rebuild", "patch", "delta", "delta", "delta", "proposals", "times", "accepted");
    fmt::print("{:<13}{:>5}  {:<20}{:<9}{:<6}{:>9}{:>8}{:>10}{:>9}{:>10}{:>10}{:>9}{:>10}{:>10}{:>9}\n", "", "", "", "", "", "", "ns/task", "us",
               "us", "median us", "p90 us", "/ full", "per s", "FlexFlow", "%");
}

inline void print(row const& r) {
    std::optional<double> accepted;
    if (r.evaluations && *r.evaluations > 0) accepted = 100 * static_cast<double>(*r.accepted) / static_cast<double>(*r.evaluations);
    fmt::print("{:<13}{:>5}  {:<20}{:<9}{:<6}{:>9.0f}{:>8.1f}{:>10.1f}{:>9}{:>10}{:>10}{:>9}{:>10}{:>10}{:>9}\n", r.workload, r.devices,
               r.movement + '+' + r.discipline, r.space, r.space == "random" ? "-" : (r.abort ? "on" : "off"), r.tasks, r.full_ns_per_task,
               r.rebuild_us, shown(r.patch_us, 1), shown(r.delta_us_median, 1), shown(r.delta_us_p90, 1), shown(r.delta_over_full_median, 4),
               shown(r.proposals_per_s, r.proposals_per_s < 100 ? 1 : 0), shown(r.over_flexflow, 1), shown(accepted, 1));
    std::fflush(stdout);
}

// Answers how many floors are missed.
inline std::size_t print(std::vector<floor_check> const& checks) {
    auto const missed = std::ranges::count_if(checks, [](auto const& c) { return c.is_floor && !c.met(); });
    auto const floors = std::ranges::count_if(checks, &floor_check::is_floor);
    if (floors == 0) {
        fmt::print("\nNo floor is about these rows\n");
        return 0;
    }
    fmt::print("\nFloors (with abort; in brackets the same chains without)\n");
    for (auto const& c : checks) {
        auto const* verdict = c.is_floor ? (c.met() ? "met" : "MISSED") : (c.met() ? "(met)" : "(missed)");
        fmt::print("  {:<9}{:<90}{:>12.1f}  {} {:.0f}\n", verdict, c.what, c.measured, c.at_most ? "at most" : "at least", c.wanted);
    }
    fmt::print("{} of {} floors missed\n", missed, floors);
    return static_cast<std::size_t>(missed);
}

inline std::string key_of(nlohmann::json const& r) {
    std::string key;
    for (auto const* name : {"workload", "devices", "movement", "discipline", "space", "abort", "threads"}) key += r.at(name).dump() + ' ';
    return key;
}

// How many times as fast as before a row is; empty where either lacks the figure. Of times less is better, of rates more.
inline std::optional<double> gain(nlohmann::json const& before, nlohmann::json const& now, char const* name, bool is_time) {
    auto const has = [&](nlohmann::json const& r) { return r.contains(name) && r.at(name).is_number() && r.at(name).get<double>() > 0; };
    if (!has(before) || !has(now)) return {};
    auto const ratio = now.at(name).get<double>() / before.at(name).get<double>();
    return is_time ? 1 / ratio : ratio;
}

// Prints how much faster `now` is than `before`, row by row, and the geometric mean.
inline void compare(nlohmann::json const& before, std::vector<row> const& now) {
    std::map<std::string, nlohmann::json> earlier;
    for (auto const& r : before) earlier[key_of(r)] = r;
    fmt::print("\nTimes as fast as before\n  {:<70}{:>14}{:>14}\n", "", "proposals/s", "full pass");
    std::array<std::vector<double>, 2> logarithms;
    for (auto const& r : now) {
        auto const json = json_of(r);
        auto const at = earlier.find(key_of(json));
        if (at == earlier.end()) continue;
        std::array const gains{gain(at->second, json, "proposals_per_s", false), gain(at->second, json, "full_ns_per_task", true)};
        for (std::size_t i = 0; i < gains.size(); ++i)
            if (gains[i]) logarithms[i].push_back(std::log(*gains[i]));
        fmt::print("  {:<70}{:>14}{:>14}\n", title(r), shown(gains[0], 2), shown(gains[1], 2));
    }
    auto const mean = [](std::vector<double> const& v) -> std::optional<double> {
        if (v.empty()) return {};
        return std::exp(std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size()));
    };
    fmt::print("  {:<70}{:>14}{:>14}\n", "geometric mean", shown(mean(logarithms[0]), 2), shown(mean(logarithms[1]), 2));
}

inline void write(std::vector<row> const& rows, std::string const& path) {
    auto list = nlohmann::json::array();
    for (auto const& r : rows) list.push_back(json_of(r));
    write_rows(path, list);
}

} // namespace bench
