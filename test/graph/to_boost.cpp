#include <parsearch/graph/to_boost.hpp>

#include <iterator>
#include <vector>

#include <boost/graph/topological_sort.hpp>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/shape.hpp>

namespace ps = parsearch;

TEST_CASE("to_boost: the copy has the same operators and edges, and Boost's algorithms run on it") {
    ps::graph::operator_graph g;
    auto const x = g.input("x", {{4, 8}});
    auto const halves = g.add("halves", ps::ops::split{.axis = 1, .sizes = {4, 4}}, x);
    g.add("sum", ps::ops::add{}, halves[1], halves[0]);
    auto const dense = ps::graph::read_graph(g).graph;
    auto const copy = ps::graph::to_boost(dense);
    auto const again = ps::graph::read_graph(copy).graph;
    CHECK(again.edges == dense.edges);
    CHECK(again.operations == dense.operations);
    CHECK(again.order == dense.order);
    std::vector<std::size_t> reversed;
    boost::topological_sort(copy, std::back_inserter(reversed));
    CHECK(reversed == std::vector<std::size_t>{2, 1, 0});
}
