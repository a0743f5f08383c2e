#include <parsearch/graph/ring_attention.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/collectives.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

#include "support/hand_network.hpp"
#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using graph::with_ring_attention;
using support::refusal;

namespace {

/// Attention takes a time, backward twice as long, all else none; a message takes its bytes in ps.
struct attention_alone {
    std::int64_t time = 0;
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        if (w.op->work != ops::work_class::attention || w.pass == ops::pass::update) return {};
        return picoseconds{w.pass == ops::pass::forward ? time : 2 * time};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const { return time_of(bytes, link.rate); }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return cost::alpha_beta{}.collective_time(kind, bytes, group);
    }
};

/// q, k, v of a sequence of 64 positions, 4 heads of 8, and the attention of them.
graph::operator_graph network() {
    graph::operator_graph g;
    auto const x = g.input("x", {{1, 64, 32}});
    auto const q = g.add("q", ops::linear{.out = 32, .bias = false}, x), k = g.add("k", ops::linear{.out = 32, .bias = false}, x),
               v = g.add("v", ops::linear{.out = 32, .bias = false}, x);
    g.add("attention", ops::attention{.heads = 4}, q, k, v);
    return g;
}

/// Positions of all operators over four devices.
template <class Problem> space::flat_strategy positions_split(Problem const& p) {
    space::flat_strategy s;
    for (auto const& op : p.graph().operations)
        s.push_back(op.work == ops::work_class::source      ? space::whole(op)
                    : op.work == ops::work_class::attention ? support::split(op, "lq", {0, 1, 2, 3})
                                                            : support::split(op, op.dims[1].name, {0, 1, 2, 3}));
    return s;
}
} // namespace

TEST_CASE("ring attention: keys and values of attentions are passed on, and nothing else") {
    auto const g =
        models::llama({.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .feed_forward = 128, .sequence = 16, .vocabulary = 100, .batch = 2});
    auto const ring = with_ring_attention(g);
    REQUIRE(ring.size() == g.size());
    std::size_t passed_on = 0;
    for (std::size_t op = 0; op < g.size(); ++op) {
        CHECK(ring[op].name == g[op].name);
        CHECK(std::ranges::equal(ring.inputs(op), g.inputs(op)));
        auto plain = ring[op].operation;
        for (std::size_t i = 0; i < plain.inputs.size(); ++i) {
            auto& input = plain.inputs[i];
            CHECK(input.passed_on == (plain.work == ops::work_class::attention && (i == 1 || i == 2)));
            passed_on += input.passed_on;
            input.passed_on = false;
        }
        CHECK(plain == g[op].operation);
    }
    CHECK(passed_on == 4);
}

