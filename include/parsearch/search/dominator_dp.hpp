#pragma once
/// Exact search for additive costs: dynamic programming over the operators, cut at dominators.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/additive/budget.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/search/additive/minimise.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// Options of `dominator_dp`. It always ends by itself, but where tables exceed `memory` that may take very long.
struct dominator_dp_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// Bytes that the tables made by the search may take, beside those of the problem and one copy of them, two with a budget.
    std::uint64_t memory = std::uint64_t{1} << 30;

    /// Configurations per operator of a surrogate, where the problem's `surrogate(candidates)` lets the search choose; at least 1. Where the
    /// problem has `surrogate(candidates, end)`, too, `time` limits its making: `end` is an optional time of `std::chrono::steady_clock`, once it
    /// has come `interrupted` is thrown.
    std::uint64_t candidates = 64;

    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(dominator_dp_options const& o);

/// The costs of `P` are additive.
template <class P, class S>
concept AdditiveProblem = SearchProblem<P, S> && AdditiveEvaluator<evaluator_t<P>, S, problem_configuration_t<P>>;

/// `p.surrogate()` is a problem over the same configurations, of its own space, whose costs are additive and resemble those of `p`.
template <class P> using surrogate_t = std::remove_cvref_t<decltype(std::declval<P const&>().surrogate())>;
template <class P, class S>
concept HasSurrogate = SearchProblem<P, S> && requires(P const& p) { p.surrogate(); } && AdditiveProblem<surrogate_t<P>, S> &&
                       std::convertible_to<problem_configuration_t<surrogate_t<P>>, problem_configuration_t<P>>;

/// The costs of `P`, which has a budget, can be priced; those of a problem without one need not.
template <class P, class S>
inline constexpr bool can_price_memory =
    !BudgetedEvaluator<evaluator_t<P>, S, problem_configuration_t<P>> || additive::counts_integers<problem_cost_t<P, S>>;

/// What `dominator_dp` accepts.
template <class P, class S> inline constexpr bool has_additive_costs = (AdditiveProblem<P, S> && can_price_memory<P, S>) || HasSurrogate<P, S>;

/// `dominator_dp(problem, start, rng, options, observers...)`: the best strategy of an additive problem, proved.
///
/// - Costs are read into tables once; dominated configurations are dropped; the rest is cut into components, and these at dominators of the
///   graph that numbers orient from small to large; in each piece operators are eliminated, those with the smallest tables first, which
///   composes series and parallel parts. Equal tables are one, so that repeated blocks are solved once.
/// - Reason `proved_optimal`: no strategy of the space costs less than the answer, and `lower_bound` is its cost. An answer of infinite cost
///   proves that no strategy of the space is feasible. Sums of integers and durations are exact; of floating-point costs, two strategies whose
///   costs differ by rounding alone may be taken for each other. Other cost types are compared by `cost_traits::value`.
/// - Where there is a budget of memory (`BudgetedEvaluator`), of the strategies that keep it; costs are integers or durations of integers. See
///   `additive::minimise_within`.
/// - Where the tables do not fit into `memory`: mini-bucket bounds and depth-first branch and bound, which tell better strategies and better
///   bounds as they find them. `lower_bound` is the best bound when the budget ends; `cost - lower_bound` is the gap.
/// - Of a problem whose costs are not additive, its `surrogate()` is minimised and what comes of it priced with the problem's evaluator: the
///   answer is the best of these and the start. Nothing is proved; reason `exhausted`.
/// - Evaluations: the start and each better strategy that is found. `rng` is not used; the run is reproducible unless time or a stop token ends it.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, a cost that is not a
///   number, as `additive::read_tables`, and `interrupted` where the problem's own stop token ends the making of its surrogate.
/// Sources: Jia, Lin, Qi, Aiken, ICML 2018, section 5 (node and edge elimination); Dechter, Bucket elimination, AIJ 1999; and see the headers of
/// `search/additive`. Complexity: exponential in the width that the order finds (2 for series-parallel graphs: K^3 per operator of K configurations).
struct dominator_dp_fn {
    static constexpr search_traits traits{.additive_costs = true, .start_matters = false, .looks_inside = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R&, dominator_dp_options const& options = {},
                                                      Os&&... observers) const {
        static_assert(
            AdditiveProblem<P, S> || HasSurrogate<P, S>,
            "dominator_dp: the problem's costs are not additive: its evaluator must have operator_cost, edges and edge_cost (see the concept "
            "AdditiveEvaluator), or the problem a surrogate() whose evaluator has them");
        validate(options);
        auto const projected = project_start(problem, start, "dominator_dp");
        session<P, S, std::remove_reference_t<Os>...> run("dominator_dp", problem, std::move(start), budget_of(options), patience_rule{},
                                                          options.progress_interval, observers...);
        run.count_projected(projected);
        if (auto const reason = run.due()) return run.finish(*reason);
        if constexpr (AdditiveProblem<P, S>) {
            return minimise<true, P, S>(run, problem, options);
        } else if constexpr (HasSurrogate<P, S>) {
            for (;;) { // again where time is over and an observer grants more
                try {
                    auto const& surrogate = surrogate_of(problem, options, run.end());
                    require_choices(surrogate.space(), run.current(), "dominator_dp: the surrogate");
                    return minimise<false, P, S>(run, surrogate, options);
                } catch (interrupted const&) {
                    if (run.time_left() > std::chrono::nanoseconds::zero()) throw; // the problem's own stop token
                    if (auto const reason = run.due_now()) return run.finish(*reason);
                }
            }
        }
    }

