#pragma once
// All that was measured, its JSON and its tables.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/core/version.hpp>

#include "measure.hpp"

namespace bench {

struct comparison {
    effort much;
    std::vector<nlohmann::json> rows{}, floors{};
};

inline nlohmann::json json_of(comparison const& made) {
    auto published = nlohmann::json::array();
    for (auto const& p : published_times())
        published.push_back({{"model", p.model}, {"degree", p.degree}, {"least_ms", p.least_ms}, {"most_ms", p.most_ms}});
    return {{"format", "parsearch.fabric_comparison"},
            {"version", 1},
            {"library", ps::version},
            {"evaluations", made.much.evaluations},
            {"rounds", made.much.rounds},
            {"seed", made.much.seed},
            {"published", std::move(published)},
            {"published_speedup", published_speedup},
            {"rows", made.rows},
            {"floors", made.floors}};
}

// Milliseconds, or that the strategy does not fit the memory.
inline std::string shown(nlohmann::json const& time) { return time.is_null() ? "none fits" : fmt::format("{:.2f}", time.get<double>()); }

inline void print_head() {
    fmt::print("{:<12}{:>7}{:>3}{:>6}  {:<16}{:>7} |{:>11}  {:<20}{:>11}{:>11} |{:>6}{:>5}{:>6}{:>9} |{:>7}{:>7}\n", "model", "servers", "d", "Gb/s",
               "network", "link", "data ms", "expert", "expert ms", "found ms", "hops", "most", "tax", "k$", "priced", "s");
}
inline void print(nlohmann::json const& r) {
    auto const of = [&](char const* key) { return r[key].get<double>(); };
    auto const word = [&](char const* key) { return r[key].is_null() ? std::string("-") : r[key].get<std::string>(); };
    auto const price = r["price"].is_null() ? std::string("-") : fmt::format("{:.1f}", of("price") / 1e3);
    auto const fits = r["data_parallel_fits"].get<bool>() ? ' ' : '*';
    fmt::print("{:<12}{:>7}{:>3}{:>6g}  {:<16}{:>7.4g} |{:>10.2f}{}  {:<20}{:>11}{:>11} |{:>6.2f}{:>5}{:>6.2f}{:>9} |{:>7}{:>7.2f}\n", word("model"),
               r["servers"].get<int>(), r["degree"].get<int>(), of("gbps"), word("wiring"), of("link_gbps"), of("data_parallel_ms"), fits,
               word("expert"), shown(r["expert_ms"]), shown(r["iteration_ms"]), of("mean_hops"), r["max_hops"].get<int>(), of("bandwidth_tax"), price,
               r["evaluations"].get<std::uint64_t>(), of("seconds"));
    std::fflush(stdout);
}

// How many times as fast as each other network a found fabric is.
inline void print_speedups(std::vector<nlohmann::json> const& rows) {
    fmt::print("* does not fit the memory\n\nA found fabric is so many times as fast as\n{:<12}{:>7}{:>3}{:>6} |", "model", "servers", "d", "Gb/s");
    for (auto const wiring : wirings)
        if (wiring != "found") fmt::print("{:>16}", wiring);
    fmt::print("\n");
    for (std::size_t n = 0; n < rows.size(); n += wirings.size()) { // the found one comes first
        auto const& found = rows[n];
        fmt::print("{:<12}{:>7}{:>3}{:>6g} |", found["model"].get<std::string>(), found["servers"].get<int>(), found["degree"].get<int>(),
                   found["gbps"].get<double>());
        for (std::size_t i = 1; i < wirings.size(); ++i) {
            auto const &mine = found["iteration_ms"], &other = rows[n + i]["iteration_ms"];
            fmt::print("{:>16}",
                       mine.is_null() || other.is_null() ? std::string("-") : fmt::format("{:.2f}", other.get<double>() / mine.get<double>()));
        }
        fmt::print("\n");
    }
}

} // namespace bench
