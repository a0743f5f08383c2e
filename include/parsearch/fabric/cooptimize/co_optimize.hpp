#pragma once
/// Co-optimization: strategy and topology in turns, each made for the other.

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include <parsearch/fabric/wiring/rewire_moves.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/stopping.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::fabric {

/// A fabric to begin with.
struct start_fabric {
    network wired{};
    bool final = true; ///< it may be the result; false: a first strategy is searched on it, for wirings to be made of its traffic
};

/// Options of `co_optimize`. It always ends by itself, where its searcher does.
struct co_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`; of searchers that take none looked at between rounds
    std::optional<std::uint64_t> evaluations{};     ///< strategies priced in all rounds, at least 1; as `time`
    std::stop_token stop{};                         ///< looked at between rounds, and by searchers that take a budget

    std::uint64_t rounds = 5;           ///< the most rounds in a chain, at least 1
    std::uint64_t rewirings = 100;      ///< changes of a wiring, tried in a row without making its plan faster; 0: none
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
    std::uint64_t chain = 0; ///< of the chains of rounds: a start that may not be the result has one for itself and one for each wiring made from it
    std::uint64_t round = 0; ///< of this chain
    network wired{};
    bool final = true;    ///< whether the network may be the result
    bool last = false;    ///< on the best plan of all rounds, its wiring changed for it, with what is left of the budget
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

/// `f(problem, start, rng, budget)`: a search that is told what it may take.
template <class F, class R>
concept BudgetedSearcher =
    RandomBits<R> && requires(F const& f, parallelization const& p, space::flat_strategy const& s, R& rng, search::budget const& budget) {
        { f(p, s, rng, budget) } -> std::derived_from<search_result<space::flat_strategy, picoseconds>>;
    };

namespace detail {

/// `share` of what `o` allows.
[[nodiscard]] inline search::budget part_of(co_options const& o, double share) {
    search::budget out{.time = {}, .evaluations = {}, .stop = o.stop};
    if (o.evaluations) out.evaluations = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(*o.evaluations) * share));
    if (o.time) out.time = std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(o.time->count()) * share));
    return out;
}

/// Of the budget: for starts that may not be the result, for rounds, and for changes of the best wiring. The last search has the rest.
inline constexpr double share_of_first = 1. / 16, share_of_rounds = 3. / 8, share_of_changes = 1. / 8;
/// Wirings that are raced for the strategy of a start that may not be the result. More were no better (16 cells of `./bench/run fabric`).
inline constexpr std::size_t wirings_of_first = 2;

/// Rounds from one start, on one wiring after the other.
struct co_chain {
    std::size_t start = 0;
    std::uint64_t number = 0;
    network wired;
    space::flat_strategy strategy;
    std::uint64_t round = 0;
    std::optional<picoseconds> cost{}; ///< of `strategy` on `wired`, after a round
};

} // namespace detail

/// `co_optimize(searcher, finder)(problem, start, rng, options, observers...)`: alternating optimization of strategy and topology (W. Wang et al.,
/// TopoOpt, NSDI 2023, section 4), in a race. First a strategy is searched on each start that may not be the result, and servers are wired for its
/// traffic in all ways that the finder knows: the two on which it runs fastest are starts, beside the others. A round is a search on one wiring. All
/// starts get one; the better half of them gets another, and so on, as in successive halving (K. Jamieson and A. Talwalkar, AISTATS 2016), until one
/// is left. Before a further round the servers are wired again, by the present wiring or one for the traffic of the strategy found, that on which it
/// runs fastest; with a budget they swap places then, and wires exchange ends, while that makes it faster. At last the best plan of all gets such
/// changes and a last search. The answer is the best of all rounds on fabrics that may be the result, so it is never worse than what the searcher
/// finds on any `final` start: these are rounds too.
///
/// - `searcher(problem, start, rng)` is any search of the problems that `fabric_problem::on` makes. If it may be called as `searcher(problem, start,
///   rng, budget)`, too, it is: a sixteenth of the budget is for starts that may not be the result, three eighths for rounds, each time that starts
///   are halved equally much, of which a half at most for the wiring, an eighth for changes of the best wiring, and the last search has what is left.
///   Others, and where there is no budget, go on with the last start until a round improves nothing or its chain has had `rounds`, and get a last
///   search only if a change of the wiring made the plan faster.
/// - The first start is `start`: a network and a strategy to begin with. Without a network (`{}`) servers are wired for the traffic of the strategy,
///   without a strategy it is data parallelism; then come the starts of the options, each with that strategy.
/// - Deterministic without `time`, where searcher and finder are: the searches run one after the other and take their random numbers from `rng`.
/// - Reason `exhausted` where it ended by itself. No lower bound. `stats` adds those of the searches up; one evaluation more for each wiring that was
///   tried.
/// - Observers are told `co_round` after each, and of picoseconds `search::improved` and `search::budget_spent`.
/// - Throws `invalid_input` on options out of range, and what searcher, finder and `fabric_problem::on` throw.
template <class F, TopologyFinder Finder> class co_optimize {
  public:
    co_optimize(F searcher, Finder finder) : searcher_(std::move(searcher)), finder_(std::move(finder)) {}

    template <RandomBits R, class... Os>
        requires Searcher<F, parallelization, space::flat_strategy, R> || BudgetedSearcher<F, R>
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
        bool const budgeted = BudgetedSearcher<F, R> && (options.evaluations || options.time);

        auto const rewiring = [&](network const& n) {
            return options.present ? rewiring_time(options.rewiring, *options.present, n) : picoseconds{0};
        };
        auto const seconds = [&] { return std::chrono::duration<double>(run.elapsed()).count(); };
        struct placed_plan {
            network wired;
            picoseconds cost;
            problem_on_network here;
        };
        auto const place = [&](network wired, space::flat_strategy const& s) {
            auto here = problem.on(wired);
            auto const cost = sim::total_cost(here.problem.evaluator()(s), rewiring(wired));
            run.count_evaluation();
            return placed_plan{std::move(wired), cost, std::move(here)};
        };
        // The wiring on which a strategy runs fastest, the first of these.
        auto const fastest = [&](std::vector<network> wirings, space::flat_strategy const& s) {
            std::optional<placed_plan> out;
            for (auto& wired : wirings)
                if (auto other = place(std::move(wired), s); !out || other.cost < out->cost) out.emplace(std::move(other));
            return *std::move(out);
        };
        // What swaps of servers and exchanges of wires make of it, in a part of the budget at most.
        auto const rewired = [&](placed_plan at, space::flat_strategy const& s, search::budget const& part) {
            auto const evaluations = run.stats().evaluations;
            auto const began = run.elapsed();
            for (std::uint64_t failed = 0; failed < options.rewirings; ++failed) {
                if (part.evaluations && run.stats().evaluations - evaluations >= *part.evaluations) break;
                if (part.time && run.elapsed() - began >= *part.time) break;
                if (options.stop.stop_requested() || run.evaluations_left() == 0 || run.time_left() <= std::chrono::nanoseconds{0}) break;
                auto changed = uniform_index(rng, 2) == 0 ? swap_servers(at.wired, rng) : exchange_wires(at.wired, rng);
                if (!changed) continue;
                auto other = place(*std::move(changed), s);
                if (!(other.cost < at.cost)) continue;
                at = std::move(other);
                failed = 0;
            }
            return at;
        };
        // A search, from `s`; the round began when so many seconds were gone.
        auto const search_on = [&](placed_plan const& at, space::flat_strategy const& s, search::budget const& part, co_round round, double began) {
            auto found = search(at.here.problem, s, rng, part);
            auto const cost = sim::total_cost(found.cost, rewiring(at.wired));
            run.count(found.stats);
            trajectory = split_mix(trajectory ^ found.stats.trajectory)();
            round.wired = at.wired;
            round.before = at.cost;
            round.after = cost;
            round.evaluations = found.stats.evaluations;
            round.seconds = seconds() - began;
            run.tell(rounds.emplace_back(std::move(round)));
            if (rounds.back().final && run.offer(fabric_plan{at.wired, found.best}, cost)) feasible = found.reason != stop_reason::nothing_feasible;
            return found;
        };
        // A round of a chain, in a share of the budget: half of it at most for the wiring, the rest for a search.
        auto const next_round = [&](detail::co_chain& c, bool final, double share) {
            if (std::ranges::any_of(rounds, &co_round::final)) ended = run.due(); // there is an answer
            if (ended) return;
            auto const began = seconds();
            auto const evaluations = run.stats().evaluations;
            auto const time = run.elapsed();
            std::vector<network> wirings{std::move(c.wired)};
            if (c.cost) std::ranges::move(wire_for(c.strategy), std::back_inserter(wirings));
            auto at = fastest(std::move(wirings), c.strategy);
            if (c.cost && budgeted) at = rewired(std::move(at), c.strategy, detail::part_of(options, share / 2));
            auto part = detail::part_of(options, share);
            if (part.evaluations) {
                auto const left = *part.evaluations - std::min(*part.evaluations, run.stats().evaluations - evaluations);
                part.evaluations = std::max<std::uint64_t>(1, std::min(left, run.evaluations_left()));
            }
            if (part.time) part.time = std::max(std::chrono::nanoseconds{1}, std::min(*part.time - (run.elapsed() - time), run.time_left()));
            auto found = search_on(at, c.strategy, part, {.start = c.start, .chain = c.number, .round = c.round, .wired = {}, .final = final}, began);
            c.wired = std::move(at.wired);
            c.strategy = std::move(found.best);
            c.cost = rounds.back().after;
            ++c.round;
        };

        std::vector<detail::co_chain> chains;
        std::uint64_t made = 0; // chains
        auto const add_chain = [&](std::size_t from, network wired, space::flat_strategy const& s) {
            chains.push_back({.start = from, .number = made++, .wired = std::move(wired), .strategy = s});
        };
        add_chain(0, start.wired.servers > 0 ? start.wired : fastest(wire_for(start.strategy), start.strategy).wired, start.strategy);
        auto const not_final = static_cast<double>(std::ranges::count(options.starts, false, &start_fabric::final));
        for (std::size_t i = 0; i < options.starts.size(); ++i) {
            auto const& other = options.starts[i];
            if (other.final) {
                add_chain(i + 1, other.wired, start.strategy);
                continue;
            }
            if (run.due()) continue;
            detail::co_chain first{.start = i + 1, .number = made++, .wired = other.wired, .strategy = start.strategy};
            next_round(first, false, detail::share_of_first / not_final);
            std::vector<placed_plan> placed;
            for (auto& wired : wire_for(first.strategy)) placed.push_back(place(std::move(wired), first.strategy));
            std::ranges::stable_sort(placed, {}, &placed_plan::cost);
            for (auto& p : placed | std::views::take(detail::wirings_of_first)) add_chain(i + 1, std::move(p.wired), first.strategy);
        }
        auto const halvings = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::bit_width(chains.size() - 1)));
        for (bool on = true; on && !ended;) {
            on = false;
            auto const before = chains.front().cost;
            auto const share = detail::share_of_rounds / static_cast<double>(halvings * chains.size());
            for (auto& c : chains) {
                if (ended || c.round == options.rounds) continue;
                next_round(c, true, share);
                on = true;
            }
            std::ranges::stable_sort(chains, {}, [](detail::co_chain const& c) { return c.cost.value_or(cost_traits<picoseconds>::infinity()); });
            std::vector<detail::co_chain> different; // of those that have come to one plan the first
            for (auto& c : chains)
                if (std::ranges::none_of(different, [&](auto const& other) { return other.cost == c.cost && other.strategy == c.strategy; }))
                    different.push_back(std::move(c));
            chains = std::move(different);
            if (chains.size() > 1) chains.resize((chains.size() + 1) / 2);
            else if (before && chains.front().cost >= before) break;
            if (chains.size() == 1 && budgeted) break;
        }
        if (!ended && !(ended = run.due())) {
            auto best = run.best();
            auto const from = *std::ranges::find_if(rounds, [&](auto const& r) { return r.final && r.after == run.best_cost(); });
            auto last =
                std::ranges::max(rounds | std::views::filter([&](auto const& r) { return r.chain == from.chain; }), {}, &co_round::round).round;
            auto began = seconds();
            auto const at = rewired(place(best.wired, best.strategy), best.strategy, detail::part_of(options, detail::share_of_changes));
            for (bool on = budgeted || at.cost < run.best_cost(); on; began = seconds()) {
                search::budget left{.time = {}, .evaluations = {}, .stop = options.stop};
                if (options.time) left.time = run.time_left();
                if (options.evaluations) left.evaluations = std::max<std::uint64_t>(1, run.evaluations_left());
                auto found =
                    search_on(at, best.strategy, left, {.start = from.start, .chain = from.chain, .round = ++last, .wired = {}, .last = true}, began);
                best.strategy = std::move(found.best);
                ended = run.due(); // asks observers for more
                on = budgeted && !ended && (found.ended == stop_reason::evaluation_budget || found.ended == stop_reason::time_budget);
                if (budgeted && !ended && !on) ended = found.ended;
            }
        }
        run.set_trajectory(trajectory);
        return {run.finish(ended.value_or(stop_reason::exhausted), feasible), std::move(rounds)};
    }

  private:
    template <class R> auto search(parallelization const& problem, space::flat_strategy const& s, R& rng, search::budget const& part) const {
        if constexpr (BudgetedSearcher<F, R>) return searcher_(problem, s, rng, part);
        else return searcher_(problem, s, rng);
    }

    F searcher_;
    Finder finder_;
};

} // namespace parsearch::fabric
