#include <parsearch/space/strategy_space.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

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

TEST_CASE("strategy_space: splits that are not allowed are not there, of the operator that is named alone") {
    auto const g = network();
    bool none = false;
    auto const rules = [&none](std::string_view name, ops::operation const&, std::span<std::int32_t const> degrees) {
        if (name == "fc1") return !none && degrees[0] == 2 && degrees[1] == 2 && ops::shard_count(degrees) == 4;
        return name != "fc2" || ops::shard_count(degrees) > 1;
    };
    space::space_options const options{.allows = rules};
    space::strategy_space const all(g, 4), s(g, 4, options);
    CHECK(&s.of(1) != &s.of(3));
    CHECK(s.of(1).splits() == 1);
    for (auto const& c : s[1]) CHECK((c.degree[0] == 2 && c.degree[1] == 2 && c.shards() == 4));
    CHECK(s.of(3).splits() == all.of(3).splits() - 1);
    CHECK(s[3].size() == all[3].size() - 4);
    CHECK(s[2].size() == all[2].size());
    std::size_t kept = 0;
    for (auto const& c : all[3]) {
        CHECK(s.contains(3, c) == (c.shards() > 1));
        kept += s.contains(3, c);
        CHECK(space::allows(options, "fc2", g.operations[3], c) == (c.shards() > 1));
    }
    CHECK(kept == s[3].size());
    CHECK(space::first_not_allowed(options, g, s.nearest(space::one_device(g))) == std::nullopt);
    CHECK(space::first_not_allowed(options, g, space::one_device(g)) == 1);
    CHECK(space::first_not_allowed({}, g, space::one_device(g)) == std::nullopt);
    // The nearest of what is left: one that divides, or else that with the fewest shards.
    auto const whole = space::whole(g.operations[1], 3);
    CHECK(s.of(1).nearest(whole) == s[1][0]);
    CHECK(s.of(3).nearest(whole).shards() == 2);
    CHECK(s.of(3).nearest(s[3][5]) == s[3][5]);
    none = true;
    CHECK_THROWS_WITH_AS(space::strategy_space(g, 4, {.allows = rules}), doctest::Contains("configuration space of operator 'fc1': none of its "),
                         invalid_input);
    // Of another graph, such as a micro-batch's, an operator may have any then.
    auto small = g;
    small.operations[1].dims[0].extent = 1;
    CHECK(space::strategy_space(small, s)[1].size() == space::strategy_space(small, 4)[1].size());
}

TEST_CASE("strategy_space: copies share and outlive") {
    auto const copy = [] {
        space::strategy_space const s(network(), 2);
        return s;
    }();
    CHECK(copy[1][0].shards() == 1);
}
