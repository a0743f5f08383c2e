#pragma once
/// Markov chain Monte Carlo search over strategies, after FlexFlow.

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
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/moves.hpp>
#include <parsearch/search/options.hpp>
#include <parsearch/search/session.hpp>

namespace parsearch::search {

/// Options of `mcmc`. Without `time` and `evaluations` the search ends by itself, through its patience.
struct mcmc_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// How much worse a step may be, in units of `cost_traits::value`: a step that costs `d` more is accepted with probability
    /// exp(-d / temperature); 0: never. FlexFlow's `--alpha` is its inverse, per millisecond.
    std::optional<double> temperature{};
    /// Where `temperature` is not set, it is this times the absolute value of the least cost so far.
    double relative_temperature = 0.002;
    /// Where `temperature` is not set, it doubles after every so many proposals without an improvement, seven times, and then
    /// starts over: a chain that is stuck goes farther away. 0: never.
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
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(mcmc_options const& o) {
    require_budget(budget_of(o), "mcmc");
    if (o.temperature) require_amount(*o.temperature, "mcmc", "temperature");
    require_amount(o.relative_temperature, "mcmc", "relative_temperature");
    if (o.patience) require_fraction(*o.patience, "mcmc", "patience");
    require_fraction(o.time_patience, "mcmc", "time_patience");
    if (o.patience == 0.0 && o.time_patience <= 0 && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input("mcmc: option 'patience' is 0, and neither 'time', 'evaluations', 'stop' nor 'time_patience' is set: "
                            "one of them must end the search");
}

/// Proposals between two returns to the best strategy: `reset_interval`, or its default.
[[nodiscard]] inline std::uint64_t reset_interval_of(mcmc_options const& o) noexcept {
    if (o.reset_interval) return *o.reset_interval;
    if (!o.evaluations) return 100;
    if (*o.evaluations >= 100'000) return 1000;
    return *o.evaluations < 100 ? 1 : *o.evaluations / 100;
}

/// `mcmc(problem, start, rng, options, observers...)`: a Markov chain from `start` through the problem's moves, accepting a
/// proposal with probability min(1, exp((current - new) / temperature)) (Metropolis et al. 1953; Jia, Zaharia, Aiken, MLSys
/// 2019, section 6). Answers the best strategy seen.
///
/// - One proposal takes one evaluation; one that changes nothing takes none.
/// - The acceptance is drawn first, as the greatest cost that will be accepted, which incremental evaluators get as bound.
///   The chain is the same with plain and incremental evaluators, and on every platform.
/// - Costs of `cost_traits::infinity()` are infeasible: from an infeasible start every proposal is accepted until one is
///   feasible, and then none that is not.
/// - Reason `exhausted`: there was nothing to propose, or very many proposals in a row changed nothing.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, a move
///   that names an operator that does not exist, or a cost that is not a number.
struct mcmc_fn {
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, mcmc_options const& options = {},
                                                      Os&&... observers) const {
        using configuration = problem_configuration_t<P>;
        using cost = problem_cost_t<P, S>;
        using traits = cost_traits<cost>;

        auto const& space = problem.space();
        validate(options);
        require_choices(space, start, "mcmc");
        auto mix = moves_of(problem);
        std::size_t const operators = space.size();
        std::uint64_t const most_idle = 10'000 + 100 * static_cast<std::uint64_t>(operators);
        std::uint64_t const reset_interval = reset_interval_of(options);
        temperature_rule const temperature(options);
        session<P, S, std::remove_reference_t<Os>...> run("mcmc", problem, std::move(start), budget_of(options),
                                                          patience_of(options, operators), options.progress_interval, observers...);

        std::vector<change<configuration>> changes;
        std::uint64_t last_improvement = 0; // proposals then
        std::uint64_t idle = 0; // attempts in a row that had nothing to price
        for (;;) {
            if (auto const reason = run.due()) return run.finish(*reason);
            if (idle > most_idle) return run.finish(stop_reason::exhausted);
            changes.clear();
            auto const drawn = mix(space, run.current(), rng, changes);
            if (!drawn || changes.empty()) {
                ++idle;
                continue;
            }
            for (auto const& c : changes)
                if (c.op >= operators)
                    throw invalid_input("mcmc: move number ", drawn->move, " changed operator number ", c.op, ": the space has ",
                                        operators, " operators");
            proposal_origin const origin{.move = drawn->move, .index = drawn->index};
            if (changes_nothing(run.current(), changes)) {
                ++idle;
                run.propose_nothing(changes.front().op, origin);
            } else {
                idle = 0;
                cost const bound = threshold(run.current_cost(), standard_exponential(rng) * temperature.at(run.best_cost(), run.stats().proposals - last_improvement));
                auto const improved = run.stats().improved;
                auto const priced = run.propose(changes, bound, origin);
                bool const worsens_to_infeasible = priced && *priced >= traits::infinity() && run.current_cost() < traits::infinity();
                if (priced && !worsens_to_infeasible) run.keep();
                else run.drop();
                if (run.stats().improved > improved) last_improvement = run.stats().proposals;
            }
            // While nothing feasible is known, going back would only undo the walk.
            if (reset_interval > 0 && run.stats().proposals % reset_interval == 0 && run.best_cost() < traits::infinity()) run.restart();
        }
    }

  private:
    // min(1, exp((current - new) / t)) > u is new < current + t * E where E = -log(u) is a standard exponential variate.
    template <class C> static C threshold(C const& current, double by) {
        using traits = cost_traits<C>;
        if (!(current < traits::infinity())) return traits::infinity();
        // volatile: keeps the compiler from fusing product and sum into one operation, which rounds differently.
        double const volatile rounded = by;
        return traits::raised(current, rounded);
    }

    // The temperature: `fixed`, or `relative` times the least cost, doubled while the chain is stuck; the other is zero.
    struct temperature_rule {
        explicit temperature_rule(mcmc_options const& o)
            : fixed(o.temperature.value_or(0)), relative(o.temperature ? 0 : o.relative_temperature), reheat_interval(o.reheat_interval) {}
        template <class C> [[nodiscard]] double at(C const& best, std::uint64_t stuck_for) const {
            // Where nothing feasible is known, `threshold` accepts everything at any temperature.
            double const value = best < cost_traits<C>::infinity() ? cost_traits<C>::value(best) : 0;
            auto const doublings = reheat_interval > 0 ? stuck_for / reheat_interval % 8 : 0;
            return fixed + relative * (value < 0 ? -value : value) * static_cast<double>(std::uint64_t{1} << doublings);
        }
        double fixed, relative;
        std::uint64_t reheat_interval;
    };

    static patience_rule patience_of(mcmc_options const& o, std::size_t operators) {
        bool const budgeted = o.time || o.evaluations || o.stop.stop_possible();
        return {.of_evaluations = o.patience.value_or(budgeted ? 0 : 0.5),
                .of_time = o.time_patience,
                .min_evaluations = o.min_evaluations.value_or(1000 + 100 * static_cast<std::uint64_t>(operators))};
    }

    template <class S, class C> static bool changes_nothing(S const& strategy, std::vector<change<C>> const& changes) {
        if constexpr (std::equality_comparable<C>)
            for (auto const& c : changes) {
                C const& now = configuration_of(strategy, c.op);
                if (!(now == c.configuration)) return false;
            }
        else return false;
        return true;
    }
};
inline constexpr mcmc_fn mcmc{};

} // namespace parsearch::search
