#include <parsearch/io/display/configuration_classes.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/hand_network.hpp"

using namespace parsearch;

TEST_CASE("configuration classes: the most frequent first, inputs in none") {
    graph::operator_graph model;
    graph::tensor_ref x = model.input("x", {{8, 8}});
    for (int i = 0; i < 4; ++i) x = model.add("fc" + std::to_string(i), ops::linear{.out = 8}, x);
    auto const g = graph::read_graph(model).graph;
    auto s = space::data_parallel(g, 4);
    s[1] = support::split(g.operations[1], "o", {0, 1});
    auto const c = io::classes_of(g, s);
    CHECK(c.texts == std::vector<std::string>{"s4 @0+1", "o2 @{0,1}"});
    CHECK(c.operators == std::vector<std::size_t>{3, 1});
    CHECK(c.of_operator == std::vector<std::uint32_t>{io::configuration_classes::none, 1, 0, 0, 0});
}
