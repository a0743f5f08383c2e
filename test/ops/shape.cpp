#include <parsearch/ops/shape.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("concat: inputs are parts of the output, and a shard may read nothing of one") {
    auto const op = infer(ops::concat{}, {f32({2, 3, 5}), f32({2, 5, 5})});
    CHECK(dims(op) == "s2 l8~ e5~");
    CHECK(extents(op.outputs[0]) == shape{2, 8, 5});
    CHECK(op.work == ops::work_class::memory);
    std::vector<std::int32_t> const halves{1, 2, 1};
    CHECK(shard_interval(op, op.inputs[0], 1, halves, 0) == ops::interval{0, 3});
    CHECK(shard_interval(op, op.inputs[1], 1, halves, 0) == ops::interval{0, 1});
    CHECK(shard_interval(op, op.inputs[0], 1, halves, 1).size() == 0);
    CHECK(shard_interval(op, op.inputs[1], 1, halves, 1) == ops::interval{1, 5});
    CHECK(extents(infer(ops::concat{.axis = -1}, {f32({2, 3}), f32({2, 4}), f32({2, 1})}).outputs[0]) == shape{2, 8});
}

TEST_CASE("split: outputs are parts of the input") {
    auto const op = infer(ops::split{.sizes = {3, 5}}, {f32({2, 8})});
    CHECK(op.outputs.size() == 2);
    CHECK(extents(op.outputs[0]) == shape{2, 3});
    CHECK(extents(op.outputs[1]) == shape{2, 5});
    CHECK(shard_interval(op, op.outputs[0], 1, {1, 2}, 1).size() == 0);
    CHECK(shard_interval(op, op.outputs[1], 1, {1, 2}, 1) == ops::interval{1, 5});
}

TEST_CASE("slice: the iteration space is the output") {
    auto const op = infer(ops::slice{.axis = 1, .begin = 2, .end = 6}, {f32({2, 8})});
    CHECK(dims(op) == "s2 c4~");
    CHECK(shard_interval(op, op.inputs[0], 1, {1, 2}, 1) == ops::interval{4, 6});
    CHECK(infer(ops::slice{.axis = -1, .begin = -6, .end = -2}, {f32({2, 8})}) == op);
}

TEST_CASE("reshape: the outermost axes of a run are divisible together") {
    auto const merged = infer(ops::reshape{{24, 8}}, {f32({4, 6, 8})});
    CHECK(dims(merged) == "s4 e8~");
    CHECK(merged.work == ops::work_class::view);
    CHECK(shard_interval(merged, merged.outputs[0], 0, {2, 1}, 1) == ops::interval{12, 24});
    CHECK(shard_extents(merged, merged.inputs[0], {2, 1}, 1) == shape{2, 6, 8});

    auto const heads = infer(ops::reshape{{2, 5, 3, -1}}, {f32({2, 5, 12})});
    CHECK(extents(heads.outputs[0]) == shape{2, 5, 3, 4});
    CHECK(dims(heads) == "s2 l5~ e3~");
    CHECK(shard_interval(heads, heads.inputs[0], 2, {1, 1, 3}, 1) == ops::interval{4, 8});
    CHECK(shard_interval(heads, heads.outputs[0], 2, {1, 1, 3}, 1) == ops::interval{1, 2});

    // No common refinement (6, 4 against 4, 6), but halves are halves on both sides.
    auto const crossed = infer(ops::reshape{{4, 6}}, {f32({6, 4})});
    CHECK(dims(crossed) == "s2");
    CHECK(shard_extents(crossed, crossed.inputs[0], {2}, 1) == shape{3, 4});
    CHECK(shard_extents(crossed, crossed.outputs[0], {2}, 1) == shape{2, 6});

    CHECK(dims(infer(ops::reshape{{8, 1, 4}}, {f32({1, 8, 4})})) == "l8~ e4~");
    CHECK(infer(ops::reshape{{}}, {f32({1, 1})}).outputs[0].axes.empty());
}

