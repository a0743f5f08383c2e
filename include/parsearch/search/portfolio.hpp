#pragma once
/// Several searches that share what they find: the best strategy and the best lower bound.

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/search/kernel/stopping.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio_members.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/search/threads/thread_team.hpp>

namespace parsearch::search {

/// Options of `portfolio`. It ends by itself: with a proof, or after `patience` rounds without an improvement.
struct portfolio_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    static constexpr std::uint64_t most_slice = std::uint64_t{1} << 40;
    std::uint64_t slice = 256; ///< evaluations of a member in its first turn, or as many as greedy made there before it; at least 1
    /// Ends after so many rounds in a row that improved nothing; 0: never. Where it is not set, 2 without a budget and 0 with one.
    std::optional<std::uint64_t> patience{};
    /// The members of a round run at once, on `threads` threads, each from the best strategy before; greedy over groups of operators runs before the
    /// others. Else one after the other, each from the best so far, with `threads` threads for those that can use several.
    bool concurrent = false;
    std::uint64_t threads = 1; ///< 0: as many as the machine has. The result is the same for any number
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(portfolio_options const& o);

/// Who lets the members of a round run at once: here the threads of this process.
class portfolio_threads {
  public:
    explicit portfolio_threads(portfolio_options const& options) : options_(&options) {}

    /// Whether `state` is that of another run, which this one goes on with.
    template <class State> [[nodiscard]] static bool resume(State&) { return false; }
    /// Now `state` may be written down.
    template <class State> static void keep(State&) {}
    /// Somebody else wants an end.
    [[nodiscard]] static bool stopped() { return false; }

    /// A turn each of the `active` members. One without result or failure was cut short.
    template <class Members, class State, class S>
    void run(Members const& members, std::vector<State>& states, std::vector<std::size_t> const& active, S const& best, portfolio_turn const& turn) {
        auto task = [&](std::size_t place) noexcept { members.run(active[place], states[active[place]], best, turn, 1, options_->stop); };
        if (!team_) team_.emplace(std::min(threads_of(options_->threads), states.size()));
        team_->run(active.size(), task);
    }

  private:
    portfolio_options const* options_;
    std::optional<thread_team> team_;
};

/// A portfolio of one's own: `portfolio_of(member("cold", mcmc, mcmc_options{.temperature = 1}), member("mine", my_search, my_options{}))` is a
/// search as others are. A search of one's own says what it needs by its `search_traits`; its options have the three members of `budget`.
///
/// `(problem, start, rng, options, observers...)`: in rounds, each member searches on from the best strategy that any has found, for a slice of
/// evaluations. A member's slice doubles after a turn that improved on the best, and all double after a round in which nobody did (Luby, Sinclair,
/// Zuckerman, IPL 47, 1993: no more than a logarithm is lost against knowing the right length). That of a search that `repeats` doubles each time,
/// and so do all where members run at once. A member that ended by itself rests until there is a better strategy to start from. The best lower bound
/// of all is the portfolio's: reason `proved_optimal` where it meets the cost.
///
/// - Members that can not run on the problem (see `runs_on`) are left out; at compile time one must be left. Members for small spaces are left out
///   where there are more than 2^64 strategies.
/// - A member has an engine of its own, seeded from `rng` in the order of the members. The result is the same for any number of threads; time
///   and a stop token end it anywhere, and then it is that of as many evaluations (where members run at once, what those behind the first
///   that was cut short did in this round is forgotten).
/// - `dominator_dp` with few candidates, on a problem with a surrogate, is run again in later rounds with twice as many, or more, up to those that it
///   has by default. Each time it waits until as many evaluations were made as take about as long as its tables: the problem's
///   `surrogate_evaluations(candidates, best)`, or for c candidates of n operators n c^2 / 35.
/// - Where the problem has a `coarsening()` some begin at the start, so that not all depends on what was found first: searches that are `apart`.
///   greedy visits groups of operators alone, in each of its turns anew, with as many evaluations as that takes, and twice the candidates from turn
///   to turn. `mcmc_anew` and tempering go on from what they found themselves, and begin again after a turn that did not better that, half of the
///   time from a random strategy. Where members run in turn these have at most their `share` of all evaluations while others improve: one whose own
///   last turn improved on the best has its whole slice, and all have after a round in which nobody did.
/// - Members whose problems are plain or incremental keep their evaluators from round to round.
/// - Observers are told on the calling thread: `member_turn` before what a member tells, `improved`, `bound_raised`, and `progress` after each
///   turn; where members run in turn also their `proposed` and `accepted`. The evaluations of members are added up.
/// - Throws what members throw: of several at once, the first member's.
template <class... Ms> class portfolio_of {
  public:
    explicit portfolio_of(Ms... members) : members_(std::move(members)...) {}

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, portfolio_options const& options = {},
                                                      Os&&... observers) const {
        using cost = problem_cost_t<P, S>;
        static_assert((runs_on<search_of<Ms>, P, S> || ...), "portfolio: none of its members runs on this problem");
        static_assert(tells<proposed<cost>, accepted<cost>, improved<cost>, member_turn<cost>, bound_raised<cost>, progress<cost>,
                            budget_spent<cost>>::template all<std::remove_reference_t<Os>...>());
        validate(options);
        portfolio_threads crew(options);
        return with(crew, problem, std::move(start), rng, options, observers...);
    }

