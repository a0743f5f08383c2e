#pragma once
/// What every running search has: the best plan, the bound, counts, a budget, and observers.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/stopping.hpp>

namespace parsearch::search {

/// One running search for a plan `S` of least cost `C`, which `Os` observe. The search tells it what it finds, and asks it when to end:
///
///     kernel<S, C, Os...> run("my_search", budget_of(options), {}, observers...);
///     run.count_evaluation();
///     run.begin(start, cost);
///     while (!run.due()) { run.count_evaluation(); if (cost < run.best_cost()) run.improve(plan, cost); }
///     return run.finish(*run.due());
template <class S, class C, class... Os> class kernel {
  public:
    /// The time runs from here. Refers to the observers.
    kernel(std::string_view algorithm, budget limits, patience_rule patience, Os&... observers)
        : algorithm_(algorithm), limit_(std::move(limits), patience), observers_(observers...) {}

    [[nodiscard]] search_stats const& stats() const noexcept { return stats_; }
    /// Whether there is a best plan.
    [[nodiscard]] bool has_best() const noexcept { return best_.has_value(); }
    [[nodiscard]] S const& best() const noexcept { return *best_; }
    [[nodiscard]] C const& best_cost() const noexcept { return best_cost_; }
    [[nodiscard]] std::optional<C> const& lower_bound() const noexcept { return lower_bound_; }
    /// Evaluations and time that are left.
    [[nodiscard]] std::uint64_t evaluations_left() const noexcept { return limit_.left(stats_.evaluations); }
    [[nodiscard]] std::chrono::nanoseconds time_left() const { return limit_.time_left(); }
    [[nodiscard]] std::chrono::nanoseconds elapsed() const { return limit_.elapsed(); }
    /// When the time is over; see `stopping::end`.
    [[nodiscard]] std::optional<stopping::clock::time_point> end() const { return limit_.end(); }

    /// The reason to end now, if any; from then on always that. Where a budget is spent, observers are asked for more, until they grant none; also
    /// where less is left than the next `needed` evaluations, although that is no reason to end.
    [[nodiscard]] std::optional<stop_reason> due(std::uint64_t needed = 1) {
        if (ended_) return ended_;
        if (observer_ends_) return ended_ = stop_reason::observer;
        auto reason = limit_.due(evaluations());
        if constexpr ((Observer<Os, budget_spent<C>> || ...))
            while (!refused_ &&
                   (reason == stop_reason::evaluation_budget || reason == stop_reason::time_budget || (!reason && evaluations_left() < needed))) {
                stats_.seconds = seconds();
                budget_spent<C> const event{reason.value_or(stop_reason::evaluation_budget), stats_, best_cost_, lower_bound_};
                auto const more = std::apply([&](auto&... observer) { return notify(event, observer...); }, observers_);
                auto const before = std::pair(reason, evaluations_left());
                if (more) limit_.extend(*more);
                if (more) reason = limit_.due(evaluations());
                refused_ = before == std::pair(reason, evaluations_left()); // also where what is granted is of no use
            }
        return ended_ = reason;
    }
    /// The same, where long work that `end` limits was interrupted: the clock is read.
    [[nodiscard]] std::optional<stop_reason> due_now() {
        limit_.look_next();
        return due();
    }
    /// What `price()` answers; nothing, and the search ends, where it throws `interrupted`, as a budget ends it, or `std::bad_alloc`. That evaluation
    /// was counted, and is not any more: the search is that of one evaluation less.
    template <class F> [[nodiscard]] std::optional<C> priced(F const& price) {
        try {
            return price();
        } catch (interrupted const&) {
            --stats_.evaluations;
            cut_ = true;
            ended_ = limit_.stop_requested() || limit_.time_left() > std::chrono::nanoseconds::zero() ? stop_reason::stop_requested
                                                                                                      : stop_reason::time_budget;
        } catch (std::bad_alloc const&) {
            --stats_.evaluations;
            cut_ = true;
            ended_ = stop_reason::out_of_memory;
        }
        return {};
    }
    /// That has ended the search.
    [[nodiscard]] bool was_cut() const noexcept { return cut_; }
    /// An observer has ended the search.
    [[nodiscard]] bool observer_ends() const noexcept { return observer_ends_; }

    /// Tells an event to the observers that handle it.
    template <class Event> void tell(Event const& event) {
        auto const all = [&](auto&... observer) { return notify(event, observer...); };
        if (std::apply(all, observers_) == verdict::end) observer_ends_ = true;
    }
    void tell_progress([[maybe_unused]] C const& current) {
        if constexpr ((Observer<Os, progress<C>> || ...)) {
            stats_.seconds = seconds();
            tell(progress<C>{stats_, current, best_cost_});
        }
    }

    /// Tells the progress where it is due: every `interval` evaluations; 0: never.
    void report(std::uint64_t interval, C const& current) {
        if (interval > 0 && stats_.evaluations % interval == 0) tell_progress(current);
    }

    void count_evaluation() noexcept { ++stats_.evaluations; }
    void discount_evaluation() noexcept { --stats_.evaluations; }
    void count_proposal() noexcept { ++stats_.proposals; }
    void count_accepted() noexcept { ++stats_.accepted; }
    void count_node() noexcept { ++stats_.nodes; }
    void count_projected(std::uint64_t operators) noexcept { stats_.projected += operators; }
    void count_improvements(std::uint64_t n) noexcept { stats_.improved += n; }
    /// Counts what a part of the search counted.
    void count(search_stats const& part) noexcept { add_counts(stats_, part); }

    /// Takes a plan for the best without a word: the start, or what replaces it. Throws `invalid_input` where the cost is not a number.
    template <class Plan> void begin(Plan&& plan, C const& cost) {
        require_ordered(cost);
        best_ = std::forward<Plan>(plan);
        best_cost_ = cost;
        limit_.improved(stats_.evaluations);
    }
    /// Takes a plan for the best, which it is: counts that, and tells it unless a part of the search has told it.
    template <class Plan> void improve(Plan&& plan, C const& cost, bool tells = true) {
        auto const before = std::exchange(best_cost_, cost);
        best_ = std::forward<Plan>(plan);
        ++stats_.improved;
        limit_.improved(stats_.evaluations);
        if (tells) tell(improved<C>{stats_.evaluations, cost, before});
    }
    /// The first plan, or one that is better than all before: `begin` or `improve`. Answers whether it is one.
    template <class Plan> bool offer(Plan&& plan, C const& cost) {
        require_ordered(cost);
        if (!has_best()) begin(std::forward<Plan>(plan), cost);
        else if (cost < best_cost_) improve(std::forward<Plan>(plan), cost);
        else return false;
        return true;
    }

    /// No plan costs less than `bound`. Lower bounds than the known one change nothing.
    void raise_bound(C const& bound) {
        if (!(bound == bound)) throw invalid_input(algorithm_, ": a lower bound does not equal itself (NaN): bounds must be totally ordered");
        if (lower_bound_ && !(*lower_bound_ < bound)) return;
        auto const before = std::exchange(lower_bound_, bound);
        tell(bound_raised<C>{stats_.evaluations, bound, before, best_cost_});
    }
    void require_ordered(C const& c) const {
        if (!(c == c))
            throw invalid_input(algorithm_, ": evaluation number ", stats_.evaluations,
                                " answered a cost that does not equal itself (NaN): costs must be totally ordered");
    }

    /// Adds a word to the hash of the trajectory: FNV-1a (Fowler, Noll, Vo) over its bytes, least significant first.
    void hash(std::uint64_t word) noexcept {
        for (int shift = 0; shift < 64; shift += 8) stats_.trajectory = (stats_.trajectory ^ (word >> shift & 0xff)) * 0x100000001b3;
    }

    /// Best, bound and counts through an archive as of Boost.Serialization. What is read goes on with the budget and the time of this run.
    template <class Archive> void serialize(Archive& a, unsigned) { a& stats_& best_& best_cost_& lower_bound_& limit_; }

    void set_trajectory(std::uint64_t hash) noexcept { stats_.trajectory = hash; }

    /// The best plan, to note what does not change its cost.
    [[nodiscard]] S& amend_best() noexcept { return *best_; }

    /// Ends the search, which has a best plan. `feasible`: whether that is.
    [[nodiscard]] search_result<S, C> finish(stop_reason reason, bool feasible) {
        if (cut_) reason = *ended_; // though it was the last evaluation that the search had in mind
        stats_.seconds = seconds();
        return {*std::move(best_), std::move(best_cost_), std::move(lower_bound_), stats_, feasible ? reason : stop_reason::nothing_feasible, reason};
    }
    /// The best is feasible where its cost is finite.
    [[nodiscard]] search_result<S, C> finish(stop_reason reason) { return finish(reason, best_cost_ < cost_traits<C>::infinity()); }
    /// And where `problem.feasible(best)` does not deny it.
    template <class P>
        requires(!std::is_same_v<P, bool>)
    [[nodiscard]] search_result<S, C> finish(stop_reason reason, P const& problem) {
        bool feasible = best_cost_ < cost_traits<C>::infinity();
        if constexpr (OffersFeasibility<P, S>) feasible = feasible && problem.feasible(*best_);
        return finish(reason, feasible);
    }

  private:
    [[nodiscard]] std::uint64_t evaluations() const noexcept { return std::max<std::uint64_t>(stats_.evaluations, 1); }
    [[nodiscard]] double seconds() const { return std::chrono::duration<double>(limit_.elapsed()).count(); }

    std::string_view algorithm_;
    stopping limit_;
    std::tuple<Os&...> observers_;
    search_stats stats_{.trajectory = 0xcbf29ce484222325}; // FNV-1a's offset basis
    std::optional<S> best_;
    C best_cost_ = cost_traits<C>::infinity();
    std::optional<C> lower_bound_;
    std::optional<stop_reason> ended_;
    bool observer_ends_ = false;
    bool cut_ = false;     // within an evaluation
    bool refused_ = false; // no observer grants more
};

/// Whether each observer handles one of `Events`, which are all that a search tells. A class of its own, so that a compiler complains once for all
/// runs.
template <class... Events> struct tells {
    template <class... Os> static constexpr bool all() {
        static_assert((handles_any<Os, Events...> && ...),
                      "an observer handles no event of this search: it must be callable with one of those that its documentation names");
        return true;
    }
};
/// The same for the events of searches of strategies.
template <class C, class... Os> struct observed {
    static_assert((handles_any<Os, proposed<C>, accepted<C>, improved<C>, restarted<C>, bound_raised<C>, progress<C>, started<C>, exchanged<C>,
                               member_turn<C>, budget_spent<C>> &&
                   ...),
                  "an observer handles no event of this search: it must be callable with one of search::proposed<C>, accepted<C>, improved<C>, "
                  "restarted<C>, bound_raised<C>, progress<C>, started<C>, exchanged<C>, member_turn<C> or budget_spent<C>, where C is the problem's "
                  "cost type");
    static constexpr bool checked = true;
};

} // namespace parsearch::search
