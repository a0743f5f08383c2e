#include <parsearch/ops/indexing.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("gather: the gathered axis is whole, the bytes are those of the rows taken") {
    auto const op = infer(ops::gather{.axis = 1}, {f32({4, 100, 8}), i64({3})});
    CHECK(extents(op.outputs[0]) == shape{4, 3, 8});
    CHECK(shard_extents(op, op.inputs[0], {2, 3, 1}, 0) == shape{2, 100, 8});
    CHECK(replicated_by(op, op.inputs[0]) == "l");
    CHECK(replicated_by(op, op.inputs[1]) == "s e");
    CHECK(op.inputs[0].touched_bytes == 4 * 3 * 8 * 4);
    CHECK_FALSE(op.inputs[1].differentiable);
}

TEST_CASE("gather: indices of any number of axes take the place of the axis") {
    auto const data = f32({4, 100, 8});
    auto const square = infer(ops::gather{.axis = 1}, {data, i64({3, 2})});
    CHECK(extents(square.outputs[0]) == shape{4, 3, 2, 8});
    CHECK(replicated_by(square, square.inputs[0]) == "c h");
    CHECK(shard_extents(square, square.inputs[1], {1, 3, 1, 1}, 0) == shape{1, 2});
    CHECK(extents(infer(ops::gather{.axis = -1}, {data, i64({})}).outputs[0]) == shape{4, 100});
    CHECK(refusal(ops::gather{}, {data, f32({3})}) == "input 1 of shape f32[3]: indices must have type i64 or i32");
}

TEST_CASE("gather_elements and gather_nd: what a shard reads") {
    auto const op = infer(ops::gather_elements{.axis = 1}, {f32({4, 100, 8}), i64({4, 6, 8})});
    CHECK(extents(op.outputs[0]) == shape{4, 6, 8});
    CHECK(shard_extents(op, op.inputs[0], {2, 3, 2}, 0) == shape{2, 100, 4});
    CHECK(refusal(ops::gather_elements{.axis = 1}, {f32({4, 6}), i64({5, 6})}) ==
          "input 1 of shape i64[5,6]: axis 0 must have at most extent 4, that of input 0");

    auto const nd = infer(ops::gather_nd{.batch_axes = 1}, {f32({4, 5, 6, 8}), i64({4, 3, 2})});
    CHECK(extents(nd.outputs[0]) == shape{4, 3, 8});
    CHECK(shard_extents(nd, nd.inputs[0], {2, 3, 2}, 0) == shape{2, 5, 6, 4});
    CHECK(shard_extents(nd, nd.inputs[1], {2, 3, 2}, 0) == shape{2, 1, 2});
    CHECK(nd.inputs[0].gradient_flops == 4 * 3 * 8);
    CHECK_FALSE(refusal(ops::gather_nd{}, {f32({4, 5}), i64({2, 3})}).empty());
}

TEST_CASE("scatter_elements and scatter_nd: axes that are named are whole") {
    auto const op = infer(ops::scatter_elements{.axis = 1}, {f32({4, 100}), i64({4, 3}), f32({4, 3})});
    CHECK(dims(op) == "s4 c100!");
    CHECK(shard_extents(op, op.inputs[2], {2, 1}, 0) == shape{2, 3});
    auto const nd = infer(ops::scatter_nd{}, {f32({4, 5, 8}), i64({7, 2}), f32({7, 8})});
    CHECK(dims(nd) == "s4! l5! e8~");
    CHECK(shard_extents(nd, nd.inputs[2], {1, 1, 2}, 0) == shape{7, 4});
    CHECK(refusal(ops::scatter_nd{}, {f32({4, 5, 8}), i64({7, 2}), f32({7, 9})}) ==
          "input 2 of shape f32[7,9]: axis 1 must have extent 8, that of input 0");
    CHECK(refusal(ops::scatter_elements{}, {f32({4}), i64({2}), i64({2})}) ==
          "input 2 of shape i64[2]: must have the type of input 0 of shape f32[4]");
}
