#include <parsearch/pipeline/memory.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/operator_graph.hpp>
#include <parsearch/ops/all.hpp>

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

TEST_CASE("memory: stages that compute again keep what they read from outside, a tensor once") {
    ps::graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ps::ops::linear{.out = 6, .bias = false}, x);
    auto const b = net.add("b", ps::ops::linear{.out = 8, .bias = false}, a);
    auto const c = net.add("c", ps::ops::linear{.out = 8, .bias = false}, a); // reads what b reads
    net.add("d", ps::ops::add{}, b, c);
    auto const g = ps::graph::read_graph(net).graph;
    std::vector<space::configuration> s;
    std::vector<std::vector<std::uint32_t>> devices;
    for (std::size_t op = 0; op < g.size(); ++op) {
        s.push_back(space::whole(g.operations[op], op <= 1 ? 0 : 1));
        devices.push_back({op <= 1 ? 0u : 1u});
    }
    auto const where = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return devices[op]; };
    pipeline::pipelining how{.stage = {0, 0, 1, 1, 1}, .stages = 2, .recompute = {true, true}};
    CHECK(pipeline::stage_inputs(g, how, s, where, 2) == std::vector<ps::byte_count>{96, 96}); // x; what a makes
    how.recompute = {false, true};
    CHECK(pipeline::stage_inputs(g, how, s, where, 2) == std::vector<ps::byte_count>{0, 96});
    how = pipeline::unpipelined(g);
    CHECK(pipeline::stage_inputs(g, how, s, where, 2) == std::vector<ps::byte_count>{0, 0});
}
