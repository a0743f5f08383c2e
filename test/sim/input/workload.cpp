#include <parsearch/sim/input/workload.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {
auto made(graph::operator_graph const& g, sim::simulation_options const& options) {
    auto t = topology::read_topology(support::mesh(2));
    auto const oracle = [](ops::shard_work const&, std::uint32_t) { return picoseconds{1}; };
    return sim::make_workload(graph::read_graph(g).graph, std::move(t.topology), cost::any_oracle(oracle, std::move(t.devices)), options);
}
} // namespace

TEST_CASE("workload: operators that share parameters make a class, directly or through others") {
    graph::operator_graph g;
    auto x = g.add("a", ops::linear{.out = 4, .bias = false, .parameter = "p"}, g.input("x", {{2, 4}}));
    x = g.add("relu", ops::relu{}, x);
    x = g.add("b", ops::linear{.out = 4, .bias = false}, x);
    x = g.add("c", ops::linear{.out = 4, .bias = false, .parameter = "q"}, x);
    x = g.add("d", ops::linear{.out = 4, .bias = false, .parameter = "p"}, x);
    auto both = g[1].operation; // two weights: p and q
    both.weights.push_back(g[4].operation.weights[0]);
    std::vector<graph::tensor_ref> const in{x};
    g.insert("both", both, in);
    auto const w = made(g, {});
    CHECK(w->classes == std::vector<sim::sharing_class>{{1, 4, 5, 6}, {3}});
    constexpr auto none = ~std::uint32_t{0};
    CHECK(w->class_of == std::vector<std::uint32_t>{none, 0, none, 1, 0, 0, 0});
}

TEST_CASE("workload: options are checked") {
    graph::operator_graph g;
    g.add("a", ops::linear{.out = 4}, g.input("x", {{2, 4}}));
    CHECK(support::refusal([&] { return made(g, {.memory_penalty = -1}); }) ==
          "simulation option memory_penalty is -1 ps per byte: must be finite and not negative");
    CHECK(support::refusal([&] { return made(g, {.memory_penalty = std::numeric_limits<double>::quiet_NaN()}); }) != "");
    CHECK(support::refusal([&] { return made(g, {.memory_penalty = std::numeric_limits<double>::infinity()}); }) != "");
    CHECK(support::refusal([&] { return made(g, {.memory_penalty = 0}); }) == "");
    CHECK(support::refusal([&] { return made(g, {.memory_kept_free = 1}); }) ==
          "simulation option memory_kept_free is 1: must be a share from 0 to less than 1");
    CHECK(support::refusal([&] { return made(g, {.memory_kept_free = std::numeric_limits<double>::quiet_NaN()}); }) != "");
    CHECK(support::refusal([&] { return made(g, {.context_memory = -1}); }) == "simulation option context_memory is -1 bytes: must not be negative");
}

TEST_CASE("workload: only inference has caches") {
    graph::operator_graph g;
    auto const x = g.input("x", {{2, 4, 8}});
    g.add("attend", ops::attention{.heads = 2, .causal = true, .cache = true}, x, x, x);
    CHECK(
        support::refusal([&] { return made(g, {}); }) ==
        "operator 'attend' (cached_attention) keeps a cache from one iteration to the next, and option training is true: only inference has caches");
    CHECK(support::refusal([&] { return made(g, {.training = false}); }) == "");
}
