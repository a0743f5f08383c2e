#include <parsearch/ops/group_norm.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("group_norm: groups split the weights, nothing within a group is divisible") {
    auto const op = infer(ops::group_norm{.groups = 3, .parameter = "n"}, {f32({4, 6, 8, 8})});
    CHECK(dims(op) == "s4 g3* h8! w8!");
    CHECK(extents(op.weights[0]) == shape{6});
    CHECK(shard_interval(op, op.weights[1], 0, {1, 3, 1, 1}, 2) == ops::interval{4, 6});
    CHECK(shard_extents(op, op.inputs[0], {2, 3, 1, 1}, 0) == shape{2, 2, 8, 8});
    CHECK(op.saved_bytes == 2 * 4 * 3 * 4); // mean and deviation of each group of each sample
    CHECK(infer(ops::group_norm{.groups = 2, .affine = false}, {f32({4, 6})}).weights.empty());
    CHECK(refusal(ops::group_norm{.groups = 4}, {f32({4, 6, 8})}) == "input 0 of shape f32[4,6,8]: option groups is 4: must divide the channels");
}

TEST_CASE("instance_norm: as many groups as channels") {
    auto const op = infer(ops::instance_norm{}, {f32({4, 6, 8})});
    CHECK(op.kind == "instance_norm");
    CHECK(dims(op) == "s4 g6* e8!");
    CHECK(op.flops == infer(ops::group_norm{.groups = 6}, {f32({4, 6, 8})}).flops);
    CHECK(refusal(ops::instance_norm{}, {f32({4, 6})}) == "input 0 of shape f32[4,6]: must have at least 3 axes");
}
