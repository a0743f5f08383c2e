#pragma once
// Servers that are rewired within the iteration, by how long that takes.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <parsearch/fabric/cooptimize/phased_wiring.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>

#include "measure.hpp"

namespace bench {

// Of two strategies, the one found together with one wiring and the one found on an ideal switch, the faster on one wiring, and with each delay (in
// microseconds) the faster of those rewired.
inline nlohmann::json measure_rewiring(cell c, std::vector<double> const& delays, effort const& much) {
    c.wiring = "found";
    auto row = row_of(c);
    auto const problem = problem_of(c);
    auto const on = [&](char const* wiring) {
        auto other = c;
        other.wiring = wiring;
        std::mt19937_64 rng(much.seed);
        return on_fixed(problem, other, much, rng).best.strategy;
    };
    std::mt19937_64 rng(much.seed);
    auto const found = co_optimized(problem, c,
                                    {.evaluations = much.evaluations,
                                     .rounds = much.rounds,
                                     .starts = fabric::usual_starts(c.servers, c.degree, interface_of(c.gbps), much.seed)},
                                    searcher{}, rng, row);
    std::vector<std::pair<char const*, strategy>> const strategies{{"found", found.best.strategy}, {"ideal switch", on("ideal switch")}};
    auto const wired = found.best.wired.switches == 0 ? std::vector{found.best.wired} : std::vector<fabric::network>{};
    auto one = ps::cost_traits<ps::picoseconds>::infinity();
    row["rewired"] = nlohmann::json::array();
    for (auto const delay : delays) {
        nlohmann::json least;
        for (auto const& [name, s] : strategies) {
            stopwatch const watch;
            auto const made = fabric::rewire_within_iteration(problem, s, fabric::wirings{.degree = c.degree, .link = interface_of(c.gbps)},
                                                              {.reconfiguration_time = ps::picoseconds{std::llround(delay * 1e6)}, .wirings = wired});
            one = std::min(one, made.one_wiring_cost);
            if (!least.is_null() && least["iteration_ms"].get<double>() <= ms(made.cost)) continue;
            least = {{"delay_us", delay},
                     {"strategy", name},
                     {"iteration_ms", ms(made.cost)},
                     {"one_wiring_ms", ms(made.one_wiring_cost)},
                     {"rewirings", made.rewirings},
                     {"wirings", made.wirings},
                     {"seconds", watch.seconds()}};
        }
        row["rewired"].push_back(std::move(least));
    }
    row["iteration_ms"] = ms(one);
    return row;
}

inline void print_rewiring(nlohmann::json const& r) {
    fmt::print("{:<12}{:>7}{:>3}{:>6g}  one wiring {:.2f} ms;", r["model"].get<std::string>(), r["servers"].get<int>(), r["degree"].get<int>(),
               r["gbps"].get<double>(), r["iteration_ms"].get<double>());
    for (auto const& w : r["rewired"])
        fmt::print(" at {:g} us {:.2f} ms, {} rewirings ({}, {:.1f} s);", w["delay_us"].get<double>(), w["iteration_ms"].get<double>(),
                   w["rewirings"].get<int>(), w["strategy"].get<std::string>(), w["seconds"].get<double>());
    fmt::print("\n");
    std::fflush(stdout);
}

} // namespace bench
