#include <parsearch/space/repeated_blocks.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/softmax.hpp>

#include "support/random_network.hpp"

using namespace parsearch;

namespace {

using changes = std::vector<change<space::configuration>>;

/// A letter per operator: l(inear), r(elu), s(oftmax).
graph::dense_graph chain(std::string const& letters) {
    graph::operator_graph net;
    auto x = net.input("x", {{8, 8}});
    for (char const letter : letters) {
        auto const name = text(letter, net.size());
        if (letter == 'l') x = net.add(name, ops::linear{.out = 8}, x);
        else if (letter == 'r') x = net.add(name, ops::relu{}, x);
        else x = net.add(name, ops::softmax{}, x);
    }
    return graph::read_graph(net).graph;
}

/// period x copies @ first, of each block.
std::string blocks_of(std::string const& letters) {
    std::string out;
    for (auto const& b : space::repeated_blocks(chain(letters)))
        out += text(out.empty() ? "" : " ", b.period, 'x', b.copies(), '@', b.operators.front() - 1);
    return out;
}

} // namespace

TEST_CASE("blocks: stretches that come several times in a row") {
    CHECK(blocks_of("lrlrlr") == "2x3@0");
    CHECK(blocks_of("slrlrlrs") == "2x3@1"); // the "s" before and behind have no part in it
    CHECK(blocks_of("lrlrl") == "2x2@0");    // what is left over is left
    CHECK(blocks_of("lrslrs") == "3x2@0");
    CHECK(blocks_of("llll") == ""); // one operator again and again: see repeat_move
    CHECK(blocks_of("lrs") == "");
    CHECK(blocks_of("lrlrslrlrs") == "2x2@0 2x2@5 5x2@0"); // a block of blocks
    CHECK(blocks_of("l") == "");
}

TEST_CASE("blocks: the layers of transformers and the modules of Inception are found") {
    auto const most = [](graph::dense_graph const& g) {
        std::size_t n = 0;
        for (auto const& b : space::repeated_blocks(g)) n = std::max(n, b.copies());
        return n;
    };
    for (std::int64_t layers : {2, 5, 12}) {
        CAPTURE(layers);
        CHECK(
            most(graph::read_graph(models::gpt({.layers = layers, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128, .batch = 4})).graph) ==
            static_cast<std::size_t>(layers));
    }
    auto const g = graph::read_graph(models::inception_v3({.batch = 4})).graph;
    // Its three modules of 35 x 35 and four of 17 x 17: their products differ in extents only.
    std::set<std::size_t> copies;
    for (auto const& b : space::repeated_blocks(g))
        if (b.period > 10) copies.insert(b.copies());
    CHECK(copies.contains(3));
    CHECK(copies.contains(4));
}

TEST_CASE("blocks: the copies of a block are of the same kinds, operator by operator, on random networks") {
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng, 30, 0)).graph;
        for (auto const& b : space::repeated_blocks(g)) {
            ++found;
            REQUIRE(b.period >= 2);
            REQUIRE(b.copies() >= 2);
            REQUIRE(b.operators.size() == b.period * b.copies());
            std::set<std::string> kinds;
            for (std::size_t n = 0; n < b.operators.size(); ++n) {
                auto const &op = g.operations[b.operators[n]], &first = g.operations[b.operators[n % b.period]];
                REQUIRE(op.kind == first.kind);
                REQUIRE(op.dims.size() == first.dims.size());
                REQUIRE(op.work != ops::work_class::source);
            }
            REQUIRE(std::set(b.operators.begin(), b.operators.end()).size() == b.operators.size());
        }
    }
    CHECK(found > 20);
}

TEST_CASE("block_move: all copies take the configurations of one of them") {
    auto const g = chain("slrlrlrs");
    space::strategy_space const space(g, 4);
    space::block_move const move(g);
    std::mt19937_64 rng(1);
    space::flat_strategy s;
    for (std::size_t op = 0; op < g.size(); ++op) s.push_back(space.of(op)[uniform_index(rng, space.of(op).size())]);
    std::set<std::size_t> sources;
    for (int i = 0; i < 200; ++i) {
        changes out;
        REQUIRE(move(space, s, rng, out));
        auto after = s;
        std::set<std::size_t> changed;
        for (auto const& c : out) {
            REQUIRE(changed.insert(c.op).second);
            REQUIRE(space.of(c.op).contains(c.configuration));
            REQUIRE(!(after[c.op] == c.configuration));
            after[c.op] = c.configuration;
        }
        // Operators 2..7 are three copies of (l, r); the graph input is 0.
        for (std::size_t op = 4; op < 8; ++op) REQUIRE(after[op] == after[op - 2]);
        for (auto const op : {std::size_t{0}, std::size_t{1}, std::size_t{8}}) REQUIRE(after[op] == s[op]);
        for (std::size_t copy = 0; copy < 3; ++copy)
            if (after[2] == s[2 + 2 * copy] && after[3] == s[3 + 2 * copy]) sources.insert(copy);
        // Once alike, there is nothing to do.
        changes again;
        REQUIRE_FALSE(move(space, after, rng, again));
        REQUIRE(again.empty());
    }
    CHECK(sources.size() == 3);
}

TEST_CASE("block_move: configurations that an operator may not take are left out") {
    graph::operator_graph net;
    auto x = net.input("x", {{8, 6}});
    x = net.add("a", ops::linear{.out = 6}, x);
    x = net.add("b", ops::relu{}, x);
    x = net.add("c", ops::linear{.out = 5}, x);
    net.add("d", ops::relu{}, x);
    auto const g = graph::read_graph(net).graph;
    space::strategy_space const space(g, 4);
    space::block_move const move(g);
    auto s = space::flat_strategy{};
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    for (std::size_t op : {std::size_t{1}, std::size_t{2}}) {
        s[op].degree[1] = 2;
        s[op].stride[1] = 1;
    }
    std::mt19937_64 rng(1);
    int nothing = 0;
    for (int i = 0; i < 50; ++i) {
        changes out;
        if (!move(space, s, rng, out)) {
            ++nothing; // features cannot be halved in the second copy
            continue;
        }
        REQUIRE(out.size() == 2);
        CHECK(out[0].op == 1);
        CHECK(out[0].configuration.degree[1] == 1);
    }
    CHECK(nothing > 10);
    CHECK(nothing < 40);
}
