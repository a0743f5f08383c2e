#pragma once
/// A dense graph as Boost.Graph sees it: Boost's algorithms run on the graph of a problem, without a copy.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/property_map/property_map.hpp>

#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

/// An edge of a dense graph, by its place among `edges`.
struct edge_number {
    std::uint32_t value = 0;
    friend auto operator<=>(edge_number, edge_number) = default;
};

namespace detail {
struct as_edge {
    edge_number operator()(std::uint32_t number) const noexcept { return {number}; }
};
struct producer_of {
    dense_graph const* g = nullptr;
    std::uint32_t operator()(edge_number e) const noexcept { return g->edges[e.value].producer; }
};
struct consumer_of {
    dense_graph const* g = nullptr;
    std::uint32_t operator()(edge_number e) const noexcept { return g->edges[e.value].consumer; }
};
using vertex_iterator = boost::counting_iterator<std::uint32_t>;
using edge_iterator = boost::transform_iterator<as_edge, boost::counting_iterator<std::uint32_t>>;
using out_edge_iterator = boost::transform_iterator<as_edge, std::uint32_t const*>;
/// Edges [first, end).
inline std::pair<edge_iterator, edge_iterator> edges_between(std::size_t first, std::size_t end) {
    using count = boost::counting_iterator<std::uint32_t>;
    return {edge_iterator(count(static_cast<std::uint32_t>(first))), edge_iterator(count(static_cast<std::uint32_t>(end)))};
}
} // namespace detail

/// What Boost asks of a directed graph that knows the edges out of a vertex and into it, and lists vertices and edges. Vertices are operators'
/// numbers. Two operators may be joined by several edges. The graph is one that `read_graph` made. Complexity: O(1) each.
[[nodiscard]] inline std::size_t num_vertices(dense_graph const& g) noexcept { return g.size(); }
[[nodiscard]] inline std::size_t num_edges(dense_graph const& g) noexcept { return g.edges.size(); }
[[nodiscard]] inline std::pair<detail::vertex_iterator, detail::vertex_iterator> vertices(dense_graph const& g) {
    return {detail::vertex_iterator(0), detail::vertex_iterator(static_cast<std::uint32_t>(g.size()))};
}
[[nodiscard]] inline auto edges(dense_graph const& g) { return detail::edges_between(0, g.edges.size()); }
[[nodiscard]] inline std::uint32_t source(edge_number e, dense_graph const& g) noexcept { return g.edges[e.value].producer; }
[[nodiscard]] inline std::uint32_t target(edge_number e, dense_graph const& g) noexcept { return g.edges[e.value].consumer; }
[[nodiscard]] inline std::pair<detail::out_edge_iterator, detail::out_edge_iterator> out_edges(std::uint32_t v, dense_graph const& g) {
    auto const* const first = g.out_edges.data();
    return {detail::out_edge_iterator(first + g.first_out[v]), detail::out_edge_iterator(first + g.first_out[v + 1])};
}
[[nodiscard]] inline auto in_edges(std::uint32_t v, dense_graph const& g) { return detail::edges_between(g.first_in[v], g.first_in[v + 1]); }
[[nodiscard]] inline std::size_t out_degree(std::uint32_t v, dense_graph const& g) noexcept { return g.first_out[v + 1] - g.first_out[v]; }
[[nodiscard]] inline std::size_t in_degree(std::uint32_t v, dense_graph const& g) noexcept { return g.first_in[v + 1] - g.first_in[v]; }
[[nodiscard]] inline std::size_t degree(std::uint32_t v, dense_graph const& g) noexcept { return in_degree(v, g) + out_degree(v, g); }
/// Readers of the outputs of `v`, and who makes its inputs, an operator once for each edge.
[[nodiscard]] inline auto adjacent_vertices(std::uint32_t v, dense_graph const& g) {
    auto const [first, last] = out_edges(v, g);
    using iterator = boost::transform_iterator<detail::consumer_of, detail::out_edge_iterator>;
    return std::pair{iterator(first, {&g}), iterator(last, {&g})};
}
[[nodiscard]] inline auto inv_adjacent_vertices(std::uint32_t v, dense_graph const& g) {
    auto const [first, last] = in_edges(v, g);
    using iterator = boost::transform_iterator<detail::producer_of, detail::edge_iterator>;
    return std::pair{iterator(first, {&g}), iterator(last, {&g})};
}
[[nodiscard]] inline auto get(boost::vertex_index_t, dense_graph const&) noexcept { return boost::typed_identity_property_map<std::uint32_t>{}; }
[[nodiscard]] inline std::uint32_t get(boost::vertex_index_t, dense_graph const&, std::uint32_t v) noexcept { return v; }

} // namespace parsearch::graph

namespace boost {

template <> struct graph_traits<parsearch::graph::dense_graph> {
    using vertex_descriptor = std::uint32_t;
    using edge_descriptor = parsearch::graph::edge_number;
    using directed_category = bidirectional_tag;
    using edge_parallel_category = allow_parallel_edge_tag;
    struct traversal_category : bidirectional_graph_tag, adjacency_graph_tag, vertex_list_graph_tag, edge_list_graph_tag {};
    using vertices_size_type = std::size_t;
    using edges_size_type = std::size_t;
    using degree_size_type = std::size_t;
    using vertex_iterator = parsearch::graph::detail::vertex_iterator;
    using edge_iterator = parsearch::graph::detail::edge_iterator;
    using out_edge_iterator = parsearch::graph::detail::out_edge_iterator;
    using in_edge_iterator = parsearch::graph::detail::edge_iterator;
    using adjacency_iterator = transform_iterator<parsearch::graph::detail::consumer_of, parsearch::graph::detail::out_edge_iterator>;
    static constexpr vertex_descriptor null_vertex() noexcept { return ~vertex_descriptor{0}; }
};

template <> struct property_map<parsearch::graph::dense_graph, vertex_index_t> {
    using type = typed_identity_property_map<std::uint32_t>;
    using const_type = type;
};

} // namespace boost
