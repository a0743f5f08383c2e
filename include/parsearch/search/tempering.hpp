#pragma once
/// Replica exchange: Markov chains at several temperatures that exchange their strategies.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/stable_order.hpp>
#include <parsearch/search/chain/metropolis.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::search {

/// Options of `tempering`. Without `time` and `evaluations` the search ends by itself, through its patience.
struct tempering_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    std::uint64_t replicas = 8;           ///< chains, each with an evaluator of its own; 1 to 1024
    std::optional<double> temperature{};  ///< of the coldest chain, in units of `cost_traits::value`
    double relative_temperature = 0.0005; ///< where `temperature` is not set: it is this times the absolute value of the least cost so far
    double ratio = 2;                     ///< from one temperature to the next; at least 1
    std::uint64_t exchange_interval = 50; ///< evaluations of each chain between two exchanges; at least 1

    bool problem_starts = true;      ///< starts from what the problem's `starts()` offers, too
    std::uint64_t random_starts = 0; ///< starts from so many random strategies, too

    /// Ends a search that has not improved for this fraction of its evaluations; 0: never. Where it is not set, 0.5
    /// without a budget (time, evaluations or a stop token) and 0 with one.
    std::optional<double> patience{};
    std::optional<std::uint64_t> min_evaluations{}; ///< before the patience ends a search; where it is not set, 1000 + 100 per operator

    std::uint64_t threads = 1;              ///< at most one per replica works; 0: as many as the machine has. The result is the same for any number
    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(tempering_options const& o) {
    require_budget(budget_of(o), "tempering");
    if (o.replicas == 0 || o.replicas > 1024) throw invalid_input("tempering: option 'replicas' is ", o.replicas, ": must be between 1 and 1024");
    if (o.temperature) require_amount(*o.temperature, "tempering", "temperature");
    require_amount(o.relative_temperature, "tempering", "relative_temperature");
    require_amount(o.ratio, "tempering", "ratio");
    if (o.ratio < 1) throw invalid_input("tempering: option 'ratio' is ", o.ratio, ": must be at least 1");
    if (o.exchange_interval == 0) throw invalid_input("tempering: option 'exchange_interval' is 0: must be at least 1");
    if (o.patience) require_fraction(*o.patience, "tempering", "patience");
    require_threads(o.threads, "tempering");
    if (o.patience == 0.0 && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input(
            "tempering: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search");
}

namespace detail {

/// What a chain of `tempering` did in one step.
template <class C, class Cost> struct replica_step {
    std::vector<change<C>> changes; // the first alone, where it was not accepted
    proposal_origin origin;
    std::optional<Cost> priced;
    bool evaluated = false, accepted = false;
    std::exception_ptr failure{};
};

/// A pricer whose proposals have been priced by replicas, for the session that tells of them. It prices the starts itself.
template <class P, class S> class retold {
  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using changes = std::span<change<configuration> const>;

    retold(P const& problem, S const& start) : prices_(problem, start) {}
    [[nodiscard]] S const& current() const noexcept { return *current_; }
    [[nodiscard]] cost price() { return prices_.price(); }
    [[nodiscard]] cost look_at(S const& s) { return prices_.look_at(s); }
    [[nodiscard]] bool feasible(S const& s) const
        requires OffersFeasibility<P, S>
    {
        return prices_.feasible(s);
    }
    [[nodiscard]] std::optional<cost> propose(changes what, cost const&) {
        what_ = what;
        if (step_->failure) std::rethrow_exception(step_->failure);
        return step_->priced;
    }
    void keep() {
        for (auto const& c : what_) set_configuration(*current_, c.op, c.configuration);
    }
    void drop() {}

    /// The step of which the session hears next, and the strategy that it changes.
    void tell(replica_step<configuration, cost> const& step, S& current) {
        step_ = &step;
        current_ = &current;
    }

  private:
    pricer<P, S> prices_;
    replica_step<configuration, cost> const* step_ = nullptr;
    S* current_ = nullptr;
    changes what_;
};

/// A chain of `tempering`.
template <class P, class S> class replica {
  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;

    replica(P const& problem, S const& start, cost const& known, std::uint64_t seed)
        : told(start), told_cost(known), at(known), problem_(&problem), drawer_("tempering", problem), rng_(seed) {}

    /// Takes `evaluations` steps that are priced, or less where `halted()` or where there is nothing to propose, and writes down all of them.
    template <class Halted> void walk(double temperature, std::uint64_t evaluations, std::uint64_t most_idle, Halted const& halted) noexcept {
        steps = 0;
        std::uint64_t idle = 0;
        bool pricing = false; // the last step
        try {
            if (!prices_) {
                prices_.emplace(*problem_, told);
                if constexpr (pricer<P, S>::incremental) static_cast<void>(prices_->price());
            }
            for (std::uint64_t n = 0; n < evaluations && idle <= most_idle && !halted();) {
                drawer_.draw(drawn_, prices_->current(), at, temperature, rng_);
                if (drawn_.changes.empty()) {
                    ++idle;
                    continue;
                }
                auto& step = next_step();
                if (!drawn_.bound) {
                    ++idle;
                    note(step, false);
                    continue;
                }
                idle = 0;
                ++n;
                step.evaluated = true;
                note(step, false);
                pricing = true;
                auto const priced = prices_->propose(drawn_.changes, *drawn_.bound);
                pricing = false;
                step.priced = priced;
                using traits = cost_traits<cost>;
                if (priced && !(*priced >= traits::infinity() && at < traits::infinity())) {
                    prices_->keep();
                    at = *priced;
                    note(step, true);
                } else {
                    prices_->drop();
                }
            }
        } catch (...) {
            if (!pricing) next_step();
            written_[steps - 1].failure = std::current_exception();
        }
        exhausted = idle > most_idle;
    }
    [[nodiscard]] replica_step<configuration, cost> const& step(std::size_t n) const { return written_[n]; }

    [[nodiscard]] bool failed() const { return steps > 0 && written_[steps - 1].failure; }
    /// Steps of this round that were priced.
    [[nodiscard]] std::uint64_t priced_steps() const {
        auto const all = std::span(written_).first(steps);
        return static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), [](auto const& s) { return s.evaluated; }));
    }
    /// Forgets what comes behind the first `evaluations` of them, as if no more had been asked for.
    void forget_behind(std::uint64_t evaluations) {
        std::size_t kept = 0;
        for (; evaluations > 0; ++kept)
            if (written_[kept].evaluated) --evaluations;
        steps = kept;
        exhausted = false;
    }

    std::size_t steps = 0; ///< written down in this round
    bool exhausted = false;
    S told;         ///< the current strategy as far as it was told,
    cost told_cost; ///< and its cost
    cost at;        ///< cost of the current strategy

  private:
    auto& next_step() {
        if (steps == written_.size()) written_.emplace_back();
        auto& step = written_[steps++];
        step.changes.clear();
        step.origin = {};
        step.priced.reset();
        step.evaluated = step.accepted = false;
        step.failure = nullptr;
        return step;
    }
    void note(replica_step<configuration, cost>& step, bool accepted) {
        step.origin = drawn_.origin;
        step.accepted = accepted;
        step.changes.clear();
        for (auto const& c : std::span(drawn_.changes).first(accepted ? drawn_.changes.size() : 1)) step.changes.push_back(c);
    }

    P const* problem_;
    std::optional<pricer<P, S>> prices_;
    drawer<P, S> drawer_;
    split_mix rng_;
    drawing<configuration, cost> drawn_;
    std::vector<replica_step<configuration, cost>> written_;
};

} // namespace detail

