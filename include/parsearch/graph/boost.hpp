#pragma once
/// Boost.Graph models of `OperatorGraph`: any bidirectional graph whose vertices carry operators needs no glue.

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/concepts/operator_graph.hpp>

// Whoever has a Boost graph has included Boost.Graph; this header costs nothing to others.
namespace boost {
struct bidirectional_graph_tag;
}

namespace parsearch::graph {

/// An edge property: output number `slot` of the producer feeds input number `input` of the consumer.
/// A graph without it (or with another edge property) uses slot 0, and inputs in the order in which edges were added.
struct flow {
    std::uint32_t slot = 0;
    std::uint32_t input = 0;
};

/// A Boost graph whose in-edges and vertex bundle can be read.
template <class G>
concept BidirectionalBoostGraph = requires {
    typename G::traversal_category;
    typename G::vertex_bundled;
} && std::is_convertible_v<typename G::traversal_category, boost::bidirectional_graph_tag>;

} // namespace parsearch::graph

namespace parsearch {

/// Operators are vertices, in the graph's order; the vertex bundle is the description.
template <graph::BidirectionalBoostGraph G> struct operator_graph_adaptor<G> {
    using vertex = typename G::vertex_descriptor;

    static std::vector<vertex> operators(G const& g) {
        auto const [first, last] = vertices(g);
        return {first, last};
    }
    /// Throws `invalid_input` where `flow::input` leaves a gap or names an input twice.
    static std::vector<tensor_source<vertex>> inputs(G const& g, vertex v) {
        std::vector<tensor_source<vertex>> out;
        auto const [first, last] = in_edges(v, g);
        if constexpr (std::is_same_v<typename G::edge_bundled, graph::flow>) {
            out.resize(in_degree(v, g));
            std::vector<bool> set(out.size());
            for (auto e = first; e != last; ++e) {
                auto const& f = g[*e];
                if (f.input >= out.size() || set[f.input])
                    throw invalid_input("an edge feeds input ", f.input, " of an operator with ", out.size(),
                                        " in-edges: inputs are numbered from 0, each once");
                set[f.input] = true;
                out[f.input] = {source(*e, g), f.slot};
            }
        } else {
            for (auto e = first; e != last; ++e) out.push_back({source(*e, g), 0});
        }
        return out;
    }
    static decltype(auto) description(G const& g, vertex v) { return (g[v]); }
};

} // namespace parsearch
