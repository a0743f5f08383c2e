#pragma once
/// The concept `OperatorGraph`: operators, the inputs of each, and a description of each.

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/handle.hpp>
#include <parsearch/core/ranges.hpp>

namespace parsearch {

/// One input of an operator: output number `slot` of operator `producer`.
template <class H> struct tensor_source {
    H producer{};
    std::uint32_t slot = 0;
    friend bool operator==(tensor_source const&, tensor_source const&) = default;
};

/// Specialise for a family of graph types that cannot have members or functions found by ADL (Boost.Graph does).
template <class G> struct operator_graph_adaptor {};

namespace detail::operator_graph_cpo {

void operators() = delete;
void inputs() = delete;
void description() = delete;

struct operators_fn {
    template <class G> constexpr decltype(auto) operator()(G const& g) const {
        if constexpr (requires { g.operators(); }) return g.operators();
        else if constexpr (requires { operators(g); }) return operators(g);
        else return operator_graph_adaptor<G>::operators(g);
    }
};
struct inputs_fn {
    template <class G, class Op> constexpr decltype(auto) operator()(G const& g, Op const& op) const {
        if constexpr (requires { g.inputs(op); }) return g.inputs(op);
        else if constexpr (requires { inputs(g, op); }) return inputs(g, op);
        else return operator_graph_adaptor<G>::inputs(g, op);
    }
};
struct description_fn {
    template <class G, class Op> constexpr decltype(auto) operator()(G const& g, Op const& op) const {
        if constexpr (requires { g.description(op); }) return g.description(op);
        else if constexpr (requires { description(g, op); }) return description(g, op);
        else return operator_graph_adaptor<G>::description(g, op);
    }
};

template <class G>
concept has_operators = requires(G const& g) { g.operators(); } || requires(G const& g) { operators(g); } ||
                        requires(G const& g) { operator_graph_adaptor<G>::operators(g); };
template <class G, class Op>
concept has_inputs = requires(G const& g, Op const& op) { g.inputs(op); } || requires(G const& g, Op const& op) { inputs(g, op); } ||
                     requires(G const& g, Op const& op) { operator_graph_adaptor<G>::inputs(g, op); };
template <class G, class Op>
concept has_description = requires(G const& g, Op const& op) { g.description(op); } || requires(G const& g, Op const& op) { description(g, op); } ||
                          requires(G const& g, Op const& op) { operator_graph_adaptor<G>::description(g, op); };
} // namespace detail::operator_graph_cpo

/// `operators(g)`: the operators, each once, in any order. Member, then ADL, then adaptor.
inline constexpr detail::operator_graph_cpo::operators_fn operators{};
/// `inputs(g, op)`: the inputs of `op` in operand order, as something with `.producer` and `.slot`.
inline constexpr detail::operator_graph_cpo::inputs_fn inputs{};
/// `description(g, op)`: what `op` computes. The concept asks nothing of it; the simulator asks `ops::describe` of it.
inline constexpr detail::operator_graph_cpo::description_fn description{};

/// `operators(g)` exists as a member `g.operators()` or a function found by ADL, and is a forward range.
template <class G>
concept HasOperators = detail::operator_graph_cpo::has_operators<G> && requires(G const& g) {
    { parsearch::operators(g) } -> ForwardRange;
};

/// The handle by which `G` names an operator.
template <HasOperators G> using operator_handle_t = range_value_t<decltype(parsearch::operators(std::declval<G const&>()))>;

/// What `inputs(g, op)` yields: members `producer`, an operator handle `H`, and `slot`, the number of the producer's output.
template <class S, class H>
concept TensorSource = requires(S const& source) {
    { source.producer } -> std::convertible_to<H>;
    { source.slot } -> std::convertible_to<std::uint32_t>;
};

/// What an element of `inputs(g, op)` is.
template <HasOperators G>
using input_source_t = range_value_t<decltype(parsearch::inputs(std::declval<G const&>(), std::declval<operator_handle_t<G> const&>()))>;

/// `inputs(g, op)` exists and is an input range of `TensorSource`s.
template <class G>
concept HasInputs =
    HasOperators<G> && detail::operator_graph_cpo::has_inputs<G, operator_handle_t<G>> && requires(G const& g, operator_handle_t<G> const& op) {
        { parsearch::inputs(g, op) } -> InputRange;
    } && TensorSource<input_source_t<G>, operator_handle_t<G>>;

/// `description(g, op)` exists and is not void.
template <class G>
concept HasDescription = HasOperators<G> && detail::operator_graph_cpo::has_description<G, operator_handle_t<G>> &&
                         requires(G const& g, operator_handle_t<G> const& op) { requires !std::is_void_v<decltype(parsearch::description(g, op))>; };

/// What `description(g, op)` is.
template <HasDescription G>
using operator_description_t = decltype(parsearch::description(std::declval<G const&>(), std::declval<operator_handle_t<G> const&>()));

/// A neural network as operators and the tensors between them. See docs/concepts/operator_graph.md.
template <class G>
concept OperatorGraph = HasOperators<G> && Handle<operator_handle_t<G>> && HasInputs<G> && HasDescription<G>;

} // namespace parsearch
