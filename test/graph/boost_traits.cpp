#include <parsearch/graph/boost_traits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dominator_tree.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/graph/transitive_closure.hpp>

#include <doctest/doctest.h>

#include <parsearch/models/bert.hpp>

#include "support/random_network.hpp"

using namespace parsearch;

BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<graph::dense_graph>));
BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<graph::dense_graph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<graph::dense_graph>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<graph::dense_graph>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<graph::dense_graph, std::uint32_t, boost::vertex_index_t>));

TEST_CASE("boost_traits: vertices, edges and degrees are those of the graph") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        std::multiset<std::pair<std::uint32_t, std::uint32_t>> expected, all, out, in, readers, makers;
        for (auto const& e : g.edges) expected.emplace(e.producer, e.consumer);
        for (auto [e, end] = edges(g); e != end; ++e) all.emplace(source(*e, g), target(*e, g));
        std::size_t degrees = 0;
        for (auto [v, end] = vertices(g); v != end; ++v) {
            for (auto [e, last] = out_edges(*v, g); e != last; ++e) out.emplace(source(*e, g), target(*e, g));
            for (auto [e, last] = in_edges(*v, g); e != last; ++e) in.emplace(source(*e, g), target(*e, g));
            for (auto [to, last] = adjacent_vertices(*v, g); to != last; ++to) readers.emplace(*v, *to);
            for (auto [from, last] = inv_adjacent_vertices(*v, g); from != last; ++from) makers.emplace(*from, *v);
            CHECK(out_degree(*v, g) == g.out(*v).size());
            CHECK(in_degree(*v, g) == g.in(*v).size());
            degrees += degree(*v, g);
        }
        CHECK(all == expected);
        CHECK(out == expected);
        CHECK(in == expected);
        CHECK(readers == expected);
        CHECK(makers == expected);
        CHECK(num_vertices(g) == g.size());
        CHECK(num_edges(g) == g.edges.size());
        CHECK(degrees == 2 * g.edges.size());
    }
}

TEST_CASE("boost_traits: Boost sorts, finds components and dominators of a network") {
    auto const g = graph::read_graph(models::bert({.layers = 2, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 100, .batch = 2})).graph;
    std::vector<std::uint32_t> sorted;
    boost::topological_sort(g, std::back_inserter(sorted));
    std::ranges::reverse(sorted);
    std::vector<std::size_t> place(g.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) place[sorted[i]] = i;
    REQUIRE(sorted.size() == g.size());
    for (auto const& e : g.edges) CHECK(place[e.producer] < place[e.consumer]);

    std::vector<std::size_t> component(g.size());
    auto const index = get(boost::vertex_index, g);
    CHECK(boost::strong_components(g, boost::make_iterator_property_map(component.begin(), index)) == g.size()); // no cycles

    // From the first input of tokens: by definition d dominates v where no way leads to v without d.
    auto const entry = g.order.front();
    std::vector<std::uint32_t> dominator(g.size(), boost::graph_traits<graph::dense_graph>::null_vertex());
    boost::lengauer_tarjan_dominator_tree(g, entry, boost::make_iterator_property_map(dominator.begin(), index));
    auto const reached_without = [&](std::uint32_t left_out) {
        std::vector<bool> reached(g.size(), false);
        reached[entry] = entry != left_out;
        for (auto const v : g.order)
            for (auto const& e : g.in(v))
                if (v != left_out && reached[e.producer]) reached[v] = true;
        return reached;
    };
    auto const all = reached_without(boost::graph_traits<graph::dense_graph>::null_vertex());
    std::size_t found = 0;
    for (std::uint32_t v = 0; v < g.size(); ++v) {
        if (dominator[v] == boost::graph_traits<graph::dense_graph>::null_vertex()) continue;
        ++found;
        CHECK(all[v]);
        CHECK(!reached_without(dominator[v])[v]);
    }
    CHECK(found > g.size() / 2);

    // The other way round: whatever the loss needs.
    std::vector<boost::default_color_type> color(g.size());
    boost::breadth_first_search(boost::make_reverse_graph(g), g.order.back(),
                                boost::color_map(boost::make_iterator_property_map(color.begin(), index)));
    CHECK(std::ranges::count(color, boost::black_color) > std::ptrdiff_t(g.size()) / 2);
}
