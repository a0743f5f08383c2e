#include <parsearch/sim/delta/task_blocks.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/sim/task/planner.hpp>

#include "support/block_tasks.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;
using sim::dependence, sim::dependence_builder;

namespace {

using list = std::vector<std::uint32_t>;
using pair = std::pair<std::uint32_t, std::uint32_t>;

/// All pairs (dependent, predecessor), read from the side of the dependents.
std::vector<pair> from_dependents(dependence const& d, std::uint32_t dependents) {
    std::vector<pair> out;
    for (std::uint32_t i = 0; i < dependents; ++i)
        for (auto const p : support::predecessors_of(d, i)) out.emplace_back(i, p);
    std::sort(out.begin(), out.end());
    return out;
}
/// The same from the side of the predecessors.
std::vector<pair> from_predecessors(dependence const& d, std::uint32_t predecessors) {
    std::vector<pair> out;
    for (std::uint32_t i = 0; i < d.aligned; ++i) out.emplace_back(i, i);
    if (!d.after.empty())
        for (std::uint32_t p = 0; p < predecessors; ++p)
            for (auto k = d.first_after[p]; k < d.first_after[p + 1]; ++k) out.emplace_back(d.after[k], p);
    std::sort(out.begin(), out.end());
    return out;
}

dependence make(std::vector<pair> const& pairs, std::uint32_t dependents, std::uint32_t predecessors, bool each = false) {
    dependence_builder b;
    for (auto const& [to, from] : pairs) b.add(to, from);
    return b.make(dependents, predecessors, each);
}

/// Forward 100, backward 200, update 30; ten times that on the odd devices, which are of another kind.
struct two_speeds {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const {
        return picoseconds{(w.pass == ops::pass::forward ? 100 : w.pass == ops::pass::backward ? 200 : 30) * (d % 2 ? 10 : 1)};
    }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{1000}; }
};
support::plain_topology two_kinds(std::uint32_t devices) {
    auto t = support::mesh(devices);
    for (std::uint32_t d = 1; d < devices; d += 2) t.device[d].kind = "other";
    return t;
}

/// x[4, 8] -> a: 4 features, no bias -> b: relu.
auto two_operators(std::uint32_t devices, sim::simulation_options const& options = {}) {
    graph::operator_graph g;
    g.add("b", ops::relu{}, g.add("a", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 8}})));
    return support::make_workload_problem(g, two_kinds(devices), two_speeds{}, options);
}

} // namespace

TEST_CASE("dependence_builder: no pairs") {
    auto const d = make({}, 3, 4, true);
    CHECK(d.empty());
    CHECK(d.each);
    CHECK(d.bytes() == 0);
}

TEST_CASE("dependence_builder: task i for task i is written as a number") {
    for (auto const& pairs : {std::vector<pair>{{0, 0}, {1, 1}, {2, 2}}, std::vector<pair>{{2, 2}, {0, 0}, {1, 1}}}) {
        auto const d = make(pairs, 5, 3);
        CHECK(d.aligned == 3);
        CHECK_FALSE(d.empty());
        CHECK(d.before.empty());
        CHECK(d.after.empty());
    }
    CHECK(make({{0, 0}}, 1, 1).aligned == 1);
    // Not from 0, with a gap, with one twice, with another one.
    for (auto const& pairs :
         {std::vector<pair>{{1, 1}}, {{0, 0}, {2, 2}}, {{0, 0}, {0, 0}, {1, 1}}, {{0, 0}, {1, 1}, {1, 0}}, {{0, 0}, {1, 1}, {2, 0}}}) {
        auto const d = make(pairs, 3, 3);
        CHECK(d.aligned == 0);
        CHECK(d.before.size() == pairs.size());
    }
}

