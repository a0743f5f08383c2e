#include <parsearch/space/strategy_space.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/hand_network.hpp"

using namespace parsearch;

static_assert(ConfigurationSpace<space::strategy_space>);
static_assert(std::same_as<configuration_t<space::strategy_space>, space::configuration>);
static_assert(Strategy<space::flat_strategy, space::configuration>);

namespace {
graph::dense_graph network() {
    graph::operator_graph g;
    auto x = g.add("fc1", ops::linear{.out = 8}, g.input("x", {{8, 8}}));
    x = g.add("relu", ops::relu{}, x);
    g.add("fc2", ops::linear{.out = 8}, x);
    return graph::read_graph(g).graph;
}

/// A strategy that is no container.
struct wrapped {
    space::flat_strategy chosen;
    [[nodiscard]] space::configuration const& configuration_of(std::size_t op) const { return chosen[op]; }
    void set_configuration(std::size_t op, space::configuration const& c) { chosen[op] = c; }
    friend bool operator==(wrapped const&, wrapped const&) = default;
};
} // namespace

TEST_CASE("flat: a flat strategy is itself, another is copied, and there must be one configuration per operator") {
    auto const g = network();
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    CHECK(&space::flat(s, 4) == &s);
    CHECK(space::flat(wrapped{s}, 4) == s);
    CHECK_THROWS_WITH_AS((void)space::flat(s, 5), "a strategy of 4 configurations: the graph has 5 operators, must be one each", invalid_input);
}

TEST_CASE("strategy_space: a space per operator; graph inputs have one configuration") {
    auto const g = network();
    space::strategy_space const s(g, 4);
    REQUIRE(s.size() == 4);
    CHECK(s[0].size() == 1);
    for (std::size_t op = 1; op < 4; ++op) {
        space::operator_space const own(g.operations[op], 4, {}, "x");
        REQUIRE(s[op].size() == own.size());
        for (std::uint32_t i = 0; i < own.size(); ++i) CHECK(s[op][i] == own[i]);
    }
    CHECK(&s.of(1) == &s.of(3)); // equal dims, one space
}

TEST_CASE("strategy_space: a graph input that has dims is on one device all the same") {
    auto g = network();
    g.operations[0].dims = {{"s", 8, ops::dim_kind::sample}};
    CHECK(space::strategy_space(g, 4)[0].size() == 1);
}

TEST_CASE("strategy_space: a user's limit may tell operators of equal dims apart") {
    auto g = network();
    g.operations[3].kind = "last";
    space::strategy_space const s(g, 4, {.max_degree = [](ops::operation const& op, ops::dim const&) { return op.kind == "last" ? 1 : 4; }});
    CHECK(s[1].size() > 4);
    CHECK(s[3].size() == 4);
}

TEST_CASE("strategy_space: copies share and outlive") {
    auto const copy = [] {
        space::strategy_space const s(network(), 2);
        return s;
    }();
    CHECK(copy[1][0].shards() == 1);
}
