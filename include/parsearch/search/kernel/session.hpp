#pragma once
/// What the searches that change one strategy step by step share: pricing changes, and going to what they make.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>
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

    pricer(P const& problem, S start) : problem_(&problem), evaluator_(problem.evaluator()), current_(std::move(start)) {}

    /// What the problem says of a strategy of finite cost: see `SearchProblem`.
    [[nodiscard]] bool feasible(S const& s) const
        requires OffersFeasibility<P, S>
    {
        return problem_->feasible(s);
    }

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
    P const* problem_;
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

/// One running search that prices with a `Pricer`: a `pricer`, or what offers the same. `Os` observe it.
template <class Pricer, class S, class... Os> class basic_session : public kernel<S, typename Pricer::cost, Os...> {
    using base = kernel<S, typename Pricer::cost, Os...>;

  public:
    using cost = typename Pricer::cost;
    using changes = typename Pricer::changes;

    static_assert(observed<cost, Os...>::checked);

    /// `make_pricer()` answers the pricer, whose current strategy is `start`. Prices the start; throws `invalid_input` where its cost
    /// is not a number.
    template <class Make>
    basic_session(std::string_view algorithm, Make const& make_pricer, S start, budget limits, patience_rule patience,
                  std::uint64_t progress_interval, Os&... observers)
        : base(algorithm, std::move(limits), patience, observers...), progress_interval_(progress_interval), pricer_(make_pricer()),
          current_cost_(pricer_.price()) {
        base::count_evaluation();
        base::begin(std::move(start), current_cost_);
    }

    [[nodiscard]] S const& current() const noexcept { return pricer_.current(); }
    [[nodiscard]] cost const& current_cost() const noexcept { return current_cost_; }
    [[nodiscard]] Pricer& prices() noexcept { return pricer_; }

    /// Prices `what`, at least one change: its cost, or nothing where it is above `bound`, or was cut (see `kernel::priced`). To be followed by
    /// `keep` or `drop`.
    [[nodiscard]] std::optional<cost> propose(changes what, cost const& bound, proposal_origin origin) {
        what_ = what;
        origin_ = origin;
        proposed_cost_.reset();
        if (base::was_cut()) return {};
        base::count_evaluation();
        proposed_cost_ = base::priced([&] { return pricer_.propose(what, bound); });
        if (base::was_cut()) return {};
        base::count_proposal();
        if (proposed_cost_) base::require_ordered(*proposed_cost_);
        base::tell(proposed<cost>{base::stats().evaluations, what.front().op, origin.move, proposed_cost_, base::best_cost()});
        return proposed_cost_;
    }

    /// Counts a proposal that changes nothing and so is not priced.
    void propose_nothing(std::optional<std::size_t> op, proposal_origin origin) {
        base::count_proposal();
        base::tell(proposed<cost>{base::stats().evaluations, op, origin.move, current_cost_, base::best_cost()});
    }

    /// Makes the proposal current, unless it was cut. Precondition: else `propose` answered a cost.
    void keep() {
        if (base::was_cut()) return drop();
        pricer_.keep();
        current_cost_ = *proposed_cost_;
        base::count_accepted();
        follow();
        base::tell(accepted<cost>{base::stats().evaluations, what_.front().op, origin_.move, current_cost_, base::best_cost()});
        left_best_ = !(current_cost_ < base::best_cost());
        if (!left_best_) base::improve(pricer_.current(), current_cost_);
        report();
    }

    void drop() {
        pricer_.drop();
        report();
    }

    /// Counts a partial strategy that was bounded, and tells the progress every `interval` of them; 0: never.
    void explored(std::uint64_t interval) {
        base::count_node();
        if (interval > 0 && base::stats().nodes % interval == 0) base::tell_progress(current_cost_);
    }

    /// Makes the best strategy current again, where it is not.
    void restart() {
        if (!left_best_ || !jumps(base::best())) return;
        left_best_ = false;
        auto const left = std::exchange(current_cost_, base::best_cost());
        base::tell(restarted<cost>{base::stats().evaluations, left, base::best_cost()});
    }

    /// Makes a strategy current that this session has priced before.
    void go_to(S const& strategy, cost const& known) {
        if (!jumps(strategy)) return;
        left_best_ = true;
        auto const left = std::exchange(current_cost_, known);
        base::tell(restarted<cost>{base::stats().evaluations, left, current_cost_});
    }

    /// The proposals that follow change a strategy of that cost: for searches with several current strategies.
    void take_up(cost const& current) { current_cost_ = current; }

    /// Tells that two replicas exchanged their temperatures.
    void tell_exchange(std::size_t colder, cost const& got, cost const& gave) {
        base::tell(exchanged<cost>{base::stats().evaluations, colder, got, gave});
    }

    /// Tells the cost of the start as that of start number 0, where `consider` follows.
    void count_start() { base::tell(started<cost>{base::stats().evaluations, starts_++, current_cost_}); }

    /// Prices another strategy to start from; nothing where that was cut. The current one stays, the best becomes the better of the two.
    [[nodiscard]] std::optional<cost> consider(S const& strategy) {
        base::count_evaluation();
        auto const looked = base::priced([&]() -> std::optional<cost> { return pricer_.look_at(strategy); });
        if (!looked) return {};
        cost const& priced = *looked;
        base::require_ordered(priced);
        base::tell(started<cost>{base::stats().evaluations, starts_++, priced});
        if (priced < base::best_cost()) {
            base::begin(strategy, priced);
            left_best_ = true;
        }
        return looked;
    }

    /// Ends the session. The best is feasible where its cost is finite, and the problem has nothing against it.
    [[nodiscard]] search_result<S, cost> finish(stop_reason reason) { return base::finish(reason, pricer_); }

  private:
    // Whether the strategy became current: it is priced anew.
    bool jumps(S const& to) {
        base::count_evaluation();
        auto const arrived = base::priced([&]() -> std::optional<cost> {
            pricer_.jump(to);
            return current_cost_;
        });
        if (!arrived) return false;
        base::discount_evaluation();
        return true;
    }

    // After the proposal is kept or dropped, so that all that is told fits together.
    void report() { base::report(progress_interval_, current_cost_); }

    // Adds an accepted proposal to the trajectory: its number, its operator and what was drawn there; where that is not
    // known, each operator changed and its place among the changes.
    void follow() {
        base::hash(base::stats().proposals);
        if (origin_.index) {
            base::hash(number(what_.front().op));
            base::hash(*origin_.index);
        } else {
            for (std::size_t n = 0; n < what_.size(); ++n) {
                base::hash(number(what_[n].op));
                base::hash(n);
            }
        }
    }
    static std::uint64_t number(std::optional<std::size_t> op) { return op ? *op : std::numeric_limits<std::uint64_t>::max(); }

    std::uint64_t starts_ = 0;
    std::uint64_t progress_interval_;
    Pricer pricer_;
    cost current_cost_;
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
