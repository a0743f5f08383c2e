#include <parsearch/sim/task/gradient_sync.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/configuration.hpp>

#include "support/hand_network.hpp"

using namespace parsearch;

namespace {

/// Linear layers of 8 x 8 without bias that share one parameter.
graph::dense_graph steps(int count) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("x", {{8, 8}});
    for (int i = 0; i < count; ++i) x = g.add(text("step", i), ops::linear{.out = 8, .bias = false, .parameter = "w"}, x);
    return graph::read_graph(g).graph;
}

sim::sync_plan plan(graph::dense_graph const& g, std::vector<space::configuration> const& configurations) {
    std::vector<std::uint32_t> members;
    std::map<std::uint32_t, std::vector<std::uint32_t>> devices;
    for (std::uint32_t i = 0; i < configurations.size(); ++i) {
        members.push_back(i + 1); // operator 0 is the input
        for (std::int64_t n = 0; n < configurations[i].shards(); ++n)
            devices[i + 1].push_back(static_cast<std::uint32_t>(configurations[i].device(n)));
    }
    return sim::plan_sync(
        g, members, sim::simulation_options{}, [&](std::uint32_t op) { return configurations[op - 1].degrees(); },
        [&](std::uint32_t op) -> std::vector<std::uint32_t> const& { return devices.at(op); });
}

using devices = std::vector<std::uint32_t>;
using shards = std::vector<sim::shard_ref>;

} // namespace

TEST_CASE("gradient_sync: a split batch replicates the weights, split features do not") {
    auto const g = steps(1);
    auto const& op = g.operations[1];
    auto const replicated = plan(g, {support::split(op, "s", {2, 0})});
    REQUIRE(replicated.groups.size() == 1);
    CHECK(replicated.groups[0].devices == devices{0, 2});
    CHECK(replicated.groups[0].bytes == 256);
    CHECK(replicated.groups[0].contributors == shards{{1, 0}, {1, 1}});
    REQUIRE(replicated.held.size() == 2);
    CHECK(replicated.held[1].device == 2);
    CHECK(replicated.held[1].elements == 64);
    CHECK(replicated.held[1].groups == std::vector<std::uint32_t>{0});
    CHECK(replicated.held[1].contributors.empty());
    for (auto const* const dim : {"o", "k"}) {
        auto const divided = plan(g, {support::split(op, dim, {2, 0})});
        CHECK(divided.groups.empty());
        REQUIRE(divided.held.size() == 2);
        CHECK(divided.held[0].bytes == 128);
        CHECK(divided.held[0].contributors == shards{{1, 1}});
    }
}

TEST_CASE("gradient_sync: shards of a split batch on one device hold the weights once") {
    auto const g = steps(1);
    auto const p = plan(g, {support::split(g.operations[1], "s", {3, 3})});
    CHECK(p.groups.empty());
    REQUIRE(p.held.size() == 1);
    CHECK(p.held[0].bytes == 256);
    CHECK(p.held[0].contributors == shards{{1, 0}, {1, 1}});
}

TEST_CASE("gradient_sync: shared weights that are split differently are cut where their parts differ") {
    auto const g = steps(2);
    auto const& op = g.operations[1];
    // Step 0 has rows [0, 4) on device 0 and [4, 8) on 1; step 1 has columns [0, 4) on 1 and [4, 8) on 2.
    auto const p = plan(g, {support::split(op, "o", {0, 1}), support::split(op, "k", {1, 2})});
    REQUIRE(p.groups.size() == 3);
    CHECK(p.groups[0].devices == devices{0, 1}); // upper left
    CHECK(p.groups[0].contributors == shards{{1, 0}, {2, 0}});
    CHECK(p.groups[1].devices == devices{0, 2}); // upper right
    CHECK(p.groups[1].contributors == shards{{1, 0}, {2, 1}});
    CHECK(p.groups[2].devices == devices{1, 2}); // lower right
    CHECK(p.groups[2].contributors == shards{{1, 1}, {2, 1}});
    for (auto const& group : p.groups) CHECK(group.bytes == 64);
    REQUIRE(p.held.size() == 3);
    CHECK(p.held[0].elements == 32);
    CHECK(p.held[1].elements == 48);
    CHECK(p.held[2].elements == 32);
    CHECK(p.held[1].groups == std::vector<std::uint32_t>{0, 2});
    CHECK(p.held[1].contributors == shards{{1, 1}, {2, 0}}); // lower left is on device 1 alone
}

TEST_CASE("gradient_sync: an all-reduce waits only for the shards that compute its part") {
    auto const g = steps(2);
    auto const& op = g.operations[1];
    // Step 0 whole on device 0; step 1 has rows [0, 4) on device 0 and [4, 8) on device 1.
    auto const p = plan(g, {space::whole(op), support::split(op, "o", {0, 1})});
    REQUIRE(p.groups.size() == 1);
    CHECK(p.groups[0].contributors == shards{{1, 0}, {2, 1}});
    CHECK(p.groups[0].bytes == 128);
    CHECK(p.held[0].contributors == shards{{1, 0}, {2, 0}});
    CHECK(p.held[0].elements == 64);
}

TEST_CASE("gradient_sync: parts of a described weight may overlap and leave a rest") {
    // A window of two slides over a weight of four in two steps: parts [0, 2) and [1, 3); position 3 is nobody's.
    graph::operator_graph g;
    ops::operation op{.kind = "sliding", .dims = {{"o", 2, ops::dim_kind::parameter}}};
    op.weights.push_back({.name = "w", .axes = {{.extent = 4, .terms = {{0, 1}}, .span = 2}}});
    op.outputs.push_back({.name = "y", .axes = {{.extent = 2, .terms = {{0, 1}}}}});
    (void)g.input("x", {{1}});
    g.insert("sliding", op, {});
    auto const p = plan(graph::read_graph(g).graph, {support::split(op, "o", {0, 1})});
    REQUIRE(p.groups.size() == 1);
    CHECK(p.groups[0].bytes == 4);
    CHECK(p.held[0].elements == 2);
    CHECK(p.held[1].elements == 2);
}

TEST_CASE("gradient_sync: shards that touch nothing of a weight do not hold it") {
    // Of the four values of o only the last two reach the weight.
    graph::operator_graph g;
    ops::operation op{.kind = "late", .dims = {{"o", 4, ops::dim_kind::parameter}}};
    op.weights.push_back({.name = "w", .axes = {{.extent = 2, .terms = {{0, 1}}, .offset = -2}}});
    op.outputs.push_back({.name = "y", .axes = {{.extent = 4, .terms = {{0, 1}}}}});
    (void)g.input("x", {{1}});
    g.insert("late", op, {});
    auto const p = plan(graph::read_graph(g).graph, {support::split(op, "o", {0, 1})});
    CHECK(p.groups.empty());
    REQUIRE(p.held.size() == 1);
    CHECK(p.held[0].device == 1);
    CHECK(p.held[0].elements == 2);
}
