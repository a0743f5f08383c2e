#pragma once
/// What the searches that change one strategy step by step share: pricing changes, keeping the best, counting, telling.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/stopping.hpp>

namespace parsearch::search {

/// Holds a current strategy and prices changes to it: through `propose`, `commit` and `roll_back` where the problem's
/// evaluator is incremental, else by changing the strategy, pricing it whole, and changing it back.
/// Each `propose` is followed by one `keep` or `drop`.
template <class P, class S> class pricer {
  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using changes = std::span<change<configuration> const>;
    static constexpr bool incremental = IncrementalEvaluator<evaluator_t<P>, S, configuration>;

    pricer(P const& problem, S start) : evaluator_(problem.evaluator()), current_(std::move(start)) {}

    [[nodiscard]] S const& current() const noexcept { return current_; }

    /// The cost of the current strategy, priced whole.
    [[nodiscard]] cost price() {
        if constexpr (incremental) return evaluator_.reset(std::as_const(current_));
        else return evaluator_(std::as_const(current_));
    }

    /// Goes to a strategy whose cost is known.
    void jump(S const& to) {
        current_ = to;
        if constexpr (incremental) evaluator_.reset(std::as_const(current_));
    }

    /// The cost with `what` applied, or nothing where it is above `bound`. `what` must live until `keep` or `drop`.
    [[nodiscard]] std::optional<cost> propose(changes what, cost const& bound) {
        std::optional<cost> priced;
        if constexpr (incremental) {
            pending_ = what;
            priced = evaluator_.propose(what, bound);
        } else {
            undo_.clear();
            for (auto const& c : what) {
                undo_.push_back({c.op, static_cast<configuration>(configuration_of(std::as_const(current_), c.op))});
                set_configuration(current_, c.op, c.configuration);
            }
            priced.emplace(evaluator_(std::as_const(current_)));
        }
        // A NaN above the bound would otherwise pass for a rejection.
        if (priced && *priced == *priced && *priced > bound) priced.reset();
        return priced;
    }

    void keep() {
        if constexpr (incremental) {
            evaluator_.commit();
            for (auto const& c : pending_) set_configuration(current_, c.op, c.configuration);
        } else {
            undo_.clear();
        }
    }

    void drop() {
        if constexpr (incremental) {
            evaluator_.roll_back();
        } else {
            for (std::size_t n = undo_.size(); n-- > 0;) set_configuration(current_, undo_[n].op, undo_[n].configuration);
            undo_.clear();
        }
    }

    /// The cost of a strategy that does not become current, priced whole. There must be a current one.
    [[nodiscard]] cost look_at(S const& s) { return evaluator_(s); }

    /// `what`, equal to what is proposed, outlives it until `keep` or `drop`.
    void hold(changes what) { pending_ = what; }

    /// Applies changes that were accepted elsewhere. No proposal may be open.
    void follow(changes what) {
        if constexpr (incremental) {
            static_cast<void>(evaluator_.propose(what, cost_traits<cost>::infinity()));
            evaluator_.commit();
        }
        for (auto const& c : what) set_configuration(current_, c.op, c.configuration);
    }

  private:
    evaluator_t<P> evaluator_;
    S current_;
    changes pending_;                         // incremental: what `keep` applies
    std::vector<change<configuration>> undo_; // otherwise: what `drop` applies, last first
};

/// Where a proposal comes from, for events and for the trajectory.
struct proposal_origin {
    std::size_t move = 0;
    std::optional<std::uint64_t> index; ///< the configuration's number among the operator's, if it is known
};

/// Whether each observer handles an event of a search by cost `C`. A class of its own, so that a compiler complains once for all sessions of a search.
template <class C, class... Os> struct observed {
    static_assert((handles_any<Os, proposed<C>, accepted<C>, improved<C>, restarted<C>, bound_raised<C>, progress<C>, started<C>, exchanged<C>> && ...),
                  "an observer handles no event of this search: it must be callable with one of search::proposed<C>, accepted<C>, "
                  "improved<C>, restarted<C>, bound_raised<C>, progress<C>, started<C> or exchanged<C>, where C is the problem's cost type");
    static constexpr bool checked = true;
};

/// One running search that prices with a `Pricer`: a `pricer`, or what offers the same. `Os` observe it.
template <class Pricer, class S, class... Os> class basic_session {
  public:
    using cost = typename Pricer::cost;
    using changes = typename Pricer::changes;

    static_assert(observed<cost, Os...>::checked);

    /// `make_pricer()` answers the pricer, whose current strategy is `start`. Prices the start; throws `invalid_input` where its cost
    /// is not a number.
    template <class Make>
    basic_session(std::string_view algorithm, Make const& make_pricer, S start, budget limits, patience_rule patience,
                  std::uint64_t progress_interval, Os&... observers)
        : algorithm_(algorithm), limit_(std::move(limits), patience), observers_(observers...), progress_interval_(progress_interval),
          pricer_(make_pricer()), best_(std::move(start)), current_cost_(pricer_.price()), best_cost_(current_cost_) {
        stats_.trajectory = 0xcbf29ce484222325; // FNV-1a's offset basis
        stats_.evaluations = 1;
        require_ordered(current_cost_);
    }

    [[nodiscard]] S const& current() const noexcept { return pricer_.current(); }
    [[nodiscard]] cost const& current_cost() const noexcept { return current_cost_; }
    [[nodiscard]] cost const& best_cost() const noexcept { return best_cost_; }
    [[nodiscard]] search_stats const& stats() const noexcept { return stats_; }
    [[nodiscard]] Pricer& prices() noexcept { return pricer_; }

    /// The reason to end now, if any.
    [[nodiscard]] std::optional<stop_reason> due() { return limit_.due(stats_.evaluations); }

    /// Prices `what`, at least one change: its cost, or nothing where it is above `bound`. To be followed by `keep` or `drop`.
    [[nodiscard]] std::optional<cost> propose(changes what, cost const& bound, proposal_origin origin) {
        what_ = what;
        origin_ = origin;
        ++stats_.proposals;
        ++stats_.evaluations;
        proposed_cost_ = pricer_.propose(what, bound);
        if (proposed_cost_) require_ordered(*proposed_cost_);
        tell(proposed<cost>{stats_.evaluations, what.front().op, origin.move, proposed_cost_, best_cost_});
        return proposed_cost_;
    }

    /// Counts a proposal that changes nothing and so is not priced.
    void propose_nothing(std::size_t op, proposal_origin origin) {
        ++stats_.proposals;
        tell(proposed<cost>{stats_.evaluations, op, origin.move, current_cost_, best_cost_});
    }

    /// Makes the proposal current. Precondition: `propose` answered a cost.
    void keep() {
        pricer_.keep();
        current_cost_ = *proposed_cost_;
        ++stats_.accepted;
        follow();
        auto const op = what_.front().op;
        tell(accepted<cost>{stats_.evaluations, op, origin_.move, current_cost_, best_cost_});
        if (current_cost_ < best_cost_) {
            auto const before = std::exchange(best_cost_, current_cost_);
            best_ = pricer_.current();
            ++stats_.improved;
            limit_.improved(stats_.evaluations);
            left_best_ = false;
            tell(improved<cost>{stats_.evaluations, op, origin_.move, current_cost_, before});
        } else {
            left_best_ = true;
        }
        report();
    }

    void drop() {
        pricer_.drop();
        report();
    }

    /// Counts a partial strategy that was bounded, and tells the progress every `interval` of them; 0: never.
    void explored(std::uint64_t interval) {
        ++stats_.nodes;
        if (interval > 0 && stats_.nodes % interval == 0) tell_progress();
    }

    /// Makes the best strategy current again, where it is not.
    void restart() {
        if (!left_best_) return;
        pricer_.jump(best_);
        left_best_ = false;
        auto const left = std::exchange(current_cost_, best_cost_);
        tell(restarted<cost>{stats_.evaluations, left, best_cost_});
    }

    /// Makes a strategy current that this session has priced before.
    void go_to(S const& strategy, cost const& known) {
        pricer_.jump(strategy);
        left_best_ = true;
        auto const left = std::exchange(current_cost_, known);
        tell(restarted<cost>{stats_.evaluations, left, current_cost_});
    }

    /// The proposals that follow change a strategy of that cost: for searches with several current strategies.
    void take_up(cost const& current) { current_cost_ = current; }

    /// Tells that two replicas exchanged their temperatures.
    void tell_exchange(std::size_t colder, cost const& got, cost const& gave) { tell(exchanged<cost>{stats_.evaluations, colder, got, gave}); }

    /// Tells the cost of the start as that of start number 0, where `consider` follows.
    void count_start() { tell(started<cost>{stats_.evaluations, starts_++, current_cost_}); }

    /// Prices another strategy to start from. The current one stays, the best becomes the better of the two.
    [[nodiscard]] cost consider(S const& strategy) {
        ++stats_.evaluations;
        cost const priced = pricer_.look_at(strategy);
        require_ordered(priced);
        tell(started<cost>{stats_.evaluations, starts_++, priced});
        if (priced < best_cost_) {
            best_ = strategy;
            best_cost_ = priced;
            left_best_ = true;
            limit_.improved(stats_.evaluations);
        }
        return priced;
    }

    [[nodiscard]] std::optional<cost> const& lower_bound() const noexcept { return lower_bound_; }

    /// No strategy costs less than `bound`. Lower bounds than the known one change nothing.
    void raise_bound(cost const& bound) {
        if (!(bound == bound)) throw invalid_input(algorithm_, ": a lower bound does not equal itself (NaN): bounds must be totally ordered");
        if (lower_bound_ && !(*lower_bound_ < bound)) return;
        auto const before = std::exchange(lower_bound_, bound);
        tell(bound_raised<cost>{stats_.evaluations, bound, before, best_cost_});
    }

    /// Ends the session.
    [[nodiscard]] search_result<S, cost> finish(stop_reason reason) {
        stats_.seconds = seconds();
        return {std::move(best_), std::move(best_cost_), std::move(lower_bound_), stats_, reason};
    }

  private:
    template <class Event> void tell(Event const& event) {
        std::apply([&event](auto&... observer) { (tell_one(observer, event), ...); }, observers_);
    }
    template <class O, class Event> static void tell_one(O& observer, Event const& event) {
        if constexpr (Observer<O, Event>) observer(event);
    }

    // Tells the progress where it is due: after the proposal is kept or dropped, so that all it says fits together.
    void report() {
        if (progress_interval_ > 0 && stats_.evaluations % progress_interval_ == 0) tell_progress();
    }
    void tell_progress() {
        if constexpr ((Observer<Os, progress<cost>> || ...)) {
            stats_.seconds = seconds();
            tell(progress<cost>{stats_, current_cost_, best_cost_});
        }
    }

    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(limit_.elapsed()).count(); }

