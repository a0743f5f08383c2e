#include <parsearch/io/display/comparison.hpp>

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/models/xdl.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/hand_network.hpp"

using namespace parsearch;

namespace {

graph::operator_graph two_layers(ops::dtype type = ops::dtype::f32) {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 64}, g.input("x", {{32, 16}, type}));
    g.add("fc2", ops::linear{.out = 8}, g.add("relu", ops::relu{}, x));
    return g;
}

auto const millisecond = [](ops::shard_work const&, std::uint32_t) { return picoseconds{1'000'000'000}; };

} // namespace

TEST_CASE("comparison: time, speed-up, throughput and utilisation by hand") {
    auto const cluster = topology::p100_cluster(1); // 4 devices of 10.6 Tflops, the same for all operators in f32
    auto const p = make_problem(two_layers(), cluster, millisecond);
    auto const s = support::all_on_first(p.graph());
    auto const c = io::compare(p, cluster, "one device", s, picoseconds{16'000'000'000});
    CHECK(c.name == "one device");
    CHECK(c.time.count() == 8'000'000'000); // 3 operators, forward and backward, and 2 updates
    CHECK(c.cost == c.time);
    CHECK(c.speed_up == 2);
    CHECK(c.samples_per_second == doctest::Approx(32 / 8e-3));
    CHECK(c.throughput_unit == "samples");
    CHECK(c.flops_utilisation == doctest::Approx(models::summarize(p.graph()).training_flops / (4 * 10.6e12) / 8e-3));
    CHECK(c.bytes_moved() == 0);
    CHECK(c.fits);
    CHECK(c.fullest_device == 0);
    CHECK(c.fullest_device_memory == sim::usable_memory(topology::p100_sxm.memory, {})); // a tenth is kept free
    CHECK(c.peak_memory == simulate(p, s).peak_memory());
    CHECK(c.fullest_device_use == c.peak_memory);
}

TEST_CASE("comparison: of one replica the figures are those of all") {
    auto const cluster = topology::nodes({.count = 4, .gpus_per_node = 2, .device = topology::h100_sxm});
    auto const p = make_problem(two_layers(), cluster, millisecond);
    auto const part = pipeline::one_replica(p, 2);
    auto const all = io::compare(p, cluster, "", tensor_parallel(p, 2), picoseconds{1});
    auto const one = io::compare(part, cluster, "", tensor_parallel(part, 2), picoseconds{1});
    CHECK(all.bytes_moved() > 0);
    CHECK(one.time == all.time);
    CHECK(one.cost == all.cost);
    CHECK(one.samples_per_second == all.samples_per_second);
    CHECK(one.flops_utilisation == doctest::Approx(all.flops_utilisation));
    CHECK(one.moved == all.moved);
    CHECK(one.fullest_device_use == all.fullest_device_use);
}

TEST_CASE("comparison: each operator against the peak for its class and type; inference counts no backward pass") {
    graph::operator_graph g;
    auto const x = g.add("half", ops::linear{.out = 64, .bias = false}, g.input("x", {{32, 16}, ops::dtype::bf16}));
    g.add("relu", ops::relu{}, x);
    auto const cluster = topology::dgx_h100(1);
    auto const p = make_problem(g, cluster, millisecond, {.simulation = {.training = false}});
    auto const c = io::compare(p, cluster, "", support::all_on_first(p.graph()), picoseconds{1});
    auto const& relu = p.graph().operations[2];
    CHECK(c.flops_utilisation == doctest::Approx((2.0 * 32 * 16 * 64 / 989.4e12 + relu.flops / 133.8e12) / 8 / 2e-3));
}

TEST_CASE("comparison: a batch is counted in samples, or in tokens where the first input is a matrix of integers") {
    auto const gpt = graph::read_graph(models::gpt({.layers = 1, .hidden = 64, .heads = 4, .sequence = 128, .vocabulary = 1000, .batch = 8})).graph;
    CHECK(io::batch_of(gpt).size == 8 * 128);
    CHECK(io::batch_of(gpt).unit == "tokens");
    auto const plain = graph::read_graph(two_layers()).graph;
    CHECK(io::batch_of(plain).size == 32);
    CHECK(io::batch_of(plain).unit == "samples");
    graph::operator_graph lookup;
    lookup.add("e", ops::embedding{.entries = 10, .features = 4}, lookup.input("x", {{7}, ops::dtype::i64}));
    CHECK(io::batch_of(graph::read_graph(lookup).graph).size == 7);
    CHECK(io::batch_of(graph::read_graph(lookup).graph).unit == "samples");
    auto const bags = graph::read_graph(models::xdl({.tables = {100, 40}, .bag = 3, .batch = 8})).graph;
    CHECK(io::batch_of(bags).size == 8);
    CHECK(io::batch_of(bags).unit == "samples");
}

TEST_CASE("comparison: the fullest device is the one whose memory is fullest, not the one with most bytes") {
    topology::cluster_builder b;
    auto large = topology::p100_sxm, small = topology::p100_sxm;
    large.kind = "large";
    small.kind = "small";
    small.memory = 1000;
    auto const first = b.add_device(large), second = b.add_device(small);
    b.add_duplex_link(first, second, {1e9}, picoseconds{0});
    auto const cluster = b.build();
    auto const p = make_problem(two_layers(), cluster, millisecond);
    auto s = support::all_on_first(p.graph());
    s[2].start = 1; // relu: 2 x 2 x 32 x 64 x 4 bytes of buffers alone
    auto const c = io::compare(p, cluster, "", s, picoseconds{1});
    auto const r = simulate(p, s);
    REQUIRE(r.memory[0].total() > r.memory[1].total());
    CHECK(c.peak_memory == r.memory[0].total());
    CHECK(c.fullest_device == 1);
    CHECK(c.fullest_device_use == r.memory[1].total());
    CHECK(c.fullest_device_memory == 900);
    CHECK_FALSE(c.fits);
    CHECK(c.moved == r.traffic);
    CHECK(c.bytes_moved() == r.bytes_moved());
}
