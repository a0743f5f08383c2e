#include <parsearch/io/exports/device_mesh.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
/// x -> fc1 (s 64, o 32, k 16) -> relu -> fc2 (s 64, o 16, k 32).
graph::dense_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 16}});
    g.add("fc2", ops::linear{.out = 16}, g.add("relu", ops::relu{}, g.add("fc1", ops::linear{.out = 32}, x)));
    return graph::read_graph(g).graph;
}
std::vector<std::uint32_t> all_of(graph::dense_graph const& g) { return g.order; }
} // namespace

TEST_CASE("a mesh has an axis for each distance") {
    auto const g = two_layers();
    auto const all = all_of(g);
    auto const tensor = space::tensor_parallel(g, 8, 2);
    auto const mesh = mesh_of(g, tensor, all, 0, 8);
    CHECK(mesh == device_mesh{0, {{"data", 4, 2}, {"model", 2, 1}}});
    CHECK(mesh.devices() == 8);
    CHECK(mesh_of(g, space::data_parallel(g, 8), all, 0, 8) == device_mesh{0, {{"data", 8, 1}}});
    std::vector<std::int32_t> const nodes{4};
    CHECK(mesh_of(g, space::data_parallel(g, 8), all, 0, 8, nodes) == device_mesh{0, {{"data", 2, 4}, {"data2", 4, 1}}});
    CHECK(mesh_of(g, space::one_device(g), all, 0, 4) == device_mesh{0, {{"idle", 4, 1}}});
    CHECK(mesh_of(g, space::one_device(g), all, 0, 1) == device_mesh{0, {}});

    auto const fc1 = use_of(mesh, g.operations[1], tensor[1], "fc1");
    CHECK(fc1.dims == std::vector<axis_numbers>{{0}, {1}, {}});
    CHECK(fc1.idle.empty());
    CHECK(split_of(g.operations[1], g.operations[1].weights[0], fc1, "fc1") == std::vector<axis_numbers>{{1}, {}});
    CHECK(split_of(g.operations[1], g.operations[1].outputs[0], fc1, "fc1") == std::vector<axis_numbers>{{0}, {1}});
    CHECK(axes_beside(g.operations[1].weights[0], fc1) == axis_numbers{0});
    auto const fc2 = use_of(mesh, g.operations[3], tensor[3], "fc2"); // by reduction
    CHECK(axes_beside(g.operations[3].outputs[0], fc2) == axis_numbers{1});
}

TEST_CASE("a list of devices that are evenly spaced is as good as strides") {
    auto const g = two_layers();
    auto c = space::whole(g.operations[1]);
    c.degree = {2, 2, 1};
    c.listed = {0, 2, 1, 3};
    auto const even = evenly_spaced(c);
    REQUIRE(even);
    CHECK(even->stride[0] == 1);
    CHECK(even->stride[1] == 2);
    c.listed = {0, 2, 3, 1};
    CHECK(!evenly_spaced(c));
}

TEST_CASE("what no mesh has is refused by name") {
    auto const g = two_layers();
    auto const all = all_of(g);
    auto s = space::data_parallel(g, 4);
    s[1].listed = {0, 1, 3, 2};
    CHECK(support::refusal([&] {
              return mesh_of(g, s, all, 0, 4);
          }).find("operator 'fc1' (linear): s4 @{0,1,3,2}: a mesh needs devices evenly spaced along each dim") != std::string::npos);
    s[1].listed = {3, 2, 1, 0};
    CHECK(support::refusal([&] {
              return mesh_of(g, s, all, 0, 4);
          }).find("operator 'fc1' (linear): s4 @{3,2,1,0}: dim 's' has stride -1: along an axis of a mesh devices are numbered upwards") !=
          std::string::npos);
    CHECK(support::refusal([&] {
              return mesh_of(g, space::data_parallel(g, 3, true), all, 0, 3);
          }).find("operator 'fc1' (linear): s3 @0+1: dim 's' of extent 64 is in 3 parts: an axis of a mesh makes equal parts") != std::string::npos);
    auto wide = space::data_parallel(g, 6); // 64 samples: by 4
    wide[1].degree[0] = 2;
    wide[1].stride[0] = 3;
    CHECK(support::refusal([&] { return mesh_of(g, wide, all, 0, 6); }).find("apart: of the distances of a mesh each must divide the next") !=
          std::string::npos);
    auto one = space::data_parallel(g, 4);
    one[3].degree = {2, 2, 1};
    one[3].stride = {1, 1, 0};
    auto const mesh = mesh_of(g, one, all, 0, 4);
    CHECK(support::refusal([&] {
              return use_of(mesh, g.operations[3], one[3], "fc2");
          }).find("operator 'fc2' (linear): s2 o2 @0+1,1: several shards are on one device: a mesh has one on each") != std::string::npos);
    auto later = space::data_parallel(g, 4);
    later[3] = space::whole(g.operations[3], 7);
    CHECK(support::refusal([&] { return use_of(mesh, g.operations[3], later[3], "fc2"); }).find("begins on device 7, its stage is on 4 from 0") !=
          std::string::npos);
}

