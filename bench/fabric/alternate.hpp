#pragma once
// A fabric and a strategy for each other, in turn (TopoOpt, section 4.1): search on a fabric, wire the next one for the traffic of what was found.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace bench {

struct found_pair {
    fabric::network network;
    strategy best;
    ps::picoseconds cost = ps::cost_traits<ps::picoseconds>::infinity();
};

inline fabric::network wired_for(fabric::demand const& traffic, cell const& c, nlohmann::json& round) {
    stopwatch const watch;
    auto const found = fabric::topology_finder(traffic, c.servers, c.degree);
    round["finder_seconds"] = watch.seconds();
    round["all_reduce_degree"] = found.all_reduce_degree;
    round["rings"] = std::count_if(found.rings.begin(), found.rings.end(), [](auto const& r) { return r.wired(); });
    return fabric::network_of(found, {{c.gbps * 1e9 / 8}, std::chrono::microseconds(1)});
}

// The first fabric is wired for an all-reduce by all servers. `search(problem, start)` finds a strategy.
template <class Search> found_pair alternate(cell const& c, std::uint64_t rounds, nlohmann::json& row, Search const& search) {
    found_pair best;
    row["rounds"] = nlohmann::json::array();
    row["evaluations"] = 0;
    fabric::demand traffic(c.servers);
    std::vector<std::uint32_t> all(c.servers);
    std::iota(all.begin(), all.end(), 0u);
    traffic.add_all_reduce(all, 1);
    std::optional<strategy> last;
    for (std::uint64_t r = 0; r < rounds; ++r) {
        stopwatch const watch;
        nlohmann::json round;
        auto network = wired_for(traffic, c, round);
        auto const cluster = cluster_of(network, c.wiring);
        auto const problem = problem_on(c, cluster);
        if (!last) last = add_starts(problem, row);
        round["before_ms"] = ms_or_null(problem.simulator()(*last)); // the strategy of the round before, on this fabric
        auto found = search(problem, std::move(*last));
        traffic = fabric::traffic_of(problem, found.best);
        last = found.best;
        round["iteration_ms"] = ms_or_null(found.cost);
        round["seconds"] = watch.seconds();
        row["evaluations"] = row["evaluations"].get<std::uint64_t>() + found.stats.evaluations;
        row["rounds"].push_back(std::move(round));
        if (!(found.cost < best.cost)) continue;
        row["chosen_round"] = r;
        best = {std::move(network), std::move(found.best), found.cost};
    }
    return best;
}

inline nlohmann::json measure_found(cell const& c, effort const& much) {
    stopwatch const watch;
    auto row = row_of(c);
    auto const found = alternate(c, much.rounds, row, [&](auto const& problem, strategy start) { return search_from(problem, std::move(start), much); });
    auto const cluster = cluster_of(found.network, c.wiring);
    row["iteration_ms"] = ms_or_null(found.cost);
    add_report(problem_on(c, cluster), found.network, cluster, found.best, row);
    row["seconds"] = watch.seconds();
    return row;
}

} // namespace bench
