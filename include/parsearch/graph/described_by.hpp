#pragma once
/// A graph whose operators are described by a function: for graphs whose vertices carry something of one's own.

#include <functional>
#include <utility>

#include <parsearch/concepts/operator_graph.hpp>

namespace parsearch::graph {

/// `graph` with another description of its operators, an `OperatorGraph` with the same handles:
///
///     auto const net = ps::graph::described_by(my_boost_graph, [](my_layer const& l) { return l.operation; });
///     auto const problem = ps::make_problem(net, cluster, oracle);
///
/// `f` is called with `description(graph, op)`; what it answers should have a `name`, as a description has. Refers to the graph.
template <OperatorGraph G, class F> class described_by {
  public:
    described_by(G const& graph, F f) : graph_(&graph), f_(std::move(f)) {}
    [[nodiscard]] decltype(auto) operators() const { return parsearch::operators(*graph_); }
    template <class Op> [[nodiscard]] decltype(auto) inputs(Op const& op) const { return parsearch::inputs(*graph_, op); }
    template <class Op> [[nodiscard]] decltype(auto) description(Op const& op) const { return std::invoke(f_, parsearch::description(*graph_, op)); }

  private:
    G const* graph_;
    F f_;
};

} // namespace parsearch::graph
