#include <parsearch/space/repeat.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

using namespace parsearch;

TEST_CASE("repeat: a family gets one configuration: what shares parameters, or what computes the same") {
    graph::operator_graph net;
    auto x = net.add("a", ops::linear{.out = 8, .parameter = "w"}, net.input("x", {{8, 8}}));
    x = net.add("b", ops::linear{.out = 8, .parameter = "w"}, x);
    x = net.add("c", ops::linear{.out = 8}, x);
    x = net.add("relu", ops::relu{}, x);
    net.add("last", ops::linear{.out = 4}, x);
    auto const g = graph::read_graph(net).graph;
    space::strategy_space const space(g, 4);
    space::repeat_move const move(g);
    space::flat_strategy const s(g.size());
    std::mt19937_64 rng(1);
    std::set<std::set<std::size_t>> families;
    for (int i = 0; i < 1000; ++i) {
        std::vector<change<space::configuration>> out;
        auto const index = move(space, s, rng, out);
        if (!index) {
            CHECK(out.empty()); // the graph input was drawn
            continue;
        }
        std::set<std::size_t> changed;
        for (auto const& c : out) {
            CHECK(changed.insert(c.op).second);
            CHECK(c.configuration == space[c.op][static_cast<std::uint32_t>(*index)]);
        }
        families.insert(changed);
    }
    // By parameters: {a, b}, and the others alone. By what they compute: {a, b, c}.
    CHECK(families == std::set<std::set<std::size_t>>{{1, 2}, {1, 2, 3}, {3}, {4}, {5}});
}
