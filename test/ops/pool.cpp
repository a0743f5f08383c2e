#include <parsearch/ops/pool.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("pool2d: shapes, counts and what is kept") {
    ops::pool2d const stem{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
    auto const op = infer(stem, {f32({2, 4, 8, 8})});
    CHECK(op.kind == "max_pool2d");
    CHECK(op.work == ops::work_class::pooling);
    CHECK(dims(op) == "s2 c4~ h4~ w4~");
    CHECK(extents(op.outputs[0]) == shape{2, 4, 4, 4});
    CHECK(op.flops == 2 * 4 * 16 * 9);
    CHECK(op.multiply_adds == 0);
    CHECK(op.saved_bytes == 2 * 4 * 16 * 8); // an i64 index each
    CHECK_FALSE(op.inputs[0].saved);
    CHECK(shard_interval(op, op.inputs[0], 2, {1, 1, 2, 1}, 0) == ops::interval{0, 4});
    CHECK(shard_interval(op, op.inputs[0], 2, {1, 1, 2, 1}, 1) == ops::interval{3, 8});

    auto average = stem;
    average.mode = ops::pool_mode::average;
    auto const mean = infer(average, {f32({2, 4, 8, 8})});
    CHECK(mean.kind == "average_pool2d");
    CHECK(mean.saved_bytes == 0);
    CHECK(mean.inputs[0].gradient_flops == mean.flops);
}

TEST_CASE("pool: ceil_mode keeps a last window that starts inside, drops one that starts in the padding") {
    CHECK(extents(infer(ops::pool1d{.kernel = 3, .stride = 2}, {f32({1, 1, 6})}).outputs[0]) == shape{1, 1, 2});
    auto const up = infer(ops::pool1d{.kernel = 3, .stride = 2, .ceil_mode = true}, {f32({1, 1, 6})});
    CHECK(extents(up.outputs[0]) == shape{1, 1, 3});
    CHECK(shard_interval(up, up.inputs[0], 2, {1, 1, 3}, 2) == ops::interval{4, 6});
    // PyTorch: MaxPool1d(2, stride=2, padding=1, ceil_mode=True) of 5 gives 3: the fourth window would start at 5.
    CHECK(extents(infer(ops::pool1d{.kernel = 2, .stride = 2, .padding = 1, .ceil_mode = true}, {f32({1, 1, 5})}).outputs[0]) == shape{1, 1, 3});
}

TEST_CASE("pool: padding behind, dilation, norms") {
    auto const op = infer(ops::pool1d{.kernel = 3, .stride = 2, .padding = 0, .padding_end = 1}, {f32({1, 1, 6})});
    CHECK(extents(op.outputs[0]) == shape{1, 1, 3});
    CHECK(shard_interval(op, op.inputs[0], 2, {1, 1, 3}, 2) == ops::interval{4, 6});
    auto const wide = infer(ops::pool2d{.kernel = {3, 1}, .dilation = {2, 1}}, {f32({1, 1, 8, 4})});
    CHECK(extents(wide.outputs[0]) == shape{1, 1, 4, 4});
    CHECK(shard_interval(wide, wide.inputs[0], 2, {1, 1, 4, 1}, 0) == ops::interval{0, 5});
    auto const norm = infer(ops::pool2d{.mode = ops::pool_mode::norm, .kernel = {2, 2}}, {f32({1, 1, 4, 4})});
    CHECK(norm.kind == "norm_pool2d");
    CHECK((norm.inputs[0].saved && norm.outputs[0].saved));
    CHECK(norm.flops == 2 * 9 * 4);
    CHECK(infer(ops::global_pool{.mode = ops::pool_mode::norm}, {f32({2, 4, 7, 7})}).kind == "norm_global_pool");
}

TEST_CASE("global_pool: spatial axes are summed over") {
    auto const op = infer(ops::global_pool{}, {f32({2, 4, 7, 7})});
    CHECK(op.kind == "average_global_pool");
    CHECK(op.work == ops::work_class::pooling);
    CHECK(dims(op) == "s2 c4~ h7+ w7+");
    CHECK(extents(op.outputs[0]) == shape{2, 4, 1, 1});
    CHECK(op.flops == 2 * 4 * 49);
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 2, 7, 1}) == 7);
    CHECK(extents(infer(ops::global_pool{.mode = ops::pool_mode::max}, {f32({2, 4, 7})}).outputs[0]) == shape{2, 4, 1});
}

TEST_CASE("pool: refusals") {
    auto const x = f32({2, 4, 8, 8});
    CHECK(refusal(ops::pool2d{.kernel = {9, 1}}, {x}) == "window of kernel 9 and dilation 1 along h: must fit the padded extent 8");
    CHECK(refusal(ops::pool2d{.kernel = {3, 3}, .padding = {1, 3}}, {x}) ==
          "option padding is 3 along w: must be less than the window spans (3), or the first window holds nothing");
    CHECK(refusal(ops::pool2d{.stride = {0, 1}}, {x}) == "option stride is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::pool1d{}, {x}) == "input 0 of shape f32[2,4,8,8]: must have 3 axes");
    CHECK(refusal(ops::global_pool{}, {f32({2, 4})}) == "input 0 of shape f32[2,4]: must have at least 3 axes");
}