TEST_CASE("flatten, transpose") {
    auto const flat = infer(ops::flatten{}, {f32({4, 6, 2, 2})});
    CHECK(extents(flat.outputs[0]) == shape{4, 24});
    CHECK(dims(flat) == "s4 c6~");
    CHECK(shard_interval(flat, flat.outputs[0], 1, {1, 3}, 1) == ops::interval{8, 16});
    CHECK(extents(infer(ops::flatten{.from_axis = -2}, {f32({4, 6, 2, 2})}).outputs[0]) == shape{4, 6, 4});

    auto const turned = infer(ops::transpose{{1, 0, -1}}, {f32({4, 6, 8})});
    CHECK(extents(turned.outputs[0]) == shape{6, 4, 8});
    CHECK(dims(turned) == "s4 l6~ e8~");
    CHECK(shard_extents(turned, turned.outputs[0], {2, 1, 1}, 0) == shape{6, 2, 8});
}

TEST_CASE("slice: steps leave gaps; flip: the axis stays whole") {
    auto const odd = infer(ops::slice{.axis = 1, .begin = 1, .end = 10, .step = 3}, {f32({4, 10})});
    CHECK(odd.kind == "strided_slice");
    CHECK(extents(odd.outputs[0]) == shape{4, 3}); // 1, 4, 7
    CHECK(shard_interval(odd, odd.inputs[0], 1, {1, 3}, 2) == ops::interval{7, 8});
    CHECK(dims(infer(ops::flip{.axis = -1}, {f32({4, 10})})) == "s4 c10!");
    CHECK(refusal(ops::slice{.begin = 0, .end = 4, .step = 0}, {f32({4, 10})}) == "option step is 0: must be between 1 and 2^40");
}

TEST_CASE("shape: refusals") {
    auto const x = f32({4, 6});
    CHECK(refusal(ops::concat{}, {x, f32({3, 6})}) == "input 1 of shape f32[3,6]: axis 0 must have extent 4, that of input 0");
    CHECK(refusal(ops::concat{.axis = 2}, {x, x}) == "option axis is axis 2: must be between -2 and 1 for a tensor of 2 axes");
    CHECK(refusal(ops::concat{}, {}) == "0 inputs: must have at least 1");
    for (auto const& sizes : {shape{3, 2}, shape{3, 4}, shape{7}, shape{}, shape{std::int64_t{1} << 40, 6}})
        CHECK(refusal(ops::split{.sizes = sizes}, {x}) ==
              text("option sizes of ", sizes.size(), " parts does not add up to axis 1 of input 0 of shape f32[4,6]"));
    CHECK(refusal(ops::split{.sizes = {7, -1}}, {x}) == "option sizes is -1: must be between 1 and 2^40");
    CHECK(refusal(ops::slice{.begin = 2, .end = 7}, {x}) ==
          "slice [2, 7) of axis 1 of input 0 of shape f32[4,6]: must hold something and lie within the axis");
    CHECK_FALSE(refusal(ops::slice{.begin = 2, .end = 2}, {x}).empty());
    CHECK_FALSE(refusal(ops::slice{.begin = -7, .end = 2}, {x}).empty());
    CHECK(refusal(ops::reshape{{5, 5}}, {x}) ==
          "option shape is [5,5]: must have the 24 elements of input 0 of shape f32[4,6] (one -1 stands for the rest)");
    for (auto const& s : {shape{-1, -1}, shape{0, 24}, shape{5, -1}, shape{-2, 12}, shape{12}, shape{48, -1}, shape{}})
        CHECK_FALSE(refusal(ops::reshape{s}, {x}).empty());
    CHECK(refusal(ops::transpose{{0}}, {x}) == "option permutation names 1 axes: must name each of input 0 of shape f32[4,6] once");
    CHECK(refusal(ops::transpose{{0, -2}}, {x}) == "option permutation names axis -2 twice: must name each axis once");
    CHECK(refusal(ops::flatten{.from_axis = 2}, {x}) == "option from_axis is axis 2: must be between -2 and 1 for a tensor of 2 axes");
}
