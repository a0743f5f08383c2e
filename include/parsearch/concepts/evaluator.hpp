#pragma once
/// The concepts `Evaluator` and `IncrementalEvaluator`: the cost of a strategy.

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <parsearch/core/cost.hpp>

namespace parsearch {

/// The cost that evaluator `E` gives to a strategy of type `S`.
template <class E, class S> using cost_t = std::remove_cvref_t<std::invoke_result_t<E&, S const&>>;

/// Callable with a strategy, answering a `Cost`: a simulator, a table, a lambda, a measurement. See docs/concepts/evaluator.md.
template <class E, class S>
concept Evaluator = std::invocable<E&, S const&> && Cost<cost_t<E, S>>;

/// One operator's new configuration.
template <class C> struct change {
    std::size_t op = 0;
    C configuration{};
};

/// An evaluator that holds a current strategy and prices changes to it.
/// - `e.reset(s)`: makes `s` current, answers its cost.
/// - `e.propose(changes, bound)`: the exact cost with `changes` applied, or nothing when it is above `bound`.
/// - `e.commit()` / `e.roll_back()`: keeps or drops the last proposal.
template <class E, class S, class C>
concept IncrementalEvaluator = Evaluator<E, S> && requires(E& e, S const& s, std::span<change<C> const> changes, cost_t<E, S> const& bound) {
    { e.reset(s) } -> std::convertible_to<cost_t<E, S>>;
    { e.propose(changes, bound) } -> std::convertible_to<std::optional<cost_t<E, S>>>;
    e.commit();
    e.roll_back();
};

} // namespace parsearch