/// `tempering(problem, start, rng, options, observers...)`: Metropolis chains (see `mcmc`) at temperatures in geometric progression, in rounds
/// of `exchange_interval` evaluations each. After a round the chains at neighbouring temperatures Ti < Tj, of the pairs 0-1, 2-3, ... and
/// 1-2, 3-4, ... in turn, exchange their strategies with probability min(1, exp((1/Ti - 1/Tj) (Ei - Ej))). Answers the best strategy seen.
/// Source: Swendsen, Wang, Phys. Rev. Lett. 57, 1986; Geyer, Computing Science and Statistics 23, 1991.
///
/// - Each chain has an engine (SplitMix64) of its own, seeded from `rng` in the order of their temperatures; one more decides exchanges.
/// - Starts are priced as those of `mcmc`; from the cheapest on each is the start of one of the chains, the coldest first, and so again
///   where there are more chains.
/// - The result, and what observers are told and in which order (chain by chain, round by round, on the calling thread), is the same for
///   any number of threads. Time budgets and stop tokens end all chains before their next proposal.
///   Observers may grant more evaluations, but no more time.
/// - A round that time or a stop token cut short is forgotten, with what an evaluator threw in it; of the first as much is kept as all
///   chains have done. So a search of as many evaluations is the same.
/// - Infeasible costs, and reason `exhausted`: as `mcmc`; an infeasible strategy moves to the warmer of two chains.
/// - Throws as `mcmc` does.
struct tempering_fn {
    static constexpr search_traits traits{.draws_moves = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, tempering_options const& options = {},
                                                      Os&&... observers) const {
        using cost = problem_cost_t<P, S>;
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "tempering");
        stopping clock({.time = options.time, .evaluations = {}, .stop = options.stop});
        other_starts others("tempering", problem, start, options.problem_starts, options.random_starts, rng);
        basic_session<detail::retold<P, S>, S, std::remove_reference_t<Os>...> run(
            "tempering", [&] { return detail::retold<P, S>(problem, start); }, start, budget_of(options), patience_of(options, space.size()),
            options.progress_interval, observers...);
        run.count_projected(projected);

