#pragma once
/// Markov chain Monte Carlo search over strategies, after FlexFlow.

#include <algorithm>
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
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/chain/metropolis.hpp>
#include <parsearch/search/chain/metropolis_chain.hpp>
#include <parsearch/search/chain/temperature.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/search/threads/speculation.hpp>

namespace parsearch::search {

/// Options of `mcmc`. Without `time` and `evaluations` the search ends by itself, through its patience.
struct mcmc_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// How much worse a step may be, in units of `cost_traits::value`: a step that costs `d` more is accepted with probability
    /// exp(-d / temperature); 0: never. FlexFlow's `--alpha` is its inverse, per millisecond.
    std::optional<double> temperature{};
    /// Where `temperature` is not set, it is this times the absolute value of the least cost so far, to begin with.
    double relative_temperature = 0.002;
    /// Where it is set and `temperature` is not, the factor `relative_temperature` is adapted until this share of the proposals that are
    /// worse than the current strategy is accepted: every 50 of them it is multiplied by 1.25 or 0.8.
    std::optional<double> target_acceptance = 0.02;
    /// Where neither `temperature` nor `target_acceptance` is set, the temperature doubles after every so many proposals without an improvement,
    /// seven times, and then starts over: a chain that is stuck goes farther away. 0: never.
    std::uint64_t reheat_interval = 250;
    /// Goes back to the best strategy every so many proposals; 0: never. Where it is not set, a hundredth of `evaluations`
    /// within [1, 1000], as in FlexFlow's code (release 21.09), and 100 without such a budget.
    std::optional<std::uint64_t> reset_interval{};

    /// Ends a search that has not improved for this fraction of its evaluations; 0: never. Where it is not set, 0.5
    /// without a budget (time, evaluations or a stop token) and 0 with one.
    std::optional<double> patience{};
    /// The same as a fraction of the time, FlexFlow's rule (half); 0: never. Not reproducible.
    double time_patience = 0;
    /// Evaluations before either patience ends a search. Where it is not set, 1000 + 100 per operator.
    std::optional<std::uint64_t> min_evaluations{};

    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none

    bool problem_starts = true;      ///< starts from what the problem's `starts()` offers, too
    std::uint64_t random_starts = 0; ///< starts from so many random strategies, too
    /// Proposals of each round of the race between several starts, shared by those that are left. Where it is not set, a tenth of
    /// `evaluations` within [10, 10000], and 1000 without such a budget.
    std::optional<std::uint64_t> race_length{};
    std::uint64_t racing_starts = 3; ///< starts that race, the cheapest of all; 0: all

    /// Threads that price proposals ahead, 0: as many as the machine has. The result is the same for any number.
    std::uint64_t threads = 1;
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(mcmc_options const& o);

/// Proposals between two returns to the best strategy: `reset_interval`, or its default.
[[nodiscard]] std::uint64_t reset_interval_of(mcmc_options const& o) noexcept;

/// Proposals of a round of the race between starts: `race_length`, or its default.
[[nodiscard]] inline std::uint64_t race_length_of(mcmc_options const& o) noexcept {
    if (o.race_length) return *o.race_length;
    if (!o.evaluations) return 1000;
    return std::clamp<std::uint64_t>(*o.evaluations / 10, 10, 10'000);
}

/// Writes into the options what their defaults derive from `evaluations`, so that another budget leaves the rest of the chain as it is.
inline void fix_derived(mcmc_options& o) noexcept {
    o.reset_interval = reset_interval_of(o);
    o.race_length = race_length_of(o);
}

/// `mcmc(problem, start, rng, options, observers...)`: a Markov chain through the problem's moves, accepting a proposal with probability
/// min(1, exp((current - new) / temperature)) (Metropolis et al. 1953; Jia, Zaharia, Aiken, MLSys 2019, section 6). Answers the best
/// strategy seen.
///
/// - One proposal takes one evaluation; one that changes nothing takes none.
/// - Several starts (the given one, those of the problem, random ones) are all priced, in this order. Then the `racing_starts` cheapest race:
///   in rounds of `race_length` proposals a chain from each has an equal part, the best half (rounded up) goes on from the best it has seen
///   with twice as much, until one is left, which has the rest (successive halving; Jamieson, Talwalkar, AISTATS 2016).
/// - The acceptance is drawn first, as the greatest cost that will be accepted, which incremental evaluators get as bound.
///   The chain is the same with plain and incremental evaluators, for any number of threads, and on every platform.
/// - Costs of `cost_traits::infinity()` are infeasible: from an infeasible start every proposal is accepted until one is
///   feasible, and then none that is not.
/// - Reason `exhausted`: there was nothing to propose, or very many proposals in a row changed nothing.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, a move
///   that names an operator that does not exist, a cost that is not a number, or several threads with an engine that cannot be copied.
struct mcmc_fn {
    static constexpr search_traits traits{.draws_moves = true};

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, mcmc_options const& options = {}, Os&&... observers) const {
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "mcmc");
        auto const threads = threads_of(options.threads);
        other_starts others("mcmc", problem, start, options.problem_starts, options.random_starts, rng);
        auto patience = patience_of(options, space.size());
        patience.of_time = options.time_patience;
        if (threads == 1) {
            drawn_now<P, S, R> drawings("mcmc", problem, rng);
            session<P, S, std::remove_reference_t<Os>...> run("mcmc", problem, start, budget_of(options), patience, options.progress_interval,
                                                              observers...);
            run.count_projected(projected);
            return metropolis(run, drawings, std::move(start), others, rules_of(options), space.size());
        }
        if constexpr (std::copyable<R>) {
            using prices = speculator<P, S>;
            basic_session<prices, S, std::remove_reference_t<Os>...> run(
                "mcmc", [&] { return prices(problem, start, threads); }, start, budget_of(options), patience, options.progress_interval,
                observers...);
            drawn_ahead<P, S, R> drawings("mcmc", problem, rng, 2 * run.prices().most_ahead());
            run.count_projected(projected);
            return metropolis(run, drawings, std::move(start), others, rules_of(options), space.size());
        } else {
            throw invalid_input("mcmc: option 'threads' is ", options.threads, ": must be 1 with a random engine that cannot be copied");
        }
    }

  private:
    static chain_rules rules_of(mcmc_options const& o);
};
inline constexpr mcmc_fn mcmc{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/mcmc.ipp>
#endif
