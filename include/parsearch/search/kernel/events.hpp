#pragma once
/// What observers of a search are told.
///
/// An observer is anything callable with one or more of the events below, `C` being the cost type of the problem:
/// `[](improved<double> const& e) {...}`, an object with several `operator()`, or a generic lambda, which is told
/// everything. An event that nobody handles costs nothing.
///
/// An observer that answers `verdict::end` ends the search before its next proposal; one that answers nothing lets it go on. An observer of
/// `budget_spent` may grant more: the search goes on from its state as if it had had as much from the beginning, but for options whose
/// defaults derive from the budget. Otherwise observers never influence a search.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>

namespace parsearch::search {

/// What an observer may answer to any event.
enum class verdict : bool { go_on, end };

/// Changes were drawn. `cost` is empty where it is above the bound given to the evaluator.
template <class C> struct proposed {
    std::uint64_t evaluation;      ///< strategies priced so far
    std::optional<std::size_t> op; ///< the first operator changed, if any is
    std::size_t move;              ///< number of the move in the problem's mix
    std::optional<C> cost;
    C best; ///< least cost before this proposal
};

/// The proposal became current.
template <class C> struct accepted {
    std::uint64_t evaluation;
    std::optional<std::size_t> op;
    std::size_t move;
    C cost;
    C best; ///< least cost before this proposal
};

/// A plan is better than every one before. Told after `accepted`, where that is told.
template <class C> struct improved {
    std::uint64_t evaluation;
    C cost;
    C before; ///< the least cost until now
};

/// A member of a portfolio begins to search from the best strategy so far, or has done so where members run at once. What it tells follows.
template <class C> struct member_turn {
    std::uint64_t evaluation;
    std::size_t member; ///< its number
    C best;
};

/// The search left its current strategy for one that it knows: the best, or that of another start.
template <class C> struct restarted {
    std::uint64_t evaluation;
    C cost; ///< of the strategy that was left
    C best; ///< of the one gone to
};

/// One of several strategies to start from was priced.
template <class C> struct started {
    std::uint64_t evaluation;
    std::uint64_t start; ///< 0: the given one
    C cost;
};

/// Two replicas of neighbouring temperatures exchanged them.
template <class C> struct exchanged {
    std::uint64_t evaluation;
    std::size_t colder; ///< number of the colder temperature, 0 being the coldest
    C got;              ///< cost of the strategy that has it now
    C gave;             ///< of the one that had it
};

/// A better lower bound on the cost of all strategies is known.
template <class C> struct bound_raised {
    std::uint64_t evaluation;
    C bound;
    std::optional<C> before; ///< the bound until now
    C best;
};

/// Told every `progress_interval` evaluations. `stats.seconds` is filled in.
template <class C> struct progress {
    search_stats stats;
    C cost; ///< of the current strategy
    C best;
};

/// The budget of evaluations or time is spent, or does not suffice for the next round of a search that has rounds. An observer of it may answer
/// an `std::optional<extension>`: what it grants, if anything. Told until nothing is granted.
template <class C> struct budget_spent {
    stop_reason budget; ///< which one
    search_stats stats;
    C best; ///< infinity before there is a plan
    std::optional<C> lower_bound;
};
struct extension {
    std::optional<std::chrono::nanoseconds> time{}; ///< from now on
    std::optional<std::uint64_t> evaluations{};     ///< beside the budget
    friend bool operator==(extension const&, extension const&) = default;
};

/// `O` handles at least one of `Events`. (A constant first: compilers would list every event when the concept is not met.)
template <class O, class... Events> inline constexpr bool handles_any = (std::is_invocable_v<O&, Events const&> || ...);
template <class O, class... Events>
concept Observer = handles_any<O, Events...>;

/// An observer of one event from a function object: `on<improved>([](auto const& e) {...})`.
template <template <class> class Event, class F> struct handler {
    F f;
    template <class C>
    constexpr decltype(auto) operator()(Event<C> const& event)
        requires std::invocable<F&, Event<C> const&>
    {
        return f(event);
    }
    template <class C>
    constexpr decltype(auto) operator()(Event<C> const& event) const
        requires std::invocable<F const&, Event<C> const&>
    {
        return f(event);
    }
};
template <template <class> class Event, class F> [[nodiscard]] constexpr handler<Event, std::decay_t<F>> on(F&& f) { return {std::forward<F>(f)}; }

/// What observers answer to an event.
template <class Event> struct answer_to {
    using type = verdict;
};
template <class C> struct answer_to<budget_spent<C>> {
    using type = std::optional<extension>;
};
template <class Event> using answer_t = typename answer_to<Event>::type;

/// Tells the observers that handle it of an event, in order. The answer: whether any ends the search; what the first grants that grants more.
template <class Event, class... Os> [[nodiscard]] answer_t<Event> notify(Event const& event, Os&... observers) {
    answer_t<Event> answer{};
    [[maybe_unused]] auto const one = [&](auto& observer) {
        if constexpr (std::is_invocable_v<decltype(observer), Event const&>) {
            using said = std::invoke_result_t<decltype(observer), Event const&>;
            if constexpr (std::is_convertible_v<said, answer_t<Event>>) {
                answer_t<Event> const one_says = observer(event);
                if (answer == answer_t<Event>{}) answer = one_says;
            } else {
                static_assert(std::is_void_v<said> || std::is_same_v<said, verdict>,
                              "an observer must answer nothing, search::verdict, or to search::budget_spent an optional search::extension");
                static_cast<void>(observer(event));
            }
        }
    };
    (one(observers), ...);
    return answer;
}

/// Observers of any types as one observer of `Events`, for searches that are compiled once. It refers to them.
template <class... Events> class listener {
  public:
    template <class... Os> explicit listener(Os&... observers) : to_(telling<Events>(observers...)...) {}

    template <class Event>
        requires(std::is_same_v<Event, Events> || ...)
    answer_t<Event> operator()(Event const& event) const {
        auto const& f = std::get<function<Event>>(to_);
        return f ? f(event) : answer_t<Event>{};
    }

  private:
    template <class Event> using function = std::function<answer_t<Event>(Event const&)>;
    template <class Event, class... Os> static function<Event> telling(Os&... observers) {
        if constexpr ((Observer<Os, Event> || ...)) return [&observers...](Event const& event) { return notify(event, observers...); };
        else return {};
    }
    std::tuple<function<Events>...> to_;
};

/// An observer that counts proposals and acceptances of each move of a mix.
struct move_counts {
    struct counts {
        std::uint64_t proposed = 0, accepted = 0, improved = 0;
        friend bool operator==(counts const&, counts const&) = default;
    };
    std::vector<counts> of_move;

    template <class C> void operator()(proposed<C> const& e) { ++at(e.move).proposed; }
    template <class C> void operator()(accepted<C> const& e) {
        ++at(e.move).accepted;
        last_ = e.move;
    }
    template <class C> void operator()(improved<C> const&) {
        if (last_) ++at(*last_).improved;
    }

  private:
    counts& at(std::size_t move) {
        if (of_move.size() <= move) of_move.resize(move + 1);
        return of_move[move];
    }
    std::optional<std::size_t> last_; // the move accepted last, which improvements are of
};

} // namespace parsearch::search
