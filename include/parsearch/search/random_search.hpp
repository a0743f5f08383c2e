#pragma once
/// Random search: independent uniform strategies, the baseline of every other search.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// Options of `random_search`. Without `time` and `evaluations` the search ends by itself, through its patience.
struct random_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// Ends a search that has not improved for this fraction of its evaluations; 0: never. Where it is not set, 0.5 without a budget (time,
    /// evaluations or a stop token) and 0 with one.
    std::optional<double> patience{};
    /// Evaluations before patience ends a search. Where it is not set, 1000 + 100 per operator.
    std::optional<std::uint64_t> min_evaluations{};
    bool bound = true; ///< reports `root_bound` where the problem's evaluator knows one, and ends when it is met

    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(random_options const& o);

/// `random_search(problem, start, rng, options, observers...)`: strategies drawn uniformly from the space, each on its own; the best of them and
/// of the start.
///
/// - One evaluation per strategy, with the least cost so far as bound of incremental evaluators.
/// - Reason `exhausted`: no operator has a choice. Reason `proved_optimal`: the best costs what the bound says.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, or a cost that is not a
///   number.
struct random_fn {
    static constexpr search_traits traits{.looks_inside = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, random_options const& options = {},
                                                      Os&&... observers) const {
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "random");
        std::size_t const operators = space.size();
        bool const budgeted = options.time || options.evaluations || options.stop.stop_possible();
        session<P, S, std::remove_reference_t<Os>...> run(
            "random", problem, std::move(start), budget_of(options),
            {.of_evaluations = options.patience.value_or(budgeted ? 0 : 0.5),
             .of_time = 0,
             .min_evaluations = options.min_evaluations.value_or(1000 + 100 * static_cast<std::uint64_t>(operators))},
            options.progress_interval, observers...);
        run.count_projected(projected);
        auto const bound = options.bound ? root_bound<S>(problem) : std::nullopt;
        std::vector<change<problem_configuration_t<P>>> changes;
        bool choices = true;
        for (;;) {
            if (bound) run.raise_bound(*bound < run.best_cost() ? *bound : run.best_cost());
            if (bound && !(*bound < run.best_cost())) return run.finish(stop_reason::proved_optimal);
            if (auto const reason = run.due()) return run.finish(*reason);
            if (!choices || operators == 0) return run.finish(stop_reason::exhausted);
            choices = false;
            changes.clear();
            for (std::size_t op = 0; op < operators; ++op) {
                auto const count = choice_count(space, op);
                choices = choices || count > 1;
                changes.push_back({op, choice(space, op, count > 1 ? uniform_index(rng, count) : 0)});
            }
            auto const priced = run.propose(changes, run.best_cost(), {});
            if (priced && *priced < run.best_cost()) run.keep();
            else run.drop();
        }
    }
};
inline constexpr random_fn random_search{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/random_search.ipp>
#endif
