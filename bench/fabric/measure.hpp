#pragma once
// One cell of the comparison: a strategy searched on its network, and where that is a fabric, network and strategy in turn.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/fabric/network_report.hpp>
#include <parsearch/fabric/topology_finder.hpp>
#include <parsearch/fabric/traffic.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>

#include "networks.hpp"

namespace bench {

using strategy = ps::space::flat_strategy;

// How much is searched.
struct effort {
    std::uint64_t evaluations = 0, rounds = 0, seed = 0;
};

inline double ms(ps::picoseconds t) { return ps::to_seconds(t) * 1e3; }
inline nlohmann::json ms_or_null(ps::picoseconds t) { return t == ps::cost_traits<ps::picoseconds>::infinity() ? nlohmann::json() : nlohmann::json(ms(t)); }

class stopwatch {
  public:
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Beyond so many devices the portfolio's dynamic programming takes minutes to price its candidates.
inline constexpr std::size_t most_for_portfolio = 128;

template <class P> auto search_from(P const& problem, strategy start, effort const& much) {
    std::mt19937_64 rng(much.seed);
    if (problem.topology().size() <= most_for_portfolio) return ps::search::portfolio(problem, std::move(start), rng, {.evaluations = much.evaluations});
    return ps::search::mcmc(problem, std::move(start), rng, {.evaluations = much.evaluations});
}

// Links with the share of the iteration for which each direction is busy, in tenths of a percent. Networks of more links are not drawn.
inline constexpr std::size_t most_links_drawn = 1200;
inline nlohmann::json drawing_of(fabric::network const& n, fabric::network_report const& r) {
    if (n.links.size() > most_links_drawn) return {};
    auto links = nlohmann::json::array();
    for (std::uint32_t l = 0; l < n.links.size(); ++l)
        links.push_back({n.links[l].a, n.links[l].b, std::lround(1000 * r.utilisation[2 * l]), std::lround(1000 * r.utilisation[2 * l + 1])});
    return {{"switches", n.switches}, {"links", std::move(links)}};
}

// What the best expert and data parallelism do on a problem; answers the expert's strategy. Data parallelism may take more memory than there is: its time is
// that of an iteration all the same.
template <class P> strategy add_starts(P const& problem, nlohmann::json& row) {
    auto simulator = problem.simulator();
    std::optional<std::pair<ps::picoseconds, strategy>> best;
    for (auto& start : problem.named_starts()) {
        auto const cost = simulator(start.strategy);
        if (start.name == "data_parallel") {
            row["data_parallel_ms"] = ms(simulator.simulate(start.strategy));
            row["data_parallel_fits"] = cost != ps::cost_traits<ps::picoseconds>::infinity();
        }
        if (best && !(cost < best->first)) continue;
        row["expert"] = start.name;
        row["expert_ms"] = ms_or_null(cost);
        best.emplace(cost, std::move(start.strategy));
    }
    return std::move(best->second);
}

// What an iteration of strategy `s` does to the network.
template <class P> void add_report(P const& problem, fabric::network const& n, ps::topology::cluster const& cluster, strategy const& s, nlohmann::json& row) {
    auto simulator = problem.simulator();
    auto const report = fabric::report_of(n, cluster, ps::sim::make_report(simulator, s));
    row["network"] = n.name;
    row["links"] = n.links.size();
    row["link_gbps"] = n.links.front().each.rate.bytes_per_second * 8e-9;
    auto const price = listed_price(n);
    row["price"] = price ? nlohmann::json(*price) : nlohmann::json();
    row["mean_hops"] = report.mean_pair_hops;
    row["max_hops"] = report.max_pair_hops;
    row["message_hops"] = report.mean_message_hops;
    row["bandwidth_tax"] = report.bandwidth_tax();
    row["drawing"] = drawing_of(n, report);
}

inline nlohmann::json row_of(cell const& c) {
    return {{"model", c.model.name}, {"batch", c.batch()}, {"servers", c.servers}, {"gpus", c.gpus()}, {"degree", c.degree}, {"gbps", c.gbps}, {"wiring", c.wiring}};
}

// A network that stays as it is.
inline nlohmann::json measure_fixed(cell const& c, effort const& much) {
    stopwatch const watch;
    auto row = row_of(c);
    auto const network = fixed_network(c, much.seed);
    auto const cluster = cluster_of(network, c.wiring);
    auto const problem = problem_on(c, cluster);
    auto const found = search_from(problem, add_starts(problem, row), much);
    row["iteration_ms"] = ms_or_null(found.cost);
    row["evaluations"] = found.stats.evaluations;
    add_report(problem, network, cluster, found.best, row);
    row["seconds"] = watch.seconds();
    return row;
}

} // namespace bench
