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
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/stable_order.hpp>
#include <parsearch/search/chain/replica.hpp>
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
void validate(tempering_options const& o);

namespace detail {

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

} // namespace detail

/// What a running `tempering` is between two rounds, beside its chains, for whoever writes it down.
template <class Run, class R> struct tempering_state {
    Run& run;
    R& rng;
    split_mix& exchanges;
    std::uint64_t& round;

    /// Through an archive as of Boost.Serialization; the engine of the caller where its bytes are all of it.
    template <class Archive> void serialize(Archive& a, unsigned) {
        a& run;
        a& exchanges& round;
        if constexpr (std::is_trivially_copyable_v<R>) a& rng;
    }
};

/// The chains of `tempering` by temperature, the coldest first, and who lets them walk: here the threads of this process.
template <class P, class S> class local_crew {
    using cost = problem_cost_t<P, S>;

  public:
    /// The time runs from here. Refers to both.
    local_crew(P const& problem, tempering_options const& options)
        : problem_(&problem), options_(&options), clock_({.time = options.time, .evaluations = {}, .stop = options.stop}) {}

    /// Whether `state` and all chains are those of another run, which this one goes on with.
    template <class State> [[nodiscard]] static bool resume(State&) { return false; }
    /// A round begins: now `state` and the chains may be written down.
    template <class State> static void keep(State&) {}

    void add(S const& start, cost const& known, split_mix engine) {
        chains_.push_back(std::make_unique<replica<P, S>>(*problem_, start, known, engine));
    }
    [[nodiscard]] replica_log<P, S>& operator[](std::size_t n) { return *chains_[n]; }
    void exchange(std::size_t a, std::size_t b) { std::swap(chains_[a], chains_[b]); }

    /// A round: chain n takes `quotas[n]` steps at `temperatures[n]`. Answers what cut it short, if anything did.
    [[nodiscard]] std::optional<stop_reason> walk(std::vector<double> const& temperatures, std::vector<std::uint64_t> const& quotas,
                                                  std::uint64_t most_idle) {
        if (!workers_) workers_.emplace(std::min(threads_of(options_->threads), chains_.size()));
        auto const halted = [&] {
            if (options_->stop.stop_requested() || timed_out_.load(std::memory_order_relaxed)) return true;
            if (!options_->time || clock_.elapsed() < *options_->time) return false;
            timed_out_.store(true, std::memory_order_relaxed);
            return true;
        };
        auto task = [&](std::size_t n) noexcept { chains_[n]->walk(temperatures[n], quotas[n], most_idle, halted); };
        workers_->run(chains_.size(), task);
        if (timed_out_) return stop_reason::time_budget;
        if (options_->stop.stop_requested()) return stop_reason::stop_requested;
        return {};
    }

  private:
    P const* problem_;
    tempering_options const* options_;
    stopping clock_;
    std::vector<std::unique_ptr<replica<P, S>>> chains_;
    std::atomic<bool> timed_out_ = false;
    std::optional<thread_team> workers_;
};

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
    static constexpr search_traits traits{.draws_moves = true, .apart = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, tempering_options const& options = {},
                                                      Os&&... observers) const {
        validate(options);
        local_crew<P, S> crew(problem, options);
        return with(crew, problem, std::move(start), rng, options, observers...);
    }

    /// The same, by chains that `crew` has: see `local_crew`.
    template <class Crew, class P, class S, class R, class... Os>
    static search_result<S, problem_cost_t<P, S>> with(Crew& crew, P const& problem, S start, R& rng, tempering_options const& options,
                                                       Os&... observers) {
        using cost = problem_cost_t<P, S>;
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "tempering");
        other_starts others("tempering", problem, start, options.problem_starts, options.random_starts, rng);
        basic_session<detail::retold<P, S>, S, Os...> run(
            "tempering", [&] { return detail::retold<P, S>(problem, start); }, start, budget_of(options), patience_of(options, space.size()),
            options.progress_interval, observers...);
        run.count_projected(projected);

        auto const replicas = static_cast<std::size_t>(options.replicas);
        split_mix exchanges(0);
        std::uint64_t round = 0;
        tempering_state<decltype(run), R> state{run, rng, exchanges, round};
        if (!crew.resume(state)) {
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
            for (std::size_t n = 0; n < replicas; ++n) {
                auto const& [known, from] = starts[cheapest_first[n % starts.size()]];
                crew.add(from, known, split_mix(uniform_bits(rng)));
            }
            exchanges = split_mix(uniform_bits(rng));
        }
        std::uint64_t const most_idle = 10'000 + 100 * static_cast<std::uint64_t>(space.size());
        std::vector<double> temperatures(replicas);
        std::vector<std::uint64_t> quotas(replicas);
        std::optional<stop_reason> cut;

        for (;; ++round) {
            if (cut == stop_reason::time_budget) return run.finish(*cut);
            if (auto const reason = run.due(replicas * std::min<std::uint64_t>(options.exchange_interval, none / replicas)))
                return run.finish(*reason);
            if (cut) return run.finish(*cut);
            crew.keep(state);
            set_temperatures(options, run.best_cost(), temperatures);
            auto const left = run.evaluations_left();
            for (std::size_t n = 0; n < replicas; ++n)
                quotas[n] = std::min<std::uint64_t>(options.exchange_interval, left / replicas + (n < left % replicas ? 1 : 0));
            cut = crew.walk(temperatures, quotas, most_idle);
            // A round that was cut short is forgotten: without it the same number of evaluations gives the same search.
            if (cut && round > 0) return run.finish(*cut);
            if (cut) share_evenly(crew, quotas);
            bool exhausted = true;
            for (std::size_t n = 0; n < replicas; ++n) {
                auto& chain = crew[n];
                retell(run, chain);
                chain.at = chain.told_cost;
                exhausted = exhausted && (chain.exhausted || quotas[n] == 0);
            }
            if (run.was_cut()) return run.finish(*run.due());
            if (run.observer_ends()) return run.finish(stop_reason::observer);
            if (exhausted && !cut) return run.finish(stop_reason::exhausted);
            for (std::size_t n = round % 2; n + 1 < replicas; n += 2)
                if (exchange(temperatures[n], temperatures[n + 1], crew[n].at, crew[n + 1].at, exchanges)) {
                    run.tell_exchange(n, crew[n + 1].at, crew[n].at);
                    crew.exchange(n, n + 1);
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
    template <class Crew> static void share_evenly(Crew& crew, std::vector<std::uint64_t>& quotas) {
        std::uint64_t least = none;
        for (std::size_t n = 0; n < quotas.size(); ++n) {
            if (crew[n].failed()) return; // to be told
            least = std::min(least, crew[n].priced_steps());
        }
        bool one_more = true; // for the chains before the first that has no more than the least
        for (std::size_t n = 0; n < quotas.size(); ++n) {
            one_more = one_more && crew[n].priced_steps() > least;
            quotas[n] = least + (one_more ? 1 : 0);
            crew[n].forget_behind(quotas[n]);
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

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/tempering.ipp>
#endif
