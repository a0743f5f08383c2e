#include <parsearch/space/bottleneck.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/hand_network.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {
using changes = std::vector<change<space::configuration>>;
}

TEST_CASE("bottleneck: operators of the busiest device are drawn in proportion to their load") {
    graph::operator_graph net;
    auto const x = net.input("x", {{64, 64}});
    net.add("big", ops::linear{.out = 512}, x);
    net.add("small", ops::linear{.out = 128}, x);
    net.add("elsewhere", ops::linear{.out = 256}, x);
    auto const g = graph::read_graph(net).graph;
    space::strategy_space const space(g, 4);
    space::bottleneck_move move(g);
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    auto const big = support::op_named(g, "big"), small = support::op_named(g, "small"), elsewhere = support::op_named(g, "elsewhere");
    s[elsewhere].start = 1;
    REQUIRE(move.load_of(s, elsewhere) < move.load_of(s, big));
    std::mt19937_64 rng(5);
    std::map<std::size_t, int> drawn;
    int const draws = 20'000;
    for (int n = 0; n < draws; ++n) {
        changes out;
        auto const index = move(space, s, rng, out);
        REQUIRE(index);
        REQUIRE(out.size() == 1);
        REQUIRE(out[0].configuration == space.of(out[0].op)[*index]);
        ++drawn[out[0].op];
    }
    CHECK(drawn.size() == 2);
    double const a = static_cast<double>(move.load_of(s, big)), b = static_cast<double>(move.load_of(s, small));
    CHECK(a > 3 * b);
    CHECK(std::abs(drawn[big] - draws * a / (a + b)) < 300);
}

TEST_CASE("bottleneck: the load of an operator, by hand") {
    graph::operator_graph net;
    auto x = net.add("fc", ops::linear{.out = 8, .bias = false}, net.input("x", {{16, 4}}));
    net.add("relu", ops::relu{}, x);
    auto const g = graph::read_graph(net).graph;
    auto const fc = support::op_named(g, "fc"), relu = support::op_named(g, "relu");
    // Flops never count at this balance; a link takes ten times as long for a byte.
    space::bottleneck_move const move(g, 1, {.flops_per_byte = 1'000'000, .link_factor = 10});
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    auto const own = [&](std::size_t op) {
        double bytes = 0;
        for (auto const p : {ops::pass::forward, ops::pass::backward})
            bytes += ops::work_of(g.operations[op], s[op].degrees(), p, g.input_gradients(op)).bytes;
        return static_cast<std::int64_t>(bytes);
    };
    auto const fc_alone = own(fc), relu_alone = own(relu);
    CHECK(move.load_of(s, fc) == fc_alone);
    CHECK(move.load_of(s, relu) == relu_alone); // it reads where the tensor lies
    s[relu].start = 1;
    CHECK(move.load_of(s, relu) == relu_alone + 16 * 8 * 4 * 10);
    s[fc].degree[0] = 4; // samples: all hold the weights, whose gradients are exchanged
    s[fc].stride[0] = 1;
    CHECK(move.load_of(s, fc) == fc_alone / 4 + 8 * 4 * 4 * 2 * 10);
    s[fc].degree = {1, 4, 1}; // features: nobody holds the same
    s[fc].stride = {0, 1, 0};
    CHECK(move.load_of(s, fc) == fc_alone / 4);
}

TEST_CASE("bottleneck: the strategy is looked at every 64 draws") {
    graph::operator_graph net;
    auto const x = net.input("x", {{64, 64}});
    net.add("a", ops::linear{.out = 512}, x);
    net.add("b", ops::linear{.out = 256}, x);
    auto const g = graph::read_graph(net).graph;
    space::strategy_space const space(g, 2);
    space::bottleneck_move move(g);
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    s[2].start = 1;
    std::mt19937_64 rng(5);
    auto const draw = [&] {
        changes out;
        REQUIRE(move(space, s, rng, out));
        return out[0].op;
    };
    CHECK(draw() == 1);
    s[1].degree = {1, 2, 1}; // by features, so that no weights are exchanged: now both have as much
    s[1].stride = {0, 1, 0};
    s[2].start = 0;
    for (std::uint32_t n = 1; n < space::bottleneck_move::refresh_interval; ++n) CHECK(draw() == 1);
    std::size_t of_b = 0;
    for (std::uint32_t n = 0; n < space::bottleneck_move::refresh_interval; ++n) of_b += draw() == 2;
    CHECK(of_b > 15);
}

TEST_CASE("bottleneck: what is proposed for random networks and strategies is of the space, and the course is that of the seed") {
    std::size_t proposed = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        space::strategy_space const space(g, 4);
        space::flat_strategy s;
        for (std::size_t op = 0; op < g.size(); ++op) s.push_back(support::random_configuration(rng, g.operations[op], space[op], 4, true));
        space::bottleneck_move move(g), twin(g);
        auto again = rng;
        for (int n = 0; n < 70; ++n) {
            changes out, same;
            bool const some = move(space, s, rng, out).has_value();
            REQUIRE(some == twin(space, s, again, same).has_value());
            REQUIRE(some == !out.empty());
            if (!some) continue;
            REQUIRE(out[0].op == same[0].op);
            REQUIRE(out[0].configuration == same[0].configuration);
            REQUIRE(space.of(out[0].op).contains(out[0].configuration));
            ++proposed;
        }
    }
    CHECK(proposed > 5000);
}