        std::vector<std::pair<cost, S>> starts;
        starts.emplace_back(run.current_cost(), std::move(start));
        auto s = others.next();
        if (s) run.count_start();
        for (; s; s = others.next()) {
            if (auto const reason = run.due()) return run.finish(*reason);
            auto const priced = run.consider(*s);
            if (!priced) return run.finish(*run.due());
            starts.emplace_back(*priced, *std::move(s));
        }
        auto const cheapest_first = stable_order(starts.size(), [&](std::size_t a, std::size_t b) { return starts[a].first < starts[b].first; });

        // By temperature, the coldest first; exchanges move them.
        auto const replicas = static_cast<std::size_t>(options.replicas);
        std::vector<std::unique_ptr<detail::replica<P, S>>> chains;
        for (std::size_t n = 0; n < replicas; ++n) {
            auto const& [known, from] = starts[cheapest_first[n % starts.size()]];
            chains.push_back(std::make_unique<detail::replica<P, S>>(problem, from, known, uniform_bits(rng)));
        }
        split_mix exchanges(uniform_bits(rng));
        std::uint64_t const most_idle = 10'000 + 100 * static_cast<std::uint64_t>(space.size());
        std::vector<double> temperatures(replicas);
        std::vector<std::uint64_t> quotas(replicas);
        std::atomic<bool> timed_out = false;
        thread_team workers(std::min(threads_of(options.threads), replicas));
        auto const halted = [&] {
            if (options.stop.stop_requested() || timed_out.load(std::memory_order_relaxed)) return true;
            if (!options.time || clock.elapsed() < *options.time) return false;
            timed_out.store(true, std::memory_order_relaxed);
            return true;
        };
        auto task = [&](std::size_t n) noexcept { chains[n]->walk(temperatures[n], quotas[n], most_idle, halted); };