  private:
    template <class P>
    static decltype(auto) surrogate_of(P const& problem, dominator_dp_options const& options,
                                       [[maybe_unused]] std::optional<std::chrono::steady_clock::time_point> end) {
        if constexpr (!requires { problem.surrogate(options.candidates); }) return problem.surrogate();
        else if constexpr (!requires { problem.surrogate(options.candidates, end); }) return problem.surrogate(options.candidates);
        else return problem.surrogate(options.candidates, end);
    }

    /// Throws where the evaluator does not keep its own budget.
    template <class Session, class E> static void require_budget_kept(Session const& run, E& evaluator, byte_count budget, std::size_t operators) {
        using traits = cost_traits<std::remove_cvref_t<decltype(run.current_cost())>>;
        if (!(run.current_cost() < traits::infinity())) return;
        byte_count bytes = 0;
        for (std::size_t op = 0; op < operators; ++op)
            bytes = saturating_sum(bytes, additive::bytes_of(evaluator.operator_memory(op, configuration_of(run.current(), op))));
        if (bytes > budget)
            throw invalid_input("dominator_dp: the evaluator answers ", traits::value(run.current_cost()), " for a start of ", bytes,
                                " bytes: must be infinity, as the budget is ", budget);
    }

    template <bool proves, class P, class S, class Session, class A>
    static auto minimise(Session& run, A const& problem, dominator_dp_options const& options) {
        using cost = problem_cost_t<A, S>;
        auto const& space = problem.space();
        auto evaluator = problem.evaluator();
        auto const tables = additive::read_tables<S>(space, evaluator, "dominator_dp");
        std::optional<stop_reason> ended;
        auto const stop = [&](additive::phase = {}) {
            if (!ended) ended = run.due();
            return ended.has_value();
        };
        std::vector<change<problem_configuration_t<P>>> changes;
        auto const found = [&](std::span<std::uint32_t const> choices) {
            if (stop()) return;
            changes.clear();
            for (std::size_t op = 0; op < choices.size(); ++op) changes.push_back({op, choice(space, op, choices[op])});
            if (changes.empty()) return;
            auto const priced = run.propose(changes, run.best_cost(), {.move = 0, .index = {}});
            if (priced && *priced < run.best_cost()) run.keep();
            else run.drop();
        };
        auto const bound = [&](cost const& least) {
            if constexpr (proves) run.raise_bound(std::min(least, run.best_cost()));
        };
        using evaluator_type = evaluator_t<A>;
        using configuration = problem_configuration_t<A>;
        constexpr bool takes_memory = requires(evaluator_type& e, configuration const& c) { e.operator_memory(std::size_t{}, c); };
        constexpr bool limits_memory = requires(evaluator_type& e) { e.memory_budget(); };
        constexpr bool budgeted = BudgetedEvaluator<evaluator_type, S, configuration>;
        static_assert(budgeted || !(takes_memory || limits_memory),
                      "dominator_dp: an evaluator with a budget must have both operator_memory and memory_budget, which answer integers (see the "
                      "concept BudgetedEvaluator)");
        auto const bytes = static_cast<double>(options.memory);
        bool complete = false;
        if constexpr (budgeted) {
            auto const least = [&](std::int64_t n) {
                if (auto const c = additive::to_cost<cost>(additive::wide_integer{n})) bound(*c);
            };
            auto const limit = additive::read_memory(space, evaluator, "dominator_dp");
            if constexpr (proves) require_budget_kept(run, evaluator, limit.budget, space.size());
            complete = additive::minimise_within(additive::whole_tables(tables, "dominator_dp"), limit, bytes,
                                                 {.found = found, .bound = least, .stop = stop});
        } else {
            complete = additive::minimise(tables, bytes, found, bound, stop);
        }
        if (complete && !ended && !run.was_cut()) {
            if constexpr (proves) run.raise_bound(run.best_cost());
            return run.finish(proves ? stop_reason::proved_optimal : stop_reason::exhausted);
        }
        return run.finish(ended.value_or(stop_reason::exhausted));
    }
};
inline constexpr dominator_dp_fn dominator_dp{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/dominator_dp.ipp>
#endif