    /// The same, with members that `crew` lets run: see `portfolio_threads`.
    template <class Crew, class P, class S, class R, class... Os>
    search_result<S, problem_cost_t<P, S>> with(Crew& crew, P const& problem, S start, R& rng, portfolio_options const& options,
                                                Os&... observers) const {
        validate(options);
        std::apply([](auto const&... m) { (require_share(m.name, m.share), ...); }, members_);
        auto const projected = project_start(problem, start, "portfolio");
        return run<Crew, P, S, Os...>(crew, members_, problem, std::move(start), projected, options, observers...).search(rng);
    }

    [[nodiscard]] std::tuple<Ms...> const& members() const noexcept { return members_; }

    /// The names of the members, by number.
    [[nodiscard]] std::array<std::string_view, sizeof...(Ms)> names() const {
        return std::apply([](auto const&... m) { return std::array<std::string_view, sizeof...(Ms)>{m.name...}; }, members_);
    }

  private:
    template <class M> using search_of = std::remove_cvref_t<decltype(std::declval<M const&>().search)>;

    static void require_share(std::string_view name, double share) {
        if (!(share > 0 && share <= 1)) throw invalid_input("portfolio: member '", name, "' has the share ", share, ": must be above 0, at most 1");
    }

    template <class Crew, class P, class S, class... Os> class run {
        using cost = problem_cost_t<P, S>;
        using result = search_result<S, cost>;
        using state = portfolio_state<S, cost>;

      public:
        run(Crew& crew, std::tuple<Ms...> const& members, P const& problem, S start, std::uint64_t projected, portfolio_options const& options,
            Os&... observers)
            : crew_(crew), members_(members, problem, start, 64 + threads_of(options.threads)), problem_(problem), options_(options),
              kernel_("portfolio", budget_of(options), {}, observers...) {
            auto const known = members_.pool().evaluator()(start);
            kernel_.count_evaluation();
            kernel_.begin(std::move(start), known);
            kernel_.count_projected(projected);
        }

        template <class R> result search(R& rng) {
            snapshot<R> now{*this, rng};
            if (!crew_.resume(now))
                for (std::size_t n = 0; n < sizeof...(Ms); ++n) states_.push_back({split_mix(uniform_bits(rng))});
            bool const budgeted = options_.time || options_.evaluations || options_.stop.stop_possible();
            patience_ = options_.patience.value_or(budgeted ? 0 : 2);
            for (;;) {
                if (next_ == 0) improved_ = kernel_.stats().improved;
                auto const reason = options_.concurrent ? round_at_once(now) : round_in_turn(now);
                if (reason) return finish(*reason);
                next_ = 0;
                waiting_ = !std::exchange(acted_, false) && !waiting_; // nobody had a turn: the next round is without waiting
                if (waiting_) continue;
                stale_ = kernel_.stats().improved > improved_ ? 0 : stale_ + 1;
                wider_ = stale_ > 0;
                if (options_.concurrent) slice_ = twice(slice_);
                else if (wider_)
                    for (auto& s : states_) s.full = twice(s.full);
                if (!busy()) return finish(stop_reason::exhausted);
                if (patience_ > 0 && stale_ >= patience_) return finish(stop_reason::no_improvement);
            }
        }

      private:
        static constexpr auto most_slice = portfolio_options::most_slice;
        /// Of a surrogate, in the time of an evaluation, where the problem does not tell.
        static constexpr double terms_per_evaluation = 35;

        [[nodiscard]] static constexpr std::uint64_t twice(std::uint64_t slice) noexcept { return doubled(slice, 1, most_slice); }

        /// `needed`: evaluations that come next.
        [[nodiscard]] std::optional<stop_reason> due(std::uint64_t needed = 1) {
            auto const& bound = kernel_.lower_bound();
            if (bound && !(*bound < kernel_.best_cost())) return stop_reason::proved_optimal;
            if (auto const reason = kernel_.due(needed)) return reason;
            return crew_.stopped() ? std::optional(stop_reason::stop_requested) : std::nullopt;
        }

        /// All of it between two turns.
        template <class R> struct snapshot {
            run& of;
            R& rng;
            template <class Archive> void serialize(Archive& a, unsigned) {
                a& of.kernel_& of.slice_& of.stale_& of.wider_& of.next_& of.improved_& of.acted_& of.waiting_;
                of.states_.resize(sizeof...(Ms), state{split_mix(0)});
                for (auto& s : of.states_) a& s.engine& s.resting& s.done& s.turns& s.full& s.used& s.gained& s.own;
                if constexpr (std::is_trivially_copyable_v<R>) a& rng;
            }
        };

        template <class Snapshot> std::optional<stop_reason> round_in_turn(Snapshot& now) {
            std::optional<stop_reason> reason;
            members_.for_each([&](auto const& m, std::size_t n) {
                if (n < next_ || reason || states_[n].rests() || waits(m, n)) return;
                set_slice(m, n);
                if ((reason = due(states_[n].slice))) return;
                next_ = n;
                acted_ = true;
                widen(m, n);
                crew_.keep(now);
                begin_turn(n);
                if (kernel_.observer_ends()) {
                    reason = due();
                    return;
                }
                live listener{*this};
                members_.run(m, states_[n], kernel_.best(), turn(left()), threads_of(options_.threads), options_.stop, listener);
                take_in(m, n);
            });
            return reason ? reason : due();
        }

        template <class Snapshot> std::optional<stop_reason> round_at_once(Snapshot& now) {
            std::vector<std::size_t> active;
            std::size_t anew = 0;
            members_.for_each([&]<class M>(M const& m, std::size_t n) {
                if (states_[n].rests() || waits(m, n)) return;
                widen(m, n);
                if (begins_anew<M, P>) ++anew;
                else active.push_back(n);
            });
            acted_ = !active.empty() || anew > 0;
            auto reason = due((active.size() + anew) * slice_);
            if (reason) return reason;
            crew_.keep(now);
            // How many evaluations these need is not known before: what is left for the others depends on it.
            members_.for_each([&]<class M>(M const& m, std::size_t n) {
                if (!begins_anew<M, P> || reason || states_[n].rests()) return;
                members_.run(m, states_[n], kernel_.best(), turn(left()), threads_of(options_.threads), options_.stop);
                take_in(m, n);
                reason = due(active.size() * slice_);
            });
            if (reason) return reason;
            for (auto& s : states_) s.slice = slice_; // greedy may have made them longer
            auto const most = left();
            if (most / slice_ >= active.size()) { // enough for all of them
                crew_.run(members_, states_, active, kernel_.best(), turn(most));
            } else { // what each leaves over is for those behind it
                std::uint64_t used = 0;
                for (auto const n : active) {
                    if (used == most) break;
                    members_.run(n, states_[n], kernel_.best(), turn(most - used), threads_of(options_.threads), options_.stop);
                    if (states_[n].found) used += states_[n].found->stats.evaluations - 1;
                }
            }
            // Of a round that was cut short nothing behind the first member that was cut is kept: as many evaluations then give the same search.
            bool cut = false;
            members_.for_each([&](auto const& m, std::size_t n) {
                auto& mine = states_[n];
                if (cut) {
                    mine.found.reset();
                    mine.failure = nullptr;
                } else if (mine.found || mine.failure) {
                    cut = mine.found ? was_cut(*mine.found) : options_.stop.stop_requested();
                    take_in(m, n);
                } else {
                    cut = std::find(active.begin(), active.end(), n) != active.end();
                }
            });
            return due();
        }

        [[nodiscard]] portfolio_turn turn(std::uint64_t most) const {
            portfolio_turn out{.most = most, .wider = wider_, .time = {}};
            if (auto const left = kernel_.time_left(); left < std::chrono::nanoseconds::max()) out.time = left;
            return out;
        }

        /// Evaluations that may still be made.
        [[nodiscard]] std::uint64_t left() const { return std::min(kernel_.evaluations_left(), most_slice); }

        /// Whether a member waits, unless nobody else has a turn: one that minimises a surrogate until pricing has taken as long as its tables may,
        /// one that begins apart for its share. Told by evaluations, not by the clock, so that a search that time ended is that of as many
        /// evaluations.
        template <class M> [[nodiscard]] bool waits(M const& m, std::size_t n) const {
            if (waiting_ || !busy(n)) return false;
            auto const& mine = states_[n];
            if constexpr (widens<M, P, S>) {
                bool const last = patience_ > 0 && stale_ + 1 >= patience_; // none ends without a turn
                return !(last && mine.turns == 0) && !may_have(candidates_in(m, mine.turns));
            } else if constexpr (apart_on<M, P>) {
                return has_share(n) && mine.used + (begins_anew<M, P> ? 0 : options_.slice) > share_of(m);
            } else {
                return false;
            }
        }
        /// Whether member number `n`, which begins apart, has its share alone: others improve on the best.
        [[nodiscard]] bool has_share(std::size_t n) const { return !options_.concurrent && !wider_ && !states_[n].gained; }
        template <class M> [[nodiscard]] std::uint64_t share_of(M const& m) const {
            return static_cast<std::uint64_t>(m.share * static_cast<double>(kernel_.stats().evaluations));
        }
        /// Where members run in turn.
        template <class M> void set_slice(M const& m, std::size_t n) {
            auto& mine = states_[n];
            if (mine.full == 0) mine.full = slice_;
            mine.slice = mine.full;
            if constexpr (apart_on<M, P> && !begins_anew<M, P>)
                if (has_share(n)) {
                    auto const share = share_of(m);
                    mine.slice = std::max(options_.slice, share - std::min(share, mine.used));
                }
        }
        /// Skips turns of such a member: the next one has as many candidates as it may.
        template <class M> void widen(M const& m, std::size_t n) {
            if constexpr (widens<M, P, S>) {
                auto& turn = states_[n].turns;
                for (auto now = candidates_in(m, turn); true; ++turn) {
                    auto const next = candidates_in(m, turn + 1);
                    if (next == now || !may_have(next)) return;
                    now = next;
                }
            }
        }
        [[nodiscard]] bool may_have(std::uint64_t candidates) const {
            if constexpr (requires { problem_.surrogate_evaluations(candidates, kernel_.best()); })
                return kernel_.stats().evaluations >= problem_.surrogate_evaluations(candidates, kernel_.best());
            auto const terms = static_cast<double>(candidates) * static_cast<double>(candidates) * static_cast<double>(problem_.space().size());
            return static_cast<double>(kernel_.stats().evaluations) * terms_per_evaluation >= terms;
        }

        /// Whether any member has a turn to come, beside member number `but` and those that could begin anew for ever.
        [[nodiscard]] bool busy(std::size_t but = sizeof...(Ms)) const {
            bool out = false;
            members_.for_each([&]<class M>(M const&, std::size_t n) { out = out || (n != but && !states_[n].rests() && !begins_anew<M, P>); });
            return out;
        }

        void begin_turn(std::size_t member) { kernel_.tell(member_turn<cost>{kernel_.stats().evaluations, member, kernel_.best_cost()}); }

        /// Passes on what a member tells while it runs on the calling thread, and ends it where an observer wants to end all.
        struct live {
            run& of;
            template <class Event>
                requires(std::same_as<Event, improved<cost>> ||
                         ((std::same_as<Event, proposed<cost>> || std::same_as<Event, accepted<cost>>)&&(Observer<Os, Event> || ...)))
            verdict operator()(Event event) {
                if constexpr (std::same_as<Event, improved<cost>>)
                    if (!(event.cost < of.kernel_.best_cost())) return verdict::go_on; // on its own start
                event.evaluation += of.kernel_.stats().evaluations - 1;
                of.kernel_.tell(event);
                return of.kernel_.observer_ends() ? verdict::end : verdict::go_on;
            }
        };

        template <class M> void take_in(M const& m, std::size_t n) {
            auto& mine = states_[n];
            if (mine.failure && cannot_go_on(std::exchange(mine.failure, nullptr))) {
                mine.done = true;
                return;
            }
            auto& found = *mine.found;
            // Cut short before it priced anything, it would not run at all in a search of as many evaluations.
            if (was_cut(found) && found.stats.evaluations <= 1) return mine.found.reset();
            if (options_.concurrent) begin_turn(n);
            auto part = found.stats;
            --part.evaluations; // the start
            kernel_.count(part);
            kernel_.hash(part.trajectory);
            bool ended = found.ended == stop_reason::exhausted || found.ended == stop_reason::proved_optimal;
            if constexpr (widens<M, P, S>) ended = ended && candidates_in(m, mine.turns) == candidates_in(m, mine.turns + 1);
            ++mine.turns;
            if (has_share(n)) mine.used += part.evaluations;
            mine.gained = found.cost < kernel_.best_cost();
            if (mine.gained || traits_of<search_of<M>>.repeats) mine.full = twice(mine.full);
            if constexpr (apart_on<M, P> && !begins_anew<M, P>) {
                if (!mine.own || found.cost < mine.own->second) mine.own.emplace(found.best, found.cost);
                else mine.own.reset();
            }
            if constexpr (begins_anew<M, P>) slice_ = std::clamp(part.evaluations, slice_, most_slice);
            mine.done = found.ended == stop_reason::out_of_memory || (ended && !traits_of<search_of<M>>.start_matters);
            // From what it found itself it would find nothing else; from what another found meanwhile it may.
            mine.resting = ended && !begins_anew<M, P> && !(kernel_.best_cost() < found.cost);
            if (found.cost < kernel_.best_cost()) {
                kernel_.improve(std::move(found.best), found.cost, options_.concurrent);
                for (std::size_t other = 0; other < states_.size(); ++other)
                    if (other != n) states_[other].resting = false;
            }
            if (found.lower_bound) kernel_.raise_bound(*found.lower_bound);
            mine.found.reset();
            kernel_.tell_progress(kernel_.best_cost());
        }

        /// Throws what it threw, unless it was stopped within what it prepares, or had no memory for that.
        [[nodiscard]] static bool cannot_go_on(std::exception_ptr const& failure) {
            try {
                std::rethrow_exception(failure);
            } catch (interrupted const&) {
                return true;
            } catch (std::bad_alloc const&) {
                return true;
            }
        }

        [[nodiscard]] static bool was_cut(result const& r) noexcept {
            return r.ended == stop_reason::time_budget || r.ended == stop_reason::stop_requested;
        }

        result finish(stop_reason reason) { return kernel_.finish(reason, problem_); }

        Crew& crew_;
        portfolio_members<P, S, Ms...> members_;
        P const& problem_;
        portfolio_options const& options_;
        kernel<S, cost, Os...> kernel_;
        std::vector<state> states_;
        std::uint64_t slice_ = options_.slice; ///< of members in their first turn; where they run at once of all
        std::uint64_t patience_ = 0;
        std::uint64_t stale_ = 0;    ///< rounds in a row that improved nothing
        bool wider_ = false;         ///< the last round did not: chains start from more than the best strategy
        std::uint64_t next_ = 0;     ///< the member whose turn it is,
        std::uint64_t improved_ = 0; ///< and how often the search had improved before this round
        bool acted_ = false;         ///< somebody had a turn in this round,
        bool waiting_ = false;       ///< nobody in the last one
    };

