#pragma once
/// A graph whose operators are described by a function: for graphs whose vertices carry something of one's own.

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::graph {

namespace detail {
template <class D>
concept named = requires(D const& d) { std::string_view(d.name); };
} // namespace detail

/// `graph` with another description of its operators, an `OperatorGraph` with the same handles:
///
///     auto const net = ps::graph::described_by(my_boost_graph, [](my_layer const& l) { return l.operation; });
///     auto const problem = ps::make_problem(net, cluster, oracle);
///
/// `f` is called with `description(graph, op)`. Where what it answers has no member `name`, as an operation has none, operators keep the names that
/// they have in `graph`. Refers to the graph.
template <OperatorGraph G, std::copy_constructible F>
    requires std::invocable<F const&, operator_description_t<G>>
class described_by {
    using handle = operator_handle_t<G>;
    using theirs = operator_description_t<G>;
    using answer = std::invoke_result_t<F const&, theirs>;
    using kept = std::conditional_t<std::is_reference_v<theirs>, answer, std::remove_cvref_t<answer>>; // no reference into a temporary

  public:
    described_by(G const& graph, F f) : graph_(&graph), f_(std::move(f)) {}
    described_by(G const&& graph, F f) = delete; // it would be gone
    [[nodiscard]] decltype(auto) operators() const { return parsearch::operators(*graph_); }
    [[nodiscard]] decltype(auto) inputs(handle const& op) const { return parsearch::inputs(*graph_, op); }
    [[nodiscard]] decltype(auto) description(handle const& op) const {
        if constexpr (!detail::named<answer> && detail::named<theirs> && ops::Describable<answer>) {
            theirs d = parsearch::description(*graph_, op);
            std::string name(std::string_view(d.name));
            return node{std::move(name), ops::describe(std::invoke(f_, static_cast<theirs&&>(d)))};
        } else return static_cast<kept>(std::invoke(f_, parsearch::description(*graph_, op)));
    }

  private:
    G const* graph_;
    F f_;
};

} // namespace parsearch::graph