    void require_ordered(cost const& c) const {
        if (!(c == c))
            throw invalid_input(algorithm_, ": evaluation number ", stats_.evaluations,
                                " answered a cost that does not equal itself (NaN): costs must be totally ordered");
    }

    // FNV-1a (Fowler, Noll, Vo) over the bytes of a word, least significant first.
    void hash(std::uint64_t word) {
        for (int shift = 0; shift < 64; shift += 8) stats_.trajectory = (stats_.trajectory ^ (word >> shift & 0xff)) * 0x100000001b3;
    }

    // Adds an accepted proposal to the trajectory: its number, its operator and what was drawn there; where that is not
    // known, each operator changed and its place among the changes.
    void follow() {
        hash(stats_.proposals);
        if (origin_.index) {
            hash(what_.front().op);
            hash(*origin_.index);
        } else {
            for (std::size_t n = 0; n < what_.size(); ++n) {
                hash(what_[n].op);
                hash(n);
            }
        }
    }

    std::string_view algorithm_;
    std::uint64_t starts_ = 0;
    stopping limit_;
    std::tuple<Os&...> observers_;
    std::uint64_t progress_interval_;
    search_stats stats_;
    Pricer pricer_;
    S best_;
    cost current_cost_, best_cost_;
    std::optional<cost> lower_bound_;
    bool left_best_ = false; // the current strategy may differ from the best
    changes what_;
    proposal_origin origin_;
    std::optional<cost> proposed_cost_;
};

/// One running search of problem `P` on one thread. `Os` observe it.
template <class P, class S, class... Os> class session : public basic_session<pricer<P, S>, S, Os...> {
  public:
    /// Prices the start. Throws `invalid_input` where its cost is not a number.
    session(std::string_view algorithm, P const& problem, S const& start, budget limits, patience_rule patience, std::uint64_t progress_interval,
            Os&... observers)
        : basic_session<pricer<P, S>, S, Os...>(
              algorithm, [&] { return pricer<P, S>(problem, start); }, start, std::move(limits), patience, progress_interval, observers...) {}
};

} // namespace parsearch::search
