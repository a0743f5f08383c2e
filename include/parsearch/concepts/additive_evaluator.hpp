#pragma once
/// The concept `AdditiveEvaluator`: a cost that is a sum over operators and over pairs of operators; with a budget of memory, `BudgetedEvaluator`.

#include <concepts>
#include <cstddef>
#include <iterator>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/ranges.hpp>

namespace parsearch {

/// Two operators that a term of an additive cost depends on: the numbers of different operators, in either order. Several edges may
/// join the same two.
struct operator_pair {
    std::size_t from = 0, to = 0;
    friend bool operator==(operator_pair const&, operator_pair const&) = default;
};

/// An evaluator whose cost of strategy s is the sum of `e.operator_cost(op, s[op])` over the operators and of
/// `e.edge_cost(n, s[from], s[to])` over the edges, edge number n being element n of `e.edges()`, a range of `operator_pair`.
/// Calling it adds these up. A term may be `cost_traits::infinity()`: such a combination is not allowed.
template <class E, class S, class C>
concept AdditiveEvaluator = Evaluator<E, S> && requires(E& e, std::size_t number, C const& from, C const& to) {
    { e.operator_cost(number, from) } -> std::convertible_to<cost_t<E, S>>;
    { e.edge_cost(number, from, to) } -> std::convertible_to<cost_t<E, S>>;
    requires SizedRandomAccessRange<decltype(e.edges())>;
    requires std::convertible_to<range_value_t<decltype(e.edges())>, operator_pair>;
};

/// An additive evaluator that has its terms in tables by configuration number, the position of a configuration in the problem's space:
/// `e.operator_costs(op)` holds one term per configuration of `op`; `e.edge_costs(n)` one per pair, those of the first configuration of
/// `from` first. Both are contiguous, and `operator_cost` and `edge_cost` answer what they hold.
template <class E, class S, class C>
concept TabledEvaluator = AdditiveEvaluator<E, S, C> && requires(E& e, std::size_t number) {
    { *std::ranges::data(e.operator_costs(number)) } -> std::convertible_to<cost_t<E, S> const&>;
    { *std::ranges::data(e.edge_costs(number)) } -> std::convertible_to<cost_t<E, S> const&>;
    requires SizedRandomAccessRange<decltype(e.operator_costs(number))>;
    requires SizedRandomAccessRange<decltype(e.edge_costs(number))>;
};

/// An additive evaluator with a budget of memory: `e.operator_memory(op, c)` are the bytes that configuration `c` of `op` takes, from 0 to 2^50. A
/// strategy whose bytes add up to more than `e.memory_budget()` is infeasible: calling `e` answers infinity for it, and the sum of the terms for all
/// others.
template <class E, class S, class C>
concept BudgetedEvaluator = AdditiveEvaluator<E, S, C> && requires(E& e, std::size_t number, C const& c) {
    { e.operator_memory(number, c) } -> std::integral;
    { e.memory_budget() } -> std::integral;
};

} // namespace parsearch
