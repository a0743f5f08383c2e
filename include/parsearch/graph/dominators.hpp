#pragma once
/// Dominators of a flow graph, by Boost.Graph.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dominator_tree.hpp>

namespace parsearch::graph {

/// An edge of a flow graph: from, to.
using flow_edge = std::pair<std::uint32_t, std::uint32_t>;

/// The vertices that every path from `entry` to `exit` passes, without these two, in the order in which paths pass them. Empty where
/// no path leads from `entry` to `exit`. Precondition: the ends of all edges, `entry` and `exit` are below `vertices`.
/// Source: Lengauer, Tarjan, A fast algorithm for finding dominators in a flowgraph, TOPLAS 1979. Complexity: O(E log V).
[[nodiscard]] inline std::vector<std::uint32_t> dominators_between(std::size_t vertices, std::span<flow_edge const> edges, std::uint32_t entry,
                                                                   std::uint32_t exit) {
    // Boost takes ways from vertices that `entry` does not reach for ways: leave them out.
    std::vector<std::vector<std::uint32_t>> next(vertices);
    for (auto const& [from, to] : edges) next[from].push_back(to);
    std::vector<bool> reached(vertices, false);
    std::vector<std::uint32_t> waiting{entry};
    reached[entry] = true;
    while (!waiting.empty()) {
        auto const v = waiting.back();
        waiting.pop_back();
        for (auto const n : next[v])
            if (!reached[n]) {
                reached[n] = true;
                waiting.push_back(n);
            }
    }
    using flow_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
    flow_graph g(vertices);
    for (auto const& [from, to] : edges)
        if (reached[from]) add_edge(from, to, g);
    auto const none = flow_graph::null_vertex();
    std::vector<flow_graph::vertex_descriptor> above(vertices, none); // the immediate dominator of each vertex
    boost::lengauer_tarjan_dominator_tree(
        g, static_cast<std::size_t>(entry),
        boost::make_iterator_property_map(above.begin(), boost::get(boost::vertex_index, g)));
    std::vector<std::uint32_t> out;
    if (!reached[exit] || above[exit] == none) return out;
    for (auto v = above[exit]; v != entry; v = above[v]) out.push_back(static_cast<std::uint32_t>(v));
    std::reverse(out.begin(), out.end());
    return out;
}

} // namespace parsearch::graph