TEST_CASE("dependence_builder: pairs by hand, one of them twice") {
    auto const d = make({{2, 0}, {0, 1}, {2, 1}, {0, 1}}, 4, 2);
    CHECK(support::predecessors_of(d, 0) == list{1, 1});
    CHECK(support::predecessors_of(d, 1).empty());
    CHECK(support::predecessors_of(d, 2) == list{0, 1});
    CHECK(support::predecessors_of(d, 3).empty());
    CHECK(d.first_after == list{0, 1, 4});
    CHECK(d.after == list{2, 0, 0, 2});
}

TEST_CASE("dependence_builder: random pairs are the same from both sides; the builder starts over") {
    dependence_builder builder; // one for all
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const dependents = static_cast<std::uint32_t>(1 + uniform_index(rng, 8)),
                   predecessors = static_cast<std::uint32_t>(1 + uniform_index(rng, 8));
        std::vector<pair> pairs;
        if (bernoulli(rng, 0.2)) {
            for (std::uint32_t i = 0; i < std::min(dependents, predecessors); ++i) pairs.emplace_back(i, i);
        } else {
            for (auto n = uniform_index(rng, 20); n-- > 0;)
                pairs.emplace_back(static_cast<std::uint32_t>(uniform_index(rng, dependents)),
                                   static_cast<std::uint32_t>(uniform_index(rng, predecessors)));
        }
        for (auto const& [to, from] : pairs) builder.add(to, from);
        auto const d = builder.make(dependents, predecessors);
        std::sort(pairs.begin(), pairs.end());
        REQUIRE(from_dependents(d, dependents) == pairs);
        REQUIRE(from_predecessors(d, predecessors) == pairs);
        REQUIRE(d.empty() == pairs.empty());
    }
}

TEST_CASE("task_list: numbers and sums") {
    sim::task_list tasks;
    CHECK(tasks.add(3, 10) == 0);
    CHECK(tasks.add(0, std::int64_t{1} << 60) == 1);
    CHECK(tasks.size() == 2);
    CHECK(tasks.work() == 0x1p60 + 10);
    CHECK(tasks.bytes() == 24);
    CHECK(sim::task_list{}.work() == 0);
    sim::resource_numbers const r{4, 3};
    CHECK(r.link(0) == 4);
    CHECK(r.barrier() == 7);
    CHECK(r.size() == 8);
}

TEST_CASE("blocks: of an operator, on devices of two kinds") {
    auto const p = two_operators(2);
    auto const a = p.graph().operations[1];
    sim::block_cache cache(p.work, false);
    auto& b = cache.of_operator(1, support::split(a, "s", {0, 1}));
    cache.build(1, b);
    CHECK(b.parts.forward.resource == list{0, 1});
    CHECK(b.parts.forward.duration == std::vector<std::int64_t>{100, 1000});
    CHECK(b.parts.backward.duration == std::vector<std::int64_t>{200, 2000});
    CHECK(b.work == 3300);
    CHECK(b.parts.inside_forward.empty());
    CHECK(b.parts.backward_waits_forward.aligned == 2);
    CHECK(b.parts.all_backward_waits.bytes() > 0);
    CHECK(support::predecessors_of(b.parts.all_backward_waits, 0) == list{0, 1});
}

TEST_CASE("blocks: sums that nobody reads follow the shards") {
    graph::operator_graph g;
    g.add("a", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 8}}));
    auto const p = support::make_workload_problem(g, two_kinds(2), two_speeds{});
    sim::block_cache cache(p.work, false);
    auto& b = cache.of_operator(1, support::split(p.graph().operations[1], "k", {0, 1}));
    cache.build(1, b);
    auto const barrier = cache.resources().barrier();
    CHECK(b.parts.forward.resource == list{0, 1, barrier, 2, 3, barrier}); // two shards, an all-reduce over both links
    CHECK(b.parts.forward.duration[3] == 1000);
    CHECK(support::predecessors_of(b.parts.inside_forward, 2) == list{0, 1});
    CHECK(support::predecessors_of(b.parts.inside_forward, 3) == list{2});
    CHECK(support::predecessors_of(b.parts.inside_forward, 5) == list{3, 4});
    CHECK(b.parts.backward.size() == 2);
}

