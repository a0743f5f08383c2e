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
#include <parsearch/search/kernel/notify.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/stopping.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
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

    std::uint64_t rounds = 5;            ///< the most rounds from each start, at least 1
    std::vector<start_fabric> starts{};  ///< beside what the finder makes for data parallelism
    std::optional<network> present{};    ///< what is wired now: other networks cost a rewiring
    reconfigurable_options rewiring{};   ///< what that costs
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(co_options const& o) {
    search::require_budget(search::budget_of(o), "co_optimize");
    if (o.rounds < 1) throw invalid_input("co_optimize: option 'rounds' is 0: must be at least 1");
    if (o.present) (void)rewiring_time(o.rewiring, *o.present, *o.present);
}

/// A network and the strategy to run on it.
struct fabric_plan {
    network wired;
    space::flat_strategy strategy;
};

/// One round: a search on one network. Told to observers when it ends.
struct co_round {
    std::size_t start = 0;      ///< 0: from what the finder makes for data parallelism, then the starts of the options
    std::uint64_t round = 0;    ///< of this start
    network wired;
    bool final = true;          ///< whether the network may be the result
    picoseconds before{};       ///< cost of the strategy that the search began with, there
    picoseconds after{};        ///< of the one it ended with
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
template <std::ranges::input_range Networks> std::vector<network> as_networks(Networks const& all, link_description const&) { return {all.begin(), all.end()}; }

/// Counts of searches one after the other; time and improvements are left as they are.
inline void add(search_stats& sum, search_stats const& s) {
    add_counts(sum, s);
    sum.trajectory = split_mix(sum.trajectory ^ s.trajectory)();
}
} // namespace detail

/// `f(demand)` answers a network, a `found_topology`, or several networks to choose from.
template <class F>
concept TopologyFinder = std::invocable<F const&, demand const&> && requires(std::invoke_result_t<F const&, demand const&> const& made, link_description const& link) {
    { detail::as_networks(made, link) } -> std::same_as<std::vector<network>>;
};

/// `co_optimize(problem, searcher, finder, rng, options, observers...)`: alternating optimization of strategy and topology (W. Wang et al., TopoOpt, NSDI 2023, section 4).
/// From each start: search a strategy on the fabric; wire the servers for the traffic of what was found (of several wirings that on which it runs fastest); search
/// on from it on the new fabric, which may be the present one; and again, until a round improves nothing or there were `rounds`. The answer is the best of all rounds on
/// fabrics that may be the result, so it is never worse than what the searcher finds on any `final` start: these are rounds too.
///
/// - `searcher(problem, start, rng)` is any search of the problems that `fabric_problem::on` makes; of the first rounds `start` is data parallelism.
/// - Deterministic, where searcher and finder are: the searches run one after the other and take their random numbers from `rng`.
/// - Reason `exhausted` where it ended by itself. No lower bound. `stats` adds those of the searches up; one evaluation more for each wiring that was tried.
/// - Observers are told `co_round` after each, and `search::improved<picoseconds>` (`op`: start, `move`: round).
/// - Throws `invalid_input` on options out of range, and what searcher, finder and `fabric_problem::on` throw.
struct co_optimize_fn {
    template <class F, TopologyFinder Finder, RandomBits R, class... Os>
        requires Searcher<F, parallelization, space::flat_strategy, R>
    co_result operator()(fabric_problem const& problem, F const& searcher, Finder const& finder, R& rng, co_options const& options = {}, Os&&... observers) const {
        static_assert((search::handles_any<std::remove_reference_t<Os>, co_round, search::improved<picoseconds>> && ...),
                      "an observer handles no event of this search: it must be callable with fabric::co_round or search::improved<picoseconds>");
        validate(options);
        search::stopping limit(search::budget_of(options));
        co_result out;
        out.stats = {};
        out.cost = cost_traits<picoseconds>::infinity();
        std::optional<stop_reason> ended;
        auto const data_parallel = space::data_parallel(problem.graph(), problem.devices());

        auto const wire_for = [&](space::flat_strategy const& s) {
            auto made = detail::as_networks(finder(problem.traffic(s)), problem.options().servers.interface);
            if (made.empty()) throw invalid_input("co_optimize: the finder made no network: must be at least one");
            return made;
        };
        auto const rewiring = [&](network const& n) { return options.present ? rewiring_time(options.rewiring, *options.present, n) : picoseconds{0}; };
        auto const chain = [&](std::size_t start, std::vector<network> wirings, bool final) {
            auto strategy = data_parallel;
            std::optional<picoseconds> best; // of this chain, on networks that may be the result
            network wired;
            for (std::uint64_t round = 0; round < options.rounds; ++round) {
                if (!out.rounds.empty()) ended = limit.due(out.stats.evaluations);
                if (ended) return;
                auto const began = limit.elapsed();
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
                    ++out.stats.evaluations;
                    if (placed && !(cost < before)) continue;
                    before = cost;
                    chosen = i;
                    placed.emplace(std::move(here));
                }
                wired = std::move(wirings[chosen]);
                auto found = searcher(placed->problem, strategy, rng);
                auto const cost = sim::total_cost(found.cost, rewiring(wired));
                detail::add(out.stats, found.stats);
                out.rounds.push_back({start, round, wired, final, before, cost, found.stats.evaluations, std::chrono::duration<double>(limit.elapsed() - began).count()});
                search::notify(out.rounds.back(), observers...);
                strategy = std::move(found.best);
                if (!final) continue;
                if (out.best.strategy.empty() || cost < out.cost) {
                    if (!out.best.strategy.empty()) {
                        ++out.stats.improved;
                        search::notify(search::improved<picoseconds>{out.stats.evaluations, start, static_cast<std::size_t>(round), cost, out.cost}, observers...);
                    }
                    out.cost = cost;
                    out.best = {wired, strategy};
                }
                if (best && !(cost < *best)) return;
                best = cost;
            }
        };
        chain(0, wire_for(data_parallel), true);
        for (std::size_t i = 0; i < options.starts.size() && !ended; ++i) chain(i + 1, {options.starts[i].wired}, options.starts[i].final);
        out.reason = ended.value_or(stop_reason::exhausted);
        out.stats.seconds = std::chrono::duration<double>(limit.elapsed()).count();
        return out;
    }
};
inline constexpr co_optimize_fn co_optimize{};

} // namespace parsearch::fabric
