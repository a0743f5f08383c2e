#include <parsearch/pipeline/unroll.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>
#include <parsearch/models/mlp.hpp>

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;

namespace {
constexpr auto no_edge = sim::task_label::no_edge;

// "task@micro-batch(' where again)<predecessors", in order.
std::string written(sim::task_graph const& g, std::vector<pipeline::task_origin> const& origins) {
    std::string out;
    for (std::uint32_t t = 0; t < g.size(); ++t) {
        out += ps::text(t ? " " : "", origins[t].task, '@', origins[t].micro_batch, origins[t].again ? "'" : "");
        for (auto const p : g.before(t)) out += ps::text('<', p);
    }
    return out;
}
} // namespace

TEST_CASE("unroll: by hand") {
    // Two operators on two devices with weights: input, a, b; tasks of one micro-batch: forward of a, message, forward of b, backward of b, its
    // synchronisation and message, backward of a, update of b.
    ps::graph::dense_graph g;
    g.names = {"in", "a", "b"};
    g.operations.resize(3);
    for (auto const op : {1U, 2U}) g.operations[op].inputs.resize(1);
    g.trains = {false, true, true};
    g.edges = {{0, 0, 1, 0}, {1, 0, 2, 0}};
    sim::task_graph one;
    one.clear(4);
    auto const add = [&](std::uint32_t resource, std::int64_t time, sim::task_kind kind, sim::task_label label,
                         std::vector<std::uint32_t> const& after) {
        for (auto const p : after) one.after(p);
        one.add(resource, time, kind, label);
    };
    add(0, 1, sim::task_kind::forward, {1}, {});                                                  // 0
    add(2, 1, sim::task_kind::transfer, {2, 0, 1, sim::traffic_kind::activation}, {0});           // 1
    add(1, 1, sim::task_kind::forward, {2}, {1});                                                 // 2
    add(1, 1, sim::task_kind::backward, {2}, {2});                                                // 3
    add(3, 0, sim::task_kind::barrier, {2, 0, no_edge, sim::traffic_kind::weight_gradient}, {3}); // 4
    add(2, 1, sim::task_kind::transfer, {1, 0, 1, sim::traffic_kind::gradient}, {3});             // 5
    add(0, 1, sim::task_kind::backward, {1}, {0, 5});                                             // 6
    add(1, 1, sim::task_kind::update, {2}, {4});                                                  // 7
    pipeline::unroller unroll;
    sim::task_graph out;
    std::vector<pipeline::task_origin> origins;
    pipeline::pipelining how{.stage = {0, 0, 1}, .stages = 2, .micro_batches = 2, .order = pipeline::launch_order::one_f_one_b};
    unroll.run(one, g, 2, how, {}, {}, false, out, origins);
    CHECK(written(out, origins) == "0@0 0@1 1@0<0 2@0<2 3@0<3 5@0<4 6@0<0<5 1@1<1 2@1<7 3@1<8 4@1<4<9 5@1<9 6@1<1<11 7@1<10");
    // In order of launches on each device as well.
    unroll.run(one, g, 2, how, {}, {}, true, out, origins);
    CHECK(written(out, origins) == "0@0 0@1<0 1@0<0 2@0<2 3@0<3<3 5@0<4 6@0<0<5<1 1@1<1 2@1<7<4 3@1<8<8 4@1<4<9 5@1<9 6@1<1<11<6 7@1<10<9");
    // The stage that computes again does not move its input again.
    how.recompute = {false, true};
    how.micro_batches = 1;
    unroll.run(one, g, 2, how, {}, {}, false, out, origins);
    CHECK(written(out, origins) == "0@0 1@0<0 2@0<1 2@0'<1 3@0<3 4@0<4 5@0<4 6@0<0<6 7@0<5");
    // One micro-batch on one stage is the graph as it was.
    unroll.run(one, g, 2, pipeline::unpipelined(g), {}, {}, false, out, origins);
    CHECK(out.resource == one.resource);
    CHECK(out.predecessors == one.predecessors);
}
