#pragma once
/// A Boost.Graph copy of a dense graph, for Boost's algorithms.

#include <cstdint>

#include <boost/graph/adjacency_list.hpp>

#include <parsearch/graph/boost.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

/// Vertex v is operator number v; an edge says which output feeds which input.
using boost_operator_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, ops::operation, flow>;

/// Copies `g`. The copy models `OperatorGraph` and has the same operators, in the same order. Complexity: O(V + E).
[[nodiscard]] inline boost_operator_graph to_boost(dense_graph const& g) {
    boost_operator_graph out;
    for (auto const& op : g.operations) add_vertex(op, out);
    for (auto const& e : g.edges) add_edge(e.producer, e.consumer, flow{e.slot, e.input}, out);
    return out;
}

} // namespace parsearch::graph