TEST_CASE("ring attention: steps of computing and moving take as long as the longer of both, and a last part") {
    auto const cluster = support::mesh(4);
    for (bool const training : {false, true})
        for (std::int64_t const time : {0, 100, 1000, 3000, 8000, 10'000, 20'000, 100'000}) {
            INFO("training ", training, ", attention takes ", time);
            auto const run = [&](graph::operator_graph const& g) {
                auto const p = make_problem(g, cluster, attention_alone{time}, {.simulation = {.training = training}});
                return simulate(p, positions_split(p));
            };
            auto const before = run(network()), ring = run(with_ring_attention(network()));
            // Keys and values are 8 KiB each; three quarters of either pass each link.
            std::int64_t const gathered = 2 * (3 * 8192 / 4), computed = time - time / 4;
            auto const forward = std::max<std::int64_t>(gathered - computed, 0) + time;
            auto const started = [](sim::report const& r, sim::task_kind kind, std::initializer_list<std::uint32_t> ops) {
                std::int64_t last = 0;
                for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
                    if (r.tasks.kind[t] == kind && std::ranges::find(ops, r.tasks.label[t].op) != ops.end())
                        last = std::max(last, r.schedule.start[t]);
                return last;
            };
            auto const forward_at = [&](sim::report const& r) { return started(r, sim::task_kind::forward, {4}); };
            CHECK(forward_at(before) == gathered);
            CHECK(forward_at(ring) == std::max<std::int64_t>(gathered - computed, 0));
            if (!training) {
                CHECK(before.makespan == picoseconds{gathered + time});
                CHECK(ring.makespan == picoseconds{std::max(gathered, forward)});
                continue;
            }
            // Backward: gradients of both are summed and scattered, and keys and values passed on again.
            auto const backward_at = [&](sim::report const& r) { return started(r, sim::task_kind::backward, {2, 3}); };
            CHECK(backward_at(before) == 2 * gathered + 3 * time);
            CHECK(backward_at(ring) == std::max(forward, gathered) + 2 * time + std::max<std::int64_t>(2 * gathered - 2 * computed, 0));
            CHECK(ring.bytes_moved() == doctest::Approx(before.bytes_moved() + 2 * 3 * 8192));
        }
}

TEST_CASE("ring attention: a shard keeps its part of keys and values, and has room for another") {
    auto const plain = network(), ring = with_ring_attention(plain);
    auto const attention = [](graph::operator_graph const& g) { return g[g.size() - 1].operation; };
    std::vector<std::int32_t> degrees(4, 1);
    CHECK(sim::memory_of(attention(ring), degrees).inputs == std::vector<byte_count>{8192, 8192, 8192});
    CHECK(sim::memory_of(attention(ring), degrees).on_the_way == 0);
    degrees = {1, 4, 1, 1}; // lq
    CHECK(sim::memory_of(attention(plain), degrees).inputs == std::vector<byte_count>{2048, 8192, 8192});
    CHECK(sim::memory_of(attention(ring), degrees).inputs == std::vector<byte_count>{2048, 2048, 2048});
    CHECK(sim::memory_of(attention(ring), degrees).on_the_way == 2 * 2048);
    CHECK(sim::memory_of(attention(ring), degrees).working() == 4 * 2048 + 2 * 2048);
    degrees = {1, 2, 1, 1}; // two exchange messages
    CHECK(sim::memory_of(attention(ring), degrees).inputs == std::vector<byte_count>{4096, 8192, 8192});
    degrees = {1, 4, 2, 1}; // heads, too, by which keys and values are split: they may come otherwise
    CHECK(sim::memory_of(attention(ring), degrees).inputs == std::vector<byte_count>{1024, 4096, 4096});
}

TEST_CASE("ring attention: one tensor as keys and values is passed on once") {
    std::int64_t const time = 4000;
    graph::operator_graph g;
    auto const x = g.add("x", ops::linear{.out = 32, .bias = false}, g.input("in", {{1, 64, 32}}));
    g.add("attention", ops::multi_head_attention{.heads = 4}, x, x, x);
    auto const p = make_problem(with_ring_attention(g), support::mesh(4), attention_alone{time}, {.simulation = {.training = false}});
    auto const& ops_of = p.graph().operations;
    space::flat_strategy const s{space::whole(ops_of[0]), support::split(ops_of[1], ops_of[1].dims[1].name, {0, 1, 2, 3}),
                                 support::split(ops_of[2], "lq", {0, 1, 2, 3})};
    CHECK(simulate(p, s).makespan == picoseconds{6144 - 3000 + 4000});
    // Features of all positions are of no use alone: nothing is computed while they come.
    space::flat_strategy const features{s[0], support::split(ops_of[1], ops_of[1].dims[2].name, {0, 1, 2, 3}), s[2]};
    CHECK(simulate(p, features).makespan >= picoseconds{6144 + 4000});
}

TEST_CASE("ring attention: fabrics carry what backward passes on again, and messages make no rings") {
    auto const traffic = [](graph::operator_graph const& g) {
        auto const p = make_problem(g, support::mesh(4), attention_alone{1000});
        return fabric::traffic_of(p.graph(), std::vector<std::uint32_t>{0, 1, 2, 3}, p.options(), positions_split(p));
    };
    auto const sum = [](fabric::demand const& d) { return d.point_to_point_bytes(); };
    CHECK(sum(traffic(with_ring_attention(network()))) - sum(traffic(network())) == 2 * 3 * 8192);
    CHECK(refusal([] {
              (void)make_problem(with_ring_attention(network()), support::mesh(4), attention_alone{},
                                 {.simulation = {.movement = sim::movement::pairwise}});
          }) == "operator 'attention' passes input 'k' on in a ring, and movement is pairwise: must be collective or grouped");
}
