#pragma once
/// Boost.Graph models of `OperatorGraph`: an `adjacency_list` with directions whose vertices carry operators is one as it is.

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/concepts/operator_graph.hpp>

// Whoever has a Boost graph has included Boost.Graph; this header costs nothing to others.
namespace boost {
struct bidirectional_graph_tag;
struct directed_tag;
struct edge_list_graph_tag;
struct vecS;
struct listS;
} // namespace boost

namespace parsearch::graph {

/// An edge bundle, or the base of one: output number `slot` of the producer feeds input number `input` of the consumer.
/// A graph with another edge bundle, or none, uses slot 0, and inputs in the order in which edges were added, where it is known to remember that (see
/// `remembers_order`). Others must have it where an operator has several inputs.
struct flow {
    std::uint32_t slot = 0;
    std::uint32_t input = 0;
};

/// A Boost graph with directions and a vertex bundle.
template <class G>
concept BundledBoostGraph = requires {
    typename G::traversal_category;
    typename G::directed_category;
    typename G::vertex_bundled;
} && std::is_convertible_v<typename G::directed_category, boost::directed_tag>;

/// One whose in-edges can be read (`bidirectionalS`).
template <class G>
concept BidirectionalBoostGraph = BundledBoostGraph<G> && std::is_convertible_v<typename G::traversal_category, boost::bidirectional_graph_tag>;

/// One that knows the edges out of a vertex alone (`directedS`), and all edges.
template <class G>
concept DirectedBoostGraph =
    BundledBoostGraph<G> && !BidirectionalBoostGraph<G> && std::is_convertible_v<typename G::traversal_category, boost::edge_list_graph_tag>;

/// A Boost graph that is an `OperatorGraph`.
template <class G>
concept BoostGraph = BidirectionalBoostGraph<G> || DirectedBoostGraph<G>;

/// The graph lists the edges into a vertex in the order in which they were added: bidirectional ones that have them in a `vecS` or a `listS`.
/// Specialise it for a graph type of your own that does.
template <class G> inline constexpr bool remembers_order = false;
template <BidirectionalBoostGraph G>
    requires requires { typename G::out_edge_list_selector; }
inline constexpr bool remembers_order<G> =
    std::is_same_v<typename G::out_edge_list_selector, boost::vecS> || std::is_same_v<typename G::out_edge_list_selector, boost::listS>;

} // namespace parsearch::graph

namespace parsearch {

/// Operators are vertices, in the graph's order; the vertex bundle is the description.
template <graph::BoostGraph G> struct operator_graph_adaptor<G> {
    using vertex = typename G::vertex_descriptor;

    static std::vector<vertex> operators(G const& g) {
        auto const [first, last] = vertices(g);
        return {first, last};
    }
    /// Throws `invalid_input` where `flow::input` leaves a gap or names an input twice, and where it is missing and the graph remembers no order.
    /// Complexity: O(edges into `v`); of a directed graph O(all edges).
    static std::vector<tensor_source<vertex>> inputs(G const& g, vertex v) {
        std::vector<typename G::edge_descriptor> into;
        if constexpr (graph::BidirectionalBoostGraph<G>) {
            auto const [first, last] = in_edges(v, g);
            into.assign(first, last);
        } else {
            auto const [first, last] = edges(g);
            for (auto e = first; e != last; ++e)
                if (target(*e, g) == v) into.push_back(*e);
        }
        std::vector<tensor_source<vertex>> out;
        if constexpr (std::derived_from<typename G::edge_bundled, graph::flow>) {
            out.resize(into.size());
            std::vector<bool> set(out.size());
            for (auto const& e : into) {
                graph::flow const& f = g[e];
                if (f.input >= out.size() || set[f.input])
                    throw invalid_input("an edge feeds input ", f.input, " of an operator with ", out.size(),
                                        " in-edges: inputs are numbered from 0, each once");
                set[f.input] = true;
                out[f.input] = {source(e, g), f.slot};
            }
        } else {
            if (!graph::remembers_order<G> && into.size() > 1)
                throw invalid_input("the graph does not remember in which order its ", into.size(),
                                    " inputs were added: must have parsearch::graph::flow as its edge bundle, or as the base of it, or be "
                                    "boost::bidirectionalS with vecS or listS for its edges");
            for (auto const& e : into) out.push_back({source(e, g), 0});
        }
        return out;
    }
    static decltype(auto) description(G const& g, vertex v) { return (g[v]); }
};

} // namespace parsearch