TEST_CASE("blocks: of an edge with messages") {
    auto const p = two_operators(2);
    auto const& g = p.graph();
    sim::block_cache cache(p.work, false);
    auto& from = cache.of_operator(1, support::split(g.operations[1], "s", {0, 1}));
    auto& to = cache.of_operator(2, space::whole(g.operations[2], 0));
    cache.build(1, from);
    cache.build(2, to);
    // Shard 1 sends 2 * 4 elements of 4 bytes to device 0; shard 0 is there.
    auto const& b = cache.of_edge(1, from, to);
    CHECK(b.parts.forward.resource == list{2 + support::mesh_link(2, 1, 0)});
    CHECK(b.parts.forward.duration == std::vector<std::int64_t>{32});
    CHECK(support::predecessors_of(b.parts.forward_waits, 0) == list{1});
    CHECK(b.parts.inside_forward.empty());
    CHECK(support::predecessors_of(b.parts.consumer_waits, 0) == list{0});
    CHECK(support::predecessors_of(b.parts.consumer_local, 0) == list{0});
    // Backward the other way.
    CHECK(b.parts.backward.resource == list{2 + support::mesh_link(2, 0, 1)});
    CHECK(support::predecessors_of(b.parts.backward_waits, 0) == list{0});
    CHECK(support::predecessors_of(b.parts.producer_waits, 1) == list{0});
    CHECK(support::predecessors_of(b.parts.producer_waits, 0).empty());
    CHECK(support::predecessors_of(b.parts.producer_local, 0) == list{0});
    CHECK(b.work == 64);
    // Every shard of either waits for some of the other.
    CHECK(b.parts.forward_waits.each);
    CHECK(b.parts.consumer_local.each);
    CHECK(b.parts.producer_local.each);
}

TEST_CASE("blocks: of an edge with a collective") {
    auto const p = two_operators(3);
    auto const& g = p.graph();
    sim::block_cache cache(p.work, false);
    auto& from = cache.of_operator(1, support::split(g.operations[1], "o", {0, 1, 2, 0}));
    auto& to = cache.of_operator(2, support::split(g.operations[2], "s", {0, 1, 2, 0}));
    cache.build(1, from);
    cache.build(2, to);
    auto const& b = cache.of_edge(1, from, to);
    auto const barrier = cache.resources().barrier();
    REQUIRE(b.parts.forward.size() > 2);
    CHECK(b.parts.forward.resource.front() == barrier);
    CHECK(b.parts.forward.resource.back() == barrier);
    CHECK(support::predecessors_of(b.parts.forward_waits, 0) == list{0, 1, 2, 3});
    for (std::uint32_t shard = 0; shard < 4; ++shard)
        CHECK(support::predecessors_of(b.parts.consumer_waits, shard) == list{b.parts.forward.size() - 1});
    CHECK(b.parts.consumer_local.empty());
    CHECK(support::predecessors_of(b.parts.inside_forward, 1) == list{0});
}