TEST_CASE("windows that overlap are no pieces") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 3, 16, 16}});
    g.add("conv", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    auto const read = graph::read_graph(g).graph;
    auto const& op = read.operations[1];
    auto c = space::whole(op);
    c.degree[2] = 2;
    c.stride[2] = 1;
    device_mesh const mesh{0, {{"model", 2, 1}}};
    auto const use = use_of(mesh, op, c, "conv");
    CHECK(split_of(op, op.outputs[0], use, "conv")[2] == axis_numbers{0});
    CHECK(support::refusal([&] {
              return split_of(op, op.inputs[0], use, "conv");
          }).find("'x' is split along axis 2 by dim 'h' in pieces that overlap or have gaps") != std::string::npos);
}

TEST_CASE("an axis that dims do not cover is not cut") {
    ops::operation op = ops::linear{.out = 16}.infer(std::vector<ops::tensor>{{{16, 8, 16}}});
    auto& axis = op.inputs[0].axes[0];
    axis.extent = 256; // 16 * 8 elements of it are read
    axis.terms = {{.dim = 0, .stride = 8}, {.dim = 1, .stride = 1}};
    auto c = space::whole(op);
    c.degree[0] = 2;
    c.stride[0] = 1;
    device_mesh const mesh{0, {{"data", 2, 1}}};
    auto const use = use_of(mesh, op, c, "fc");
    CHECK(support::refusal([&] {
              return split_of(op, op.inputs[0], use, "fc");
          }).find("is split along axis 0 by dim 's' in pieces that overlap or have gaps") != std::string::npos);
    axis.extent = 128;
    CHECK(split_of(op, op.inputs[0], use, "fc")[0] == axis_numbers{0});
}

// Pieces are what `ops::axis_interval` says that each shard touches.
TEST_CASE("the axes of a mesh cut tensors as shards do") {
    std::mt19937_64 rng(5);
    auto const draw = [&](int n) { return static_cast<std::int32_t>(rng() % static_cast<std::uint64_t>(n)); };
    for (int round = 0; round < 200; ++round) {
        ops::operation const op = ops::linear{.out = 16}.infer(std::vector<ops::tensor>{{{16, 8, 16}}});
        auto c = space::whole(op);
        std::vector<std::size_t> dims{0, 1, 2, 3};
        std::ranges::shuffle(dims, rng);
        std::int32_t stride = 1;
        for (auto const k : dims) {
            c.degree[k] = 1 << draw(3);
            c.stride[k] = c.degree[k] > 1 ? stride : 0;
            stride *= c.degree[k];
        }
        graph::dense_graph g;
        g.names = {"fc"};
        g.operations = {op};
        std::vector<space::configuration> const strategy{c};
        std::vector<std::uint32_t> const which{0};
        auto const mesh = mesh_of(g, strategy, which, 0, stride);
        auto const use = use_of(mesh, op, c, "fc");
        for (auto const* o : {&op.inputs[0], &op.weights[0], &op.outputs[0]}) {
            auto const split = split_of(op, *o, use, "fc");
            for (std::int64_t n = 0; n < c.shards(); ++n) {
                auto const box = ops::shard_box(op, c.degrees(), n);
                for (std::size_t a = 0; a < o->axes.size(); ++a) {
                    std::int64_t piece = 0, pieces = 1;
                    for (auto const axis : split[a]) {
                        piece = piece * mesh.axes[axis].size + c.device(n) / mesh.axes[axis].stride % mesh.axes[axis].size;
                        pieces *= mesh.axes[axis].size;
                    }
                    auto const touched = ops::axis_interval(o->axes[a], box);
                    CHECK(touched.begin == piece * (o->axes[a].extent / pieces));
                    CHECK(touched.end == (piece + 1) * (o->axes[a].extent / pieces));
                }
            }
        }
    }
}
