#include <parsearch/sim/delta/repeats.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/gpt.hpp>
#include <parsearch/sim/delta_simulator.hpp>

#include "support/hand_network.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

sim::repeats repeats_of(graph::operator_graph const& g) {
    auto const p = support::make_workload_problem(g, support::mesh(2), support::mixed_oracle{});
    return sim::find_repeats(p.work->graph, p.work->classes);
}
ops::linear const square{.out = 4, .bias = false};

} // namespace

TEST_CASE("repeats: layers that are described alike; the first, whose input wants no gradient, is another") {
    graph::operator_graph g;
    auto x = g.input("x", {{4, 4}});
    for (auto const* name : {"a", "b", "c"}) x = g.add(name, square, x);
    g.add("wide", ops::linear{.out = 8, .bias = false}, x);
    auto const same = repeats_of(g);
    // c is read as b is; a passes no gradient on.
    CHECK(same.operators == std::vector<std::uint32_t>{0, 1, 2, 2, 4});
    CHECK(same.edges == std::vector<std::uint32_t>{0, 1, 2, 3}); // from a, from b to c, which are alike, from c
    CHECK(same.classes == std::vector<std::uint32_t>{0, 1, 1, 3});
}

TEST_CASE("repeats: an output that is not read makes a difference") {
    graph::operator_graph g;
    auto x = g.input("x", {{4, 4}});
    for (auto const* name : {"a", "b", "c"}) x = g.add(name, square, x);
    auto const same = repeats_of(g);
    CHECK(same.operators == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("repeats: an input that is read twice") {
    graph::operator_graph g;
    auto x = g.add("first", square, g.input("x", {{4, 4}}));
    auto const y = g.add("second", square, x);
    auto const twice = g.add("twice", ops::add{}, x, x), once = g.add("once", ops::add{}, x, y);
    g.add("end", ops::add{}, twice, once);
    auto const same = repeats_of(g);
    auto const& edges = same.edges;
    // In order: first, second, twice (0, 1), once (0, 1), end (0, 1).
    REQUIRE(edges.size() == 8);
    CHECK(same.operators[4] == same.operators[3]);
    CHECK(edges[4] == edges[2]);
    CHECK(edges[5] != edges[3]); // what `twice` reads second is there already
}

TEST_CASE("repeats: classes that share alike") {
    graph::operator_graph g;
    auto x = g.add("start", square, g.input("x", {{4, 4}}));
    auto const add = [&](char const* name, char const* parameter) {
        x = g.add(name, ops::linear{.out = 4, .bias = false, .parameter = parameter}, x);
    };
    add("a", "v"), add("b", "v"), add("c", "w"), add("d", "w"), add("e", "z"), g.add("end", square, x);
    auto const same = repeats_of(g);
    // start, v, w, z, end
    CHECK(same.classes == std::vector<std::uint32_t>{0, 1, 1, 3, 4});
    CHECK(same.operators == std::vector<std::uint32_t>{0, 1, 2, 2, 2, 2, 2, 7});
}

TEST_CASE("repeats: the layers of a language model are one, and their plans name their own operators") {
    auto const g = models::gpt({.layers = 6, .hidden = 32, .heads = 4, .sequence = 8, .vocabulary = 64, .batch = 8});
    auto const p = support::make_workload_problem(g, support::mesh(4), support::mixed_oracle{});
    auto const same = sim::find_repeats(p.work->graph, p.work->classes);
    auto const count = [](std::vector<std::uint32_t> const& all) { return std::set<std::uint32_t>(all.begin(), all.end()).size(); };
    MESSAGE(count(same.operators), " of ", same.operators.size(), " operators, ", count(same.edges), " of ", same.edges.size(), " edges");
    CHECK(3 * count(same.operators) < same.operators.size());
    CHECK(3 * count(same.edges) < same.edges.size());
    CHECK(3 * count(same.classes) < same.classes.size());

    sim::delta_simulator delta(p.work);
    sim::simulator full(p.work);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const s = support::random_strategy(rng, p, 0.2);
        REQUIRE(delta.reset(s) == full(s));
        REQUIRE(support::simulation_difference(delta, full) == "");
        auto const &mine = delta.plan(), &theirs = full.plan();
        for (std::size_t c = 0; c < theirs.classes.size(); ++c) {
            REQUIRE(mine.classes[c].members == theirs.classes[c].members);
            REQUIRE(mine.classes[c].sync.groups.size() == theirs.classes[c].sync.groups.size());
            for (std::size_t k = 0; k < theirs.classes[c].sync.groups.size(); ++k)
                REQUIRE(mine.classes[c].sync.groups[k].contributors == theirs.classes[c].sync.groups[k].contributors);
            for (std::size_t k = 0; k < theirs.classes[c].sync.held.size(); ++k)
                REQUIRE(mine.classes[c].sync.held[k].contributors == theirs.classes[c].sync.held[k].contributors);
        }
    }
}
