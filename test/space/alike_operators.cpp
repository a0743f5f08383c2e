#include <parsearch/space/alike_operators.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

using namespace parsearch;

TEST_CASE("operators are alike where kind, extents and operands are equal, whatever their names and parameters") {
    graph::operator_graph net;
    auto x = net.add("a", ops::linear{.out = 8, .parameter = "w"}, net.input("x", {{8, 8}}));
    x = net.add("b", ops::linear{.out = 8}, x);
    x = net.add("relu1", ops::relu{}, x);
    x = net.add("c", ops::linear{.out = 4}, x);
    x = net.add("relu2", ops::relu{}, x);
    net.add("relu3", ops::relu{}, x);
    CHECK(space::first_alike(graph::read_graph(net).graph) == std::vector<std::uint32_t>{0, 1, 1, 3, 4, 5, 5});
}
