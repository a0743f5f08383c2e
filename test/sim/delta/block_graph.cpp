#include <parsearch/sim/delta/block_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "support/block_tasks.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

std::vector<std::uint32_t> sorted(std::span<std::uint32_t const> v) {
    std::vector<std::uint32_t> out(v.begin(), v.end());
    std::sort(out.begin(), out.end());
    return out;
}

constexpr auto none = sim::block_graph::none;

graph::dense_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 4}}));
    g.add("fc2", ops::linear{.out = 4, .bias = false}, x);
    return graph::read_graph(g).graph;
}
std::vector<std::vector<std::uint32_t>> const classes{{1}, {2}};
std::vector<std::uint32_t> const class_of{none, 0, 1};

} // namespace

TEST_CASE("block_graph: two layers by hand") {
    auto const g = two_layers();
    auto const b = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, true);
    // fc1; into fc2, fc2; backward of fc2, its synchronisation; gradient to fc1, backward of fc1, its synchronisation; updates.
    CHECK(b.blocks == 10);
    CHECK(b.operators[0].forward == none);
    CHECK(b.operators[1].forward == 0);
    CHECK(b.forward[0].block == none); // from the graph's input nothing moves
    CHECK(b.forward[1].block == 1);
    CHECK(b.operators[2].forward == 2);
    CHECK(b.operators[2].backward == 3);
    CHECK(b.classes[1].sync == 4);
    CHECK(b.backward[1].block == 5);
    CHECK(b.operators[1].backward == 6);
    CHECK(b.classes[0].sync == 7);
    CHECK(b.classes[1].update == 8);
    CHECK(b.classes[0].update == 9);
    CHECK(b.all_backward == none);
    // What fc2's forward waits for: messages, fc1 itself where it is on the same device, and its own shards where there are sums.
    std::vector<std::uint32_t> from;
    for (auto const a : b.into(2)) from.push_back(b.arcs[a].from);
    CHECK(sorted(from) == std::vector<std::uint32_t>{0, 1, 2});
    std::vector<std::uint32_t> to;
    for (auto const a : b.out_of(6)) to.push_back(b.arcs[a].to);
    CHECK(sorted(to) == std::vector<std::uint32_t>{7, 9});
}

TEST_CASE("block_graph: without overlap, one barrier between backward and synchronisation; inference has forward alone") {
    auto const g = two_layers();
    auto const b = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, false);
    CHECK(b.blocks == 11);
    CHECK(b.all_backward == 6);
    CHECK(b.classes[1].sync == 7);
    CHECK(b.classes[0].sync == 8);
    CHECK(b.arcs[b.classes[0].from_all_backward].from == 6);
    CHECK(b.arcs[b.operators[2].to_all_backward].from == b.operators[2].backward);
    auto const inference = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, false, true);
    CHECK(inference.blocks == 3);
    CHECK(inference.operators[1].backward == none);
    CHECK(inference.classes[0].update == none);
}

TEST_CASE("block_graph: blocks in their order are the tasks of the assembler, with the same predecessors") {
    std::size_t tasks = 0, aligned = 0;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const options = support::random_options(rng);
        auto const p = support::random_workload(
            rng, options, {.devices = static_cast<std::uint32_t>(1 + uniform_index(rng, 6)), .operators = 10, .kinds = bernoulli(rng, 0.5)});
        auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
        auto const g = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, false);
        auto const placed = support::place_blocks(cache, g, s);
        auto const found = support::flatten(g, placed.tasks, placed.waits, cache.resources());
        auto simulator = p.simulator();
        (void)simulator.simulate(s);
        auto const& expected = simulator.tasks();
        REQUIRE(found.resource == expected.resource);
        REQUIRE(found.duration == expected.duration);
        REQUIRE(found.resources == expected.resources);
        for (std::uint32_t t = 0; t < expected.size(); ++t) {
            INFO("task ", t);
            REQUIRE((found.kind[t] == sim::task_kind::barrier) == (expected.kind[t] == sim::task_kind::barrier));
            REQUIRE(sorted(found.before(t)) == sorted(expected.before(t)));
        }
        tasks += found.size();
        for (auto const* d : placed.waits) aligned += d && d->aligned > 0;
    }
    CHECK(tasks > 20'000);
    CHECK(aligned > 2000);
}

TEST_CASE("block_graph: arcs lead to the same block or a later one, and are listed at both ends") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {.operators = 12});
        auto const g = support::block_graph_of(*p.work);
        REQUIRE(g.any.size() == g.blocks);
        std::size_t in = 0, out = 0;
        for (std::uint32_t b = 0; b < g.blocks; ++b) {
            for (auto const a : g.into(b)) REQUIRE(g.arcs[a].to == b);
            for (auto const a : g.out_of(b)) REQUIRE(g.arcs[a].from == b);
            in += g.into(b).size();
            out += g.out_of(b).size();
        }
        REQUIRE(in == g.arcs.size());
        REQUIRE(out == g.arcs.size());
        for (auto const& a : g.arcs) REQUIRE((a.from <= a.to && a.to < g.blocks));
    }
}
