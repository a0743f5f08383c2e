#pragma once
/// Co-optimization: strategy and topology in turns, each made for the other.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/fabric/wiring/found_network.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/stopping.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::fabric {

/// A fabric to begin with.
struct start_fabric {
    network wired;
    bool final = true; ///< it may be the result; false: a first strategy is searched on it, for wirings to be made of its traffic
};

/// Options of `co_optimize`. It always ends by itself, where its searcher does.
struct co_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`; looked at between rounds
    std::optional<std::uint64_t> evaluations{};     ///< strategies priced in all rounds, at least 1; looked at between rounds
    std::stop_token stop{};                         ///< between rounds: the searcher may know it, too

    std::uint64_t rounds = 5;           ///< the most rounds from each start, at least 1
    std::vector<start_fabric> starts{}; ///< after `start`
    std::optional<network> present{};   ///< what is wired now: other networks cost a rewiring
    reconfigurable_options rewiring{};  ///< what that costs
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(co_options const& o) {
    search::require_budget(search::budget_of(o), "co_optimize");
    if (o.rounds < 1) throw invalid_input("co_optimize: option 'rounds' is 0: must be at least 1");
    if (o.present) (void)rewiring_time(o.rewiring, *o.present, *o.present);
}

/// One round: a search on one network. Told to observers when it ends.
struct co_round {
    std::size_t start = 0;   ///< 0: `start`, then the starts of the options
    std::uint64_t round = 0; ///< of this start
    network wired;
    bool final = true;    ///< whether the network may be the result
    picoseconds before{}; ///< cost of the strategy that the search began with, there
    picoseconds after{};  ///< of the one it ended with
    std::uint64_t evaluations = 0;
    double seconds = 0;
};

/// The result of `co_optimize`; `cost` is that of an iteration and its part of a rewiring.
struct co_result : search_result<fabric_plan, picoseconds> {
    std::vector<co_round> rounds;
};

namespace detail {
inline std::vector<network> as_networks(network n, link_description const&) { return {std::move(n)}; }
inline std::vector<network> as_networks(found_topology const& t, link_description const& link) { return {network_of(t, link)}; }
template <std::ranges::input_range Networks> std::vector<network> as_networks(Networks const& all, link_description const&) {
    return {all.begin(), all.end()};
}
} // namespace detail

/// `f(demand)` answers a network, a `found_topology`, or several networks to choose from.
template <class F>
concept TopologyFinder =
    std::invocable<F const&, demand const&> && requires(std::invoke_result_t<F const&, demand const&> const& made, link_description const& link) {
        { detail::as_networks(made, link) } -> std::same_as<std::vector<network>>;
    };

/// `co_optimize(searcher, finder)(problem, start, rng, options, observers...)`: alternating optimization of strategy and topology (W. Wang et al.,
/// TopoOpt, NSDI 2023, section 4). From each start: search a strategy on the fabric; wire the servers for the traffic of what was found (of several
/// wirings that on which it runs fastest); search on from it on the new fabric, which may be the present one; and again, until a round improves
/// nothing or there were `rounds`. The answer is the best of all rounds on fabrics that may be the result, so it is never worse than what the
/// searcher finds on any `final` start: these are rounds too.
///
/// - `searcher(problem, start, rng)` is any search of the problems that `fabric_problem::on` makes.
/// - The first start is `start`: a network and a strategy to begin with. Without a network (`{}`) servers are wired for the traffic of the strategy,
///   without a strategy it is data parallelism; then come the starts of the options, each with that strategy.
/// - Deterministic, where searcher and finder are: the searches run one after the other and take their random numbers from `rng`.
/// - Reason `exhausted` where it ended by itself. No lower bound. `stats` adds those of the searches up; one evaluation more for each wiring that was
/// tried.
/// - Observers are told `co_round` after each, and of picoseconds `search::improved` and `search::budget_spent`.
/// - Throws `invalid_input` on options out of range, and what searcher, finder and `fabric_problem::on` throw.
template <class F, TopologyFinder Finder> class co_optimize {
  public:
    co_optimize(F searcher, Finder finder) : searcher_(std::move(searcher)), finder_(std::move(finder)) {}

    template <RandomBits R, class... Os>
        requires Searcher<F, parallelization, space::flat_strategy, R>
    co_result operator()(fabric_problem const& problem, fabric_plan start, R& rng, co_options const& options = {}, Os&&... observers) const {
        static_assert(search::tells<co_round, search::improved<picoseconds>,
                                    search::budget_spent<picoseconds>>::template all<std::remove_reference_t<Os>...>());
        validate(options);
        search::kernel<fabric_plan, picoseconds, std::remove_reference_t<Os>...> run("co_optimize", search::budget_of(options), {}, observers...);
        std::optional<stop_reason> ended;
        std::vector<co_round> rounds;
        bool feasible = false;
        std::uint64_t trajectory = 0;
        if (start.strategy.empty()) start.strategy = space::data_parallel(problem.graph(), problem.devices());

        auto const wire_for = [&](space::flat_strategy const& s) {
            auto made = detail::as_networks(finder_(problem.traffic(s)), problem.options().servers.interface);
            if (made.empty()) throw invalid_input("co_optimize: the finder made no network: must be at least one");
            return made;
        };
        auto const rewiring = [&](network const& n) {
            return options.present ? rewiring_time(options.rewiring, *options.present, n) : picoseconds{0};
        };
        auto const chain = [&](std::size_t number, std::vector<network> wirings, bool final) {
            auto strategy = start.strategy;
            std::optional<picoseconds> best; // of this chain, on networks that may be the result
            for (std::uint64_t round = 0; round < options.rounds; ++round) {
                if (!rounds.empty()) ended = run.due();
                if (ended) return;
                auto const began = run.elapsed();
                if (round > 0) {
                    wirings = wire_for(strategy);
                    final = true;
                }
                // The wiring on which the strategy runs fastest; the first of these.
                std::size_t chosen = 0;
                auto before = cost_traits<picoseconds>::infinity();
                std::optional<problem_on_network> placed;
                for (std::size_t i = 0; i < wirings.size(); ++i) {
                    auto here = problem.on(wirings[i]);
                    auto const cost = sim::total_cost(here.problem.evaluator()(strategy), rewiring(wirings[i]));
                    run.count_evaluation();
                    if (placed && !(cost < before)) continue;
                    before = cost;
                    chosen = i;
                    placed.emplace(std::move(here));
                }
                auto& wired = wirings[chosen];
                auto found = searcher_(placed->problem, strategy, rng);
                auto const cost = sim::total_cost(found.cost, rewiring(wired));
                run.count(found.stats);
                trajectory = split_mix(trajectory ^ found.stats.trajectory)();
                rounds.push_back({number, round, wired, final, before, cost, found.stats.evaluations,
                                  std::chrono::duration<double>(run.elapsed() - began).count()});
                run.tell(rounds.back());
                strategy = std::move(found.best);
                if (!final) continue;
                if (run.offer(fabric_plan{wired, strategy}, cost)) feasible = found.reason != stop_reason::nothing_feasible;
                if (best && !(cost < *best)) return;
                best = cost;
            }
        };
        if (start.wired.servers > 0) chain(0, {start.wired}, true);
        else chain(0, wire_for(start.strategy), true);
        for (std::size_t i = 0; i < options.starts.size() && !ended; ++i) chain(i + 1, {options.starts[i].wired}, options.starts[i].final);
        run.set_trajectory(trajectory);
        return {run.finish(ended.value_or(stop_reason::exhausted), feasible), std::move(rounds)};
    }

  private:
    F searcher_;
    Finder finder_;
};

} // namespace parsearch::fabric
