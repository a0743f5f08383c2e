#include <parsearch/pipeline/pipeline_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/space/configuration.hpp>

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
namespace space = parsearch::space;

TEST_CASE("memory: the share of a device in the optimizer's state of what it holds") {
    sim::sync_plan plan;
    plan.groups.resize(2);
    plan.groups[0].devices = {0, 1};
    plan.groups[0].elements = 60;
    plan.groups[1].devices = {0, 1, 2, 3};
    plan.groups[1].elements = 20;
    auto const share = [&](std::int64_t elements, std::vector<std::uint32_t> groups) {
        sim::held_weights held;
        held.elements = elements;
        held.groups = std::move(groups);
        return pipeline::own_share(plan, held);
    };
    CHECK(share(100, {0, 1}) == doctest::Approx((20 + 30 + 5) / 100.0)); // 20 are its own
    CHECK(share(20, {1}) == doctest::Approx(0.25));
    CHECK(share(7, {}) == 1);
    CHECK(share(0, {}) == 1);
}

TEST_CASE("memory: segments that are computed again keep what they read from outside, a tensor once") {
    ps::graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ps::ops::linear{.out = 6, .bias = false}, x);
    auto const b = net.add("b", ps::ops::linear{.out = 8, .bias = false}, a);
    auto const c = net.add("c", ps::ops::linear{.out = 8, .bias = false}, a); // reads what b reads
    net.add("d", ps::ops::add{}, b, c);
    auto const g = ps::graph::read_graph(net).graph;
    std::vector<sim::shard_memory> parts;
    std::vector<std::vector<std::uint32_t>> devices;
    for (std::size_t op = 0; op < g.size(); ++op) {
        parts.push_back(sim::memory_of(g.operations[op], space::whole(g.operations[op]).degrees()));
        devices.push_back({op <= 1 ? 0u : 1u});
    }
    auto const where = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return devices[op]; };
    auto const shards = [&](std::size_t op) -> sim::shard_memory const& { return parts[op]; };
    using by_stage = std::map<std::pair<std::uint32_t, std::uint32_t>, ps::byte_count>; // and device
    pipeline::pipelining how{.stage = {0, 0, 1, 1, 1}, .stages = 2, .recompute = {true, true}};
    auto const inputs = [&] {
        by_stage out;
        pipeline::for_segment_inputs(
            g, how, [](std::size_t) { return true; }, shards, where,
            [&](auto d, auto bytes, auto s) {
                out[{s, d}] += bytes;
            });
        return out;
    };
    auto const segments = [&] {
        by_stage out;
        pipeline::for_segments_again(g, how, shards, where, 2, [&](auto d, auto bytes, auto s) { out[{s, d}] = std::max(out[{s, d}], bytes); });
        return out;
    };
    CHECK(inputs() == by_stage{{{0, 0}, 96}, {{1, 1}, 96}}); // x; what a makes
    how.recompute = {false, true};
    CHECK(inputs() == by_stage{{{1, 1}, 96}});
    how.segment = {0, 0, 0, 1, 2}; // b, c and d on their own: what a makes is kept for b and c, what these make for d
    CHECK(inputs() == by_stage{{{1, 1}, 96 + 128 + 128}});
    CHECK(segments().empty()); // products keep what they read: all of that is kept already
    // On one stage what a makes is inside.
    how = pipeline::unpipelined(g);
    how.recompute = {true};
    CHECK(inputs() == by_stage{{{0, 0}, 96}});
    CHECK(segments() == by_stage{{{0, 1}, 96}});
    how.recompute.clear();
    CHECK(inputs().empty());
    CHECK(segments().empty());
}
