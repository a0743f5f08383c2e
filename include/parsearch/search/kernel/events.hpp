#pragma once
/// What observers of a search are told.
///
/// An observer is anything callable with one or more of the events below, `C` being the cost type of the problem:
/// `[](improved<double> const& e) {...}`, an object with several `operator()`, or a generic lambda, which is told
/// everything. An event that nobody handles costs nothing. Observers never influence a search.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>

namespace parsearch::search {

/// Changes were drawn. `cost` is empty where it is above the bound given to the evaluator.
template <class C> struct proposed {
    std::uint64_t evaluation; ///< strategies priced so far
    std::size_t op;           ///< the first operator changed
    std::size_t move;         ///< number of the move in the problem's mix
    std::optional<C> cost;
    C best; ///< least cost before this proposal
};

/// The proposal became current.
template <class C> struct accepted {
    std::uint64_t evaluation;
    std::size_t op;
    std::size_t move;
    C cost;
    C best; ///< least cost before this proposal
};

/// The accepted proposal is better than every strategy before. Told after `accepted`.
template <class C> struct improved {
    std::uint64_t evaluation;
    std::size_t op;
    std::size_t move;
    C cost;
    C before; ///< the least cost until now
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

/// `O` handles at least one of `Events`. (A constant first: compilers would list every event when the concept is not met.)
template <class O, class... Events> inline constexpr bool handles_any = (std::is_invocable_v<O&, Events const&> || ...);
template <class O, class... Events>
concept Observer = handles_any<O, Events...>;

/// An observer of one event from a function object: `on<improved>([](auto const& e) {...})`.
template <template <class> class Event, class F> struct handler {
    F f;
    template <class C> constexpr void operator()(Event<C> const& event)
        requires std::invocable<F&, Event<C> const&>
    {
        f(event);
    }
    template <class C> constexpr void operator()(Event<C> const& event) const
        requires std::invocable<F const&, Event<C> const&>
    {
        f(event);
    }
};
template <template <class> class Event, class F> [[nodiscard]] constexpr handler<Event, std::decay_t<F>> on(F&& f) {
    return {std::forward<F>(f)};
}

/// An observer that counts proposals and acceptances of each move of a mix.
struct move_counts {
    struct counts {
        std::uint64_t proposed = 0, accepted = 0, improved = 0;
        friend bool operator==(counts const&, counts const&) = default;
    };
    std::vector<counts> of_move;

    template <class C> void operator()(proposed<C> const& e) { ++at(e.move).proposed; }
    template <class C> void operator()(accepted<C> const& e) { ++at(e.move).accepted; }
    template <class C> void operator()(improved<C> const& e) { ++at(e.move).improved; }

  private:
    counts& at(std::size_t move) {
        if (of_move.size() <= move) of_move.resize(move + 1);
        return of_move[move];
    }
};

} // namespace parsearch::search
