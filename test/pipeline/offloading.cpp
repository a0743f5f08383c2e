#include <parsearch/pipeline/offloading.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/memory_over_time.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {
// Forward takes 1 us, backward 2; copies to hosts as long as their bytes at the rate.
struct unit_oracle {
    std::int64_t copies = 0; // picoseconds, where not 0
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        return picoseconds{w.pass == ops::pass::update ? 0 : w.pass == ops::pass::forward ? 1'000'000 : 2'000'000};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const {
        return copies != 0 ? picoseconds{copies} : time_of(bytes, link.rate);
    }
};
constexpr byte_count kept = 64 * 16; // bytes of its input that each layer keeps

// Layers on one device, whose copies of what one keeps take `microseconds`.
parallelization chain(int layers, double microseconds, unit_oracle oracle = {}) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{64, 4}});
    for (int i = 0; i < layers; ++i) x = g.add(text("fc", i), ops::linear{.out = 4}, x);
    auto topology = support::mesh(1);
    topology.device[0].host_rate = {kept / (microseconds * 1e-6)};
    return make_problem(g, topology, oracle);
}
// All of them offloaded, each a segment.
pipeline::pipeline_plan offloaded(parallelization const& p) {
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(p.graph()), .strategy = {}};
    for (std::uint32_t op = 0; op < p.size(); ++op) {
        plan.how.segment.push_back(op);
        plan.how.offloaded.push_back(op > 0);
        plan.strategy.push_back(space::whole(p.graph().operations[op]));
    }
    return plan;
}
} // namespace

TEST_CASE("offloading: copies behind forward and ahead of backward, by hand") {
    for (auto const& [copy, all] : {std::pair{0.5, 12}, {1.0, 12}, {3.0, 21}}) {
        INFO("copies of ", copy, " us");
        // Copies of 3 us: to the host 1-4, 4-7, 7-10; the third and fourth layer wait for the first two, 4-5 and 7-8. The last stays, 8-10 backward.
        // Back 10-13, 13-16, 16-19; backward 13-15, 16-18, 19-21.
        auto const p = chain(4, copy);
        auto const plan = offloaded(p);
        auto const r = simulate(p, plan);
        CHECK(r.makespan.count() == all * 1'000'000);
        CHECK(r.memory[0].activations == 2 * kept);
        CHECK(r.bytes_moved() == 0); // between devices
        int there = 0, back = 0;
        for (std::uint32_t t = 0; t < r.tasks.size(); ++t) {
            there += r.run_of(t).part == sim::task_part::to_host;
            back += r.run_of(t).part == sim::task_part::from_host;
            if (r.run_of(t).part == sim::task_part::to_host) CHECK(r.carried[t].bytes == kept);
        }
        CHECK(there == 3);
        CHECK(back == 3);
    }
    auto const p = chain(4, 1);
    auto const plan = offloaded(p);
    auto const r = simulate(p, plan);
    std::vector<std::pair<std::int64_t, byte_count>> told;
    for (auto const& s : memory_over_time(p.graph(), plan, r, 0))
        told.emplace_back(s.time.count() / 1'000'000, (s.bytes - r.memory[0].total() + r.memory[0].activations) / kept);
    // While one layer computes, what another keeps leaves or comes.
    CHECK(told == std::vector<std::pair<std::int64_t, byte_count>>{{0, 1}, {1, 2}, {10, 1}, {12, 0}});
}

TEST_CASE("offloading: what is computed again leaves only the inputs of its segments to be copied") {
    auto const p = chain(6, 1);
    auto plan = offloaded(p);
    plan.how.segment = {0, 0, 0, 1, 1, 2, 2};
    plan.how.recompute = {true};
    auto const r = simulate(p, plan);
    // Forward 6 us, then each segment again and backward, 6 us. Two inputs of segments are there, and what is inside of one.
    CHECK(r.makespan.count() == 24'000'000);
    CHECK(r.memory[0].activations == 3 * kept);
    plan.how.offloaded.clear();
    auto const here = simulate(p, plan);
    CHECK(here.makespan == r.makespan);
    CHECK(here.memory[0].activations == 4 * kept);
    // Some segments may keep all on the host.
    plan.how.offloaded.assign(7, true);
    plan.how.kept = {false, true, true, false, false, true, true};
    auto const mixed = simulate(p, plan);
    CHECK(mixed.makespan.count() == 20'000'000);
    CHECK(mixed.memory[0].activations == (1 + 2 * 2) * kept);
}

TEST_CASE("offloading: one of several micro-batches is on the device, the others under way on the host") {
    auto const p = chain(2, 0.001);
    auto plan = offloaded(p);
    plan.how.micro_batches = 8;
    plan.how.order = pipeline::launch_order::gpipe;
    CHECK(simulate(p, plan).memory[0].activations == 2 * kept / 8);
    plan.how.offloaded.clear();
    CHECK(simulate(p, plan).memory[0].activations == 2 * kept);
    // A segment whose backward follows its forward is not copied.
    plan.how.order = pipeline::launch_order::one_f_one_b;
    plan.how.segment.clear();
    plan.how.offloaded.assign(3, true);
    auto const r = simulate(p, plan);
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t) CHECK(r.run_of(t).part == sim::task_part::whole);
}

TEST_CASE("offloading: what is wrong is named") {
    auto const p = chain(2, 1);
    auto plan = offloaded(p);
    plan.how.order = pipeline::launch_order::zb_h1;
    CHECK(refusal([&] { return simulate(p, plan).makespan; }) ==
          "pipeline: order zb-h1 with offloaded activations: gradients of weights need them once more, when they have left; must be gpipe, 1f1b or "
          "eager-1f1b");
    plan = offloaded(p);
    plan.how.offloaded.pop_back();
    CHECK(refusal([&] { return simulate(p, plan).makespan; }) ==
          "pipeline: 'offloaded' has the size 2: the graph has 3 operators, must be as many, or empty");
    graph::operator_graph g;
    g.add("fc", ops::linear{.out = 4}, g.input("in", {{64, 4}}));
    auto const without = make_problem(g, support::mesh(1), unit_oracle{});
    CHECK(refusal([&] { return simulate(without, offloaded(without)).makespan; }) ==
          "pipeline: operator 'fc' is offloaded from device 0 (gpu), whose rate to its host is not known: 'host_rate' must be positive");
    for (auto const ps : {std::int64_t{-5}, (std::int64_t{1} << 60) + 1}) {
        auto const odd = chain(2, 1, {.copies = ps});
        CHECK(refusal([&] { return simulate(odd, offloaded(odd)).makespan; }) ==
              text("the cost oracle answers ", ps,
                   " ps for a copy of 1024 bytes between device 0 (gpu) and its host: must be from 0 to "
                   "1152921504606846976 (13 days)"));
    }
    auto const inference = make_problem(g, support::mesh(1), unit_oracle{}, {.simulation = {.training = false}}); // keeps nothing
    CHECK(simulate(inference, offloaded(inference)).makespan.count() == 1'000'000);
}
