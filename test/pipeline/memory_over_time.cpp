#include <parsearch/pipeline/memory_over_time.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using pipeline::memory_step;

namespace {
// Forward takes 1 us, backward 2.
picoseconds unit(ops::shard_work const& w, std::uint32_t) {
    return picoseconds{w.pass == ops::pass::update ? 0 : w.pass == ops::pass::forward ? 1'000'000 : 2'000'000};
}
// Layers of which each keeps its input, 16 bytes per sample.
graph::operator_graph chain(int layers) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{64, 4}});
    for (int i = 0; i < layers; ++i) x = g.add(text("fc", i), ops::linear{.out = 4}, x);
    return g;
}
// The steps above what is always there, in microseconds and inputs of a micro-batch.
std::vector<std::pair<std::int64_t, byte_count>> told(std::vector<memory_step> const& steps, byte_count unit) {
    std::vector<std::pair<std::int64_t, byte_count>> out;
    for (auto const& s : steps) out.emplace_back(s.time.count() / 1'000'000, (s.bytes - steps.back().bytes) / unit);
    return out;
}
using told_steps = std::vector<std::pair<std::int64_t, byte_count>>;
} // namespace

TEST_CASE("memory over time: micro-batches come with their forward and go with their backward, by hand") {
    auto const p = make_problem(chain(2), support::mesh(2, 1e9), unit);
    pipeline::pipeline_plan plan{.how = {.stage = {0, 0, 1}, .stages = 2, .micro_batches = 4}, .strategy = {}};
    plan.strategy = {space::whole(p.graph().operations[0]), space::whole(p.graph().operations[1]), space::whole(p.graph().operations[2], 1)};
    auto const part = pipeline::micro_batch(p.graph(), 4);
    auto const r = simulate(p, plan);
    // Device 1: forward and backward in turn, from 1 us on. Device 0 has two under way, the last forward follows the second backward at once.
    CHECK(told(memory_over_time(part, plan, r, 1), 256) == told_steps{{0, 0}, {1, 1}, {13, 0}});
    CHECK(told(memory_over_time(part, plan, r, 0), 256) == told_steps{{0, 1}, {1, 2}, {12, 1}, {15, 0}});
    CHECK(memory_over_time(part, plan, r, 0).front().bytes == r.memory[0].total() - 256);

    auto inference = r;
    for (auto& m : inference.memory) m.activations = 0;
    CHECK(memory_over_time(part, plan, inference, 1) == std::vector<memory_step>{{picoseconds{0}, inference.memory[1].total()}});
    CHECK(support::refusal([&] { return memory_over_time(part, plan, r, 2).size(); }) == "memory of device 2: the simulation has 2");
    plan.strategy.pop_back();
    CHECK(support::refusal([&] { return memory_over_time(part, plan, r, 0).size(); }) ==
          "a plan of 2 configurations: the graph has 3 operators, must be one each");
}

TEST_CASE("memory over time: what is computed again comes with its segment, by hand") {
    auto const p = make_problem(chain(4), support::mesh(1), unit);
    auto const& g = p.graph();
    pipeline::pipeline_plan plan{.how = {.stage = {0, 0, 0, 0, 0}, .stages = 1, .micro_batches = 1, .recompute = {true}, .segment = {0, 0, 0, 1, 1}},
                                 .strategy = {}};
    for (auto const& op : g.operations) plan.strategy.push_back(space::whole(op));
    auto const r = simulate(p, plan);
    // The segments keep their inputs from 0 and 2 us on; forward ends at 4. Then the second is computed again, whose middle tensor comes at 5 and
    // goes with the backward of its reader at 8; likewise the first from 10 on.
    CHECK(told(memory_over_time(g, plan, r, 0), 1024) == told_steps{{0, 1}, {2, 2}, {5, 3}, {8, 2}, {10, 1}, {11, 2}, {14, 1}, {16, 0}});
    CHECK(r.makespan.count() == 16'000'000);
    CHECK(r.memory[0].activations == 3 * 1024);
}