        for (std::uint64_t round = 0;; ++round) {
            if (timed_out) return run.finish(stop_reason::time_budget);
            if (auto const reason = run.due(replicas * std::min<std::uint64_t>(options.exchange_interval, none / replicas)))
                return run.finish(*reason);
            set_temperatures(options, run.best_cost(), temperatures);
            auto const left = run.evaluations_left();
            for (std::size_t n = 0; n < replicas; ++n)
                quotas[n] = std::min<std::uint64_t>(options.exchange_interval, left / replicas + (n < left % replicas ? 1 : 0));
            workers.run(replicas, task);
            // A round that was cut short is forgotten: without it the same number of evaluations gives the same search.
            bool const cut = timed_out || options.stop.stop_requested();
            if (cut && round > 0) return run.finish(timed_out ? stop_reason::time_budget : stop_reason::stop_requested);
            if (cut) share_evenly(chains, quotas);
            bool exhausted = true;
            for (std::size_t n = 0; n < replicas; ++n) {
                retell(run, *chains[n]);
                chains[n]->at = chains[n]->told_cost;
                exhausted = exhausted && (chains[n]->exhausted || quotas[n] == 0);
            }
            if (run.was_cut()) return run.finish(*run.due());
            if (run.observer_ends()) return run.finish(stop_reason::observer);
            if (exhausted && !cut) return run.finish(stop_reason::exhausted);
            for (std::size_t n = round % 2; n + 1 < replicas; n += 2)
                if (exchange(temperatures[n], temperatures[n + 1], chains[n]->at, chains[n + 1]->at, exchanges)) {
                    run.tell_exchange(n, chains[n + 1]->at, chains[n]->at);
                    std::swap(chains[n], chains[n + 1]);
                }
        }
    }

  private:
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

    template <class C> static void set_temperatures(tempering_options const& options, C const& best, std::vector<double>& temperatures) {
        double const value = best < cost_traits<C>::infinity() ? cost_traits<C>::value(best) : 0;
        double t = options.temperature.value_or(options.relative_temperature * (value < 0 ? -value : value));
        for (auto& each : temperatures) {
            each = std::min(t, std::numeric_limits<double>::max());
            t *= options.ratio;
        }
    }

    // exp(x) > u is -x < E, where E = -log(u) is a standard exponential variate.
    template <class C> static bool exchange(double cold, double warm, C const& colder, C const& warmer, split_mix& rng) {
        using traits = cost_traits<C>;
        if (!(warmer < traits::infinity())) return false;
        if (!(colder < traits::infinity()) || warmer < colder) return true;
        if (!(cold > 0)) return false;
        double const x = (1 / cold - 1 / warm) * (traits::value(warmer) - traits::value(colder));
        return x < standard_exponential(rng);
    }

    // Of a round that was cut short: the most evaluations that a budget would have shared among the chains as far as they came.
    template <class Chains> static void share_evenly(Chains& chains, std::vector<std::uint64_t>& quotas) {
        if (std::any_of(chains.begin(), chains.end(), [](auto const& c) { return c->failed(); })) return; // to be told
        std::uint64_t least = none;
        for (auto const& c : chains) least = std::min(least, c->priced_steps());
        bool one_more = true; // for the chains before the first that has no more than the least
        for (std::size_t n = 0; n < chains.size(); ++n) {
            one_more = one_more && chains[n]->priced_steps() > least;
            quotas[n] = least + (one_more ? 1 : 0);
            chains[n]->forget_behind(quotas[n]);
        }
    }

    // Tells the session, and so the observers, what a chain did in this round.
    template <class Run, class Chain> static void retell(Run& run, Chain& chain) {
        run.take_up(chain.told_cost);
        for (std::size_t n = 0; n < chain.steps && !run.observer_ends() && !run.was_cut(); ++n) {
            auto const& step = chain.step(n);
            run.prices().tell(step, chain.told);
            if (step.failure && step.changes.empty()) { // of a move, or of the strategy that the chain begins with
                run.count_evaluation();
                static_cast<void>(run.priced([&]() -> std::optional<typename Run::cost> { std::rethrow_exception(step.failure); }));
                return;
            }
            if (!step.evaluated) {
                run.propose_nothing(step.changes.front().op, step.origin);
                continue;
            }
            static_cast<void>(run.propose(step.changes, chain.at, step.origin)); // the bound is not looked at
            if (step.accepted) run.keep();
            else run.drop();
        }
        chain.told_cost = run.current_cost();
    }
};
inline constexpr tempering_fn tempering{};

} // namespace parsearch::search
