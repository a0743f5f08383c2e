#pragma once
/// The concept `BoundedEvaluator`: lower bounds on the costs of all strategies that extend a partial one.

#include <concepts>
#include <cstddef>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/search_problem.hpp>

namespace parsearch {

/// Bounds on strategies of one space whose operators are fixed one after the other. `b.fix(op, i)`: operator number `op` takes
/// configuration number `i` of its range; `b.release(op)` takes back the last `fix` not yet taken back; `b.value()`: a cost that no
/// strategy of the space with the fixed configurations is below.
template <class B, class C>
concept StrategyBounds = requires(B& b, std::size_t number) {
    b.fix(number, number);
    b.release(number);
    { b.value() } -> std::convertible_to<C>;
};

/// An evaluator `e` whose `e.bounds(space)` makes bounds on the strategies of a space. See docs/concepts/bounded_evaluator.md.
template <class E, class S, class X>
concept BoundedEvaluator = Evaluator<E, S> && ConfigurationSpace<X> && requires(E& e, X const& space) {
    { e.bounds(space) } -> StrategyBounds<cost_t<E, S>>;
};

} // namespace parsearch
