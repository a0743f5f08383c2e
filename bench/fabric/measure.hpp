#pragma once
// One cell of the comparison: a strategy searched for its network, or network and strategy for each other.

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/cooptimize/joint_mcmc.hpp>
#include <parsearch/fabric/cooptimize/usual_starts.hpp>
#include <parsearch/fabric/servers/network_report.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>
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
inline nlohmann::json ms_or_null(ps::picoseconds t) {
    return t == ps::cost_traits<ps::picoseconds>::infinity() ? nlohmann::json() : nlohmann::json(ms(t));
}

class stopwatch {
  public:
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Beyond so many devices the portfolio's dynamic programming takes minutes to price its candidates.
inline constexpr std::size_t most_for_portfolio = 128;

// The cheapest of a strategy and those of experts, and how many were priced.
template <class P> std::pair<strategy, std::uint64_t> cheapest_start(P const& problem, strategy start) {
    auto price = problem.evaluator();
    auto least = price(start);
    auto experts = problem.starts();
    for (auto& expert : experts)
        if (auto const cost = price(expert); cost < least) {
            least = cost;
            start = std::move(expert);
        }
    return {std::move(start), 1 + experts.size()};
}

// A search for strategies, of so many evaluations, those of the experts among them: a portfolio, or on many devices one chain of mcmc.
struct searcher {
    template <class P, class R> auto operator()(P const& problem, strategy start, R& rng, ps::search::budget const& budget) const {
        auto [cheapest, priced] = cheapest_start(problem, std::move(start));
        auto const evaluations = *budget.evaluations - std::min(*budget.evaluations - 1, priced);
        bool const chain = problem.topology().size() > most_for_portfolio;
        auto found = chain ? ps::search::mcmc(problem, std::move(cheapest), rng, {.evaluations = evaluations})
                           : ps::search::portfolio(problem, std::move(cheapest), rng, {.evaluations = evaluations});
        found.stats.evaluations += priced;
        return found;
    }
};

// Links with the share of the iteration for which each direction is busy, in tenths of a percent. Networks of more links are not drawn.
inline constexpr std::size_t most_links_drawn = 1200;
inline nlohmann::json drawing_of(fabric::network const& n, fabric::network_report const& r) {
    if (n.links.size() > most_links_drawn) return {};
    auto links = nlohmann::json::array();
    for (std::uint32_t l = 0; l < n.links.size(); ++l)
        links.push_back({n.links[l].a, n.links[l].b, std::lround(1000 * r.utilisation[2 * l]), std::lround(1000 * r.utilisation[2 * l + 1])});
    return {{"switches", n.switches}, {"links", std::move(links)}};
}

// What the best expert and data parallelism do on a problem. Data parallelism may take more memory than there is: its time is that of an iteration
// all the same.
template <class P> void add_experts(P const& problem, nlohmann::json& row) {
    auto simulator = problem.simulator();
    auto least = ps::cost_traits<ps::picoseconds>::infinity();
    row["expert"] = nullptr;
    for (auto const& start : problem.named_starts()) {
        auto const cost = simulator(start.strategy);
        if (start.name == "data_parallel") {
            row["data_parallel_ms"] = ms(simulator.simulate(start.strategy));
            row["data_parallel_fits"] = cost != ps::cost_traits<ps::picoseconds>::infinity();
        }
        if (!(cost < least)) continue;
        row["expert"] = start.name;
        least = cost;
    }
    row["expert_ms"] = ms_or_null(least);
}

// What an iteration of a plan does to its network.
template <class P> void add_report(cell const& c, P const& placed, fabric::fabric_plan const& plan, nlohmann::json& row) {
    auto const& n = plan.wired;
    auto simulator = placed.problem.simulator();
    auto const report = fabric::report_of(n, placed.cluster, ps::sim::make_report(simulator, plan.strategy));
    row["network"] = n.name;
    row["links"] = n.links.size();
    row["link_gbps"] = fabric::one_wire_of(n.links.front()).each.rate.bytes_per_second * 8e-9;
    auto const price = listed_price(c, n);
    row["price"] = price ? nlohmann::json(*price) : nlohmann::json();
    row["mean_hops"] = report.mean_pair_hops;
    row["max_hops"] = report.max_pair_hops;
    row["message_hops"] = report.mean_message_hops;
    row["bandwidth_tax"] = report.bandwidth_tax();
    row["drawing"] = drawing_of(n, report);
}

inline nlohmann::json row_of(cell const& c) {
    return {{"model", c.model.name}, {"batch", c.batch()}, {"servers", c.servers}, {"gpus", c.gpus()},
            {"degree", c.degree},    {"gbps", c.gbps},     {"wiring", c.wiring}};
}

using found_plan = ps::search_result<fabric::fabric_plan, ps::picoseconds>;

// A strategy for a network that stays as it is.
template <class P, class R> found_plan on_fixed(P const& problem, cell const& c, effort const& much, R& rng) {
    auto network = fixed_network(c, much.seed);
    auto found = searcher{}(problem.on(network).problem, ps::space::data_parallel(problem.graph(), problem.devices()), rng,
                            {.time = {}, .evaluations = much.evaluations, .stop = {}});
    return {{std::move(network), std::move(found.best)}, found.cost, {}, found.stats, found.reason, found.ended};
}

// Fabric and strategy in turns, from the traffic of data parallelism and the starts of the options.
template <class P, class S, class R>
found_plan co_optimized(P const& problem, cell const& c, fabric::co_options const& options, S const& search, R& rng, nlohmann::json& row) {
    row["rounds"] = nlohmann::json::array();
    return fabric::co_optimize(search, fabric::wirings{c.degree, interface_of(c.gbps)})(problem, {}, rng, options, [&](fabric::co_round const& r) {
        row["rounds"].push_back({{"start", r.start},
                                 {"chain", r.chain},
                                 {"network", r.wired.name},
                                 {"rings", r.wired.rings.size()},
                                 {"last", r.last},
                                 {"before_ms", ms_or_null(r.before)},
                                 {"iteration_ms", ms_or_null(r.after)},
                                 {"evaluations", r.evaluations},
                                 {"seconds", r.seconds}});
    });
}

// Both at once: from the best expert on a fabric wired for the traffic of the best one on an ideal switch.
template <class P, class R> found_plan jointly_moved(P const& problem, cell const& c, effort const& much, R& rng) {
    auto const data_parallel = ps::space::data_parallel(problem.graph(), problem.devices());
    auto expert = cheapest_start(problem.on(ideal_switch_of(c)).problem, data_parallel).first;
    auto wired = fabric::network_of(fabric::topology_finder(problem.traffic(expert), c.servers, c.degree), interface_of(c.gbps));
    expert = cheapest_start(problem.on(wired).problem, std::move(expert)).first;
    return fabric::joint_mcmc(problem, {std::move(wired), std::move(expert)}, rng, {.evaluations = much.evaluations});
}

inline nlohmann::json measure(cell const& c, effort const& much) {
    auto row = row_of(c);
    auto const problem = problem_of(c);
    std::mt19937_64 rng(much.seed);
    stopwatch const watch;
    auto const search = [&]() -> found_plan {
        if (c.wiring == "joint moves") return jointly_moved(problem, c, much, rng);
        if (c.wiring != "found") return on_fixed(problem, c, much, rng);
        return co_optimized(problem, c,
                            {.evaluations = much.evaluations,
                             .rounds = much.rounds,
                             .starts = fabric::usual_starts(c.servers, c.degree, interface_of(c.gbps), much.seed)},
                            searcher{}, rng, row);
    };
    auto const found = search();
    row["seconds"] = watch.seconds();
    row["iteration_ms"] = ms_or_null(found.cost);
    row["evaluations"] = found.stats.evaluations;
    auto const placed = problem.on(found.best.wired);
    add_experts(placed.problem, row);
    add_report(c, placed, found.best, row);
    return row;
}

} // namespace bench