    std::tuple<Ms...> members_;
};

/// `mcmc` that in a portfolio begins at the start, not at the best.
struct mcmc_anew_fn : mcmc_fn {
    static constexpr search_traits traits{.draws_moves = true, .coarsening = true, .apart = true};
};
inline constexpr mcmc_anew_fn mcmc_anew{};

/// `portfolio(problem, start, rng, options, observers...)`: greedy, mcmc, tempering, and where the problem allows it mcmc from the start
/// (`mcmc_anew`), dominator_dp and, where there are at most 2^64 strategies, exact. mcmc goes back to its best every 100 proposals, whatever the
/// length of its turn. See `portfolio_of`.
struct portfolio_fn {
    /// Its members, with `tempered` as tempering.
    template <class Tempering> [[nodiscard]] static auto members_with(Tempering tempered) {
        return portfolio_of(
            member("greedy", greedy, greedy_options{}, 1. / 3), member("dominator_dp", dominator_dp, dominator_dp_options{.candidates = 12}),
            member("mcmc", mcmc, mcmc_options{.reset_interval = 100}), member("mcmc_anew", mcmc_anew, mcmc_options{.reset_interval = 100}, 3. / 20),
            member("tempering", std::move(tempered), tempering_options{}, 1. / 20), member("exact", exact, exact_options{.walk = 0, .sweeps = 0}));
    }
    [[nodiscard]] static auto members() { return members_with(tempering); }
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, portfolio_options const& options = {},
                                                      Os&&... observers) const {
        return members()(problem, std::move(start), rng, options, observers...);
    }
};
inline constexpr portfolio_fn portfolio{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/portfolio.ipp>
#endif