TEST_CASE("blocks: of a sharing class") {
    for (bool const overlap : {true, false}) {
        auto const p = two_operators(3, {.overlap = overlap});
        sim::block_cache cache(p.work, false);
        auto& a = cache.of_operator(1, support::split(p.graph().operations[1], "s", {0, 1}));
        cache.build(1, a);
        auto const& b = cache.of_class(0, [&](std::uint32_t) -> sim::operator_blocks const& { return a; });
        auto const barrier = cache.resources().barrier();
        CHECK(b.parts.sync.resource.size() == 4); // barrier, two links, barrier
        CHECK(b.parts.sync.resource.front() == barrier);
        CHECK(b.parts.update.resource == list{0, 1});
        CHECK(b.parts.update.duration == std::vector<std::int64_t>{30, 300});
        REQUIRE(b.parts.sync_waits.size() == 1);
        CHECK(support::predecessors_of(b.parts.sync_waits[0], 0) == (overlap ? list{0, 1} : list{}));
        CHECK(support::predecessors_of(b.parts.sync_waits_all, 0) == (overlap ? list{} : list{0}));
        CHECK(b.parts.update_waits[0].empty());
        CHECK(support::predecessors_of(b.parts.update_waits_sync, 0) == list{3});
        CHECK(support::predecessors_of(b.parts.update_waits_sync, 1) == list{3});
        CHECK(b.every == std::vector<bool>{true});
        CHECK(b.shortest == 1000 + 30);
        CHECK(b.shortest_update == 30);
        // On one device there is nothing to synchronise: the update waits for the shard itself.
        auto& whole = cache.of_operator(1, space::whole(p.graph().operations[1], 2));
        cache.build(1, whole);
        auto const& alone = cache.of_class(0, [&](std::uint32_t) -> sim::operator_blocks const& { return whole; });
        CHECK(alone.parts.sync.size() == 0);
        CHECK(alone.parts.update.resource == list{2});
        CHECK(support::predecessors_of(alone.parts.update_waits[0], 0) == list{0});
        CHECK(alone.shortest == 30);
    }
}

TEST_CASE("blocks: of a sharing class with a parameter server") {
    auto const p = two_operators(2, {.synchronisation = sim::synchronisation::parameter_server});
    sim::block_cache cache(p.work, false);
    auto& a = cache.of_operator(1, support::split(p.graph().operations[1], "s", {0, 1}));
    cache.build(1, a);
    auto const& b = cache.of_class(0, [&](std::uint32_t) -> sim::operator_blocks const& { return a; });
    // Device 1 sends to device 0, which updates and sends back.
    CHECK(b.parts.sync.resource == list{2 + support::mesh_link(2, 1, 0), cache.resources().barrier()});
    CHECK(b.parts.update.resource == list{0, 2 + support::mesh_link(2, 0, 1)});
    CHECK(b.parts.update.duration == std::vector<std::int64_t>{30, 4 * 8 * 4});
    CHECK(support::predecessors_of(b.parts.sync_waits[0], 0) == list{1});
    CHECK(support::predecessors_of(b.parts.sync_waits[0], 1) == list{0});
    CHECK(support::predecessors_of(b.parts.inside_sync, 1) == list{0});
    CHECK(support::predecessors_of(b.parts.update_waits_sync, 0) == list{1});
    CHECK(support::predecessors_of(b.parts.inside_update, 1) == list{0});
}

TEST_CASE("blocks: what is said of all dependents holds") {
    std::size_t said = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {.operators = 10});
        auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
        auto const g = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, false);
        auto const placed = support::place_blocks(cache, g, s);
        auto const tasks = support::flatten(g, placed.tasks, placed.waits, cache.resources());
        auto const first = support::first_tasks(placed.tasks);
        // Blocks that each task waits for, directly or not.
        std::vector<std::uint32_t> block_of;
        for (std::uint32_t b = 0; b < g.blocks; ++b) block_of.insert(block_of.end(), first[b + 1] - first[b], b);
        std::vector<std::vector<bool>> waits_for(tasks.size(), std::vector<bool>(g.blocks));
        for (std::uint32_t t = 0; t < tasks.size(); ++t)
            for (auto const q : tasks.before(t)) {
                waits_for[t][block_of[q]] = true;
                for (std::uint32_t b = 0; b < g.blocks; ++b)
                    if (waits_for[q][b]) waits_for[t][b] = true;
            }
        for (std::uint32_t a = 0; a < g.arcs.size(); ++a) {
            if (!placed.waits[a] || !placed.waits[a]->each || first[g.arcs[a].from] == first[g.arcs[a].from + 1]) continue;
            INFO("arc ", g.arcs[a].from, " to ", g.arcs[a].to);
            for (auto t = first[g.arcs[a].to]; t < first[g.arcs[a].to + 1]; ++t) REQUIRE(waits_for[t][g.arcs[a].from]);
            ++said;
        }
    }
    CHECK(said > 1000);
}
