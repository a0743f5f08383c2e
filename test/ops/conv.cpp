#include <parsearch/ops/conv.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("conv2d: the first layer of ResNet-50") {
    ops::conv2d const stem{.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = false};
    auto const op = infer(stem, {f32({2, 3, 224, 224})});
    CHECK(dims(op) == "s2 o64* h112~ w112~ c3+");
    CHECK(extents(op.outputs[0]) == shape{2, 64, 112, 112});
    CHECK(extents(op.weights[0]) == shape{64, 3, 7, 7});
    CHECK(op.multiply_adds == 2.0 * 64 * 112 * 112 * 3 * 49);
    CHECK(op.flops == 2 * op.multiply_adds);
    CHECK(op.inputs[0].gradient_flops == op.flops);
    CHECK(op.weights[0].gradient_flops == op.flops);
    CHECK(op.inputs[0].saved);
}

TEST_CASE("conv2d: the halo of a strided, padded shard") {
    ops::conv2d const stem{.out = 8, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}};
    auto const op = infer(stem, {f32({1, 4, 16, 16})});
    std::vector<std::int32_t> const halves{1, 1, 2, 1, 1}; // 8 rows of output in two parts
    // Rows 0..3 read 2*0-3 .. 2*3+3, clipped; rows 4..7 read 5 .. 17, clipped.
    CHECK(shard_interval(op, op.inputs[0], 2, halves, 0) == ops::interval{0, 10});
    CHECK(shard_interval(op, op.inputs[0], 2, halves, 1) == ops::interval{5, 16});
    CHECK(shard_interval(op, op.inputs[0], 3, halves, 1) == ops::interval{0, 16});
    CHECK(shard_extents(op, op.outputs[0], halves, 1) == shape{1, 8, 4, 8});
    CHECK(shard_extents(op, op.weights[0], halves, 1) == shape{8, 4, 7, 7});
    CHECK(replicated_by(op, op.weights[0]) == "s h w");
    CHECK(replicated_by(op, op.weights[1]) == "s h w c");
    CHECK(replicated_by(op, op.inputs[0]) == "o");
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{1, 2, 2, 2, 4}) == 4);
}

TEST_CASE("conv2d: dilation widens the window, a stride beyond it leaves gaps") {
    auto const dilated = infer(ops::conv2d{.out = 1, .kernel = {3, 1}, .dilation = {2, 1}}, {f32({1, 1, 9, 4})});
    CHECK(extents(dilated.outputs[0]) == shape{1, 1, 5, 4});
    CHECK(dilated.inputs[0].axes[2].span == 5);
    CHECK(dilated.multiply_adds == 5 * 4 * 3);
    auto const sparse = infer(ops::conv2d{.out = 1, .stride = {2, 2}}, {f32({1, 1, 8, 8})});
    CHECK(extents(sparse.outputs[0]) == shape{1, 1, 4, 4});
    CHECK(shard_interval(sparse, sparse.inputs[0], 2, {1, 1, 2, 1, 1}, 0) == ops::interval{0, 3});
}

TEST_CASE("conv2d: groups") {
    auto const op = infer(ops::conv2d{.out = 12, .kernel = {3, 3}, .padding = {1, 1}, .groups = 4}, {f32({2, 8, 5, 5})});
    CHECK(dims(op) == "s2 g4* o3! h5~ w5~ c2!");
    CHECK(extents(op.inputs[0]) == shape{2, 8, 5, 5});
    CHECK(extents(op.outputs[0]) == shape{2, 12, 5, 5});
    CHECK(extents(op.weights[0]) == shape{12, 2, 3, 3});
    CHECK(ops::parameters_of(op) == 12 * 2 * 9 + 12);
    CHECK(op.multiply_adds == 2.0 * 25 * 12 * 2 * 9);
    CHECK(op.flops == 2 * op.multiply_adds + 2 * 25 * 12);
    std::vector<std::int32_t> const by_g{1, 2, 1, 1, 1, 1};
    CHECK(shard_interval(op, op.inputs[0], 1, by_g, 1) == ops::interval{4, 8});
    CHECK(shard_interval(op, op.outputs[0], 1, by_g, 1) == ops::interval{6, 12});
    CHECK(shard_interval(op, op.weights[0], 0, by_g, 0) == ops::interval{0, 6});
    CHECK(shard_interval(op, op.weights[1], 0, by_g, 0) == ops::interval{0, 6});
    auto const depthwise = infer(ops::conv2d{.out = 8, .kernel = {3, 3}, .groups = 8, .bias = false}, {f32({2, 8, 5, 5})});
    CHECK(ops::parameters_of(depthwise) == 8 * 9);
}

TEST_CASE("conv1d is a conv2d of height one") {
    auto const one = infer(ops::conv1d{.out = 6, .kernel = 3, .stride = 2, .padding = 1, .parameter = "p"}, {f32({2, 4, 9})});
    auto const two = infer(ops::conv2d{.out = 6, .kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .parameter = "p"}, {f32({2, 4, 1, 9})});
    CHECK(dims(one) == "s2 o6* l5~ c4+");
    CHECK(extents(one.outputs[0]) == shape{2, 6, 5});
    CHECK(extents(one.weights[0]) == shape{6, 4, 3});
    CHECK(one.flops == two.flops);
    CHECK(one.weights[0].gradient_flops == two.weights[0].gradient_flops);
    CHECK(one.weights[0].parameter == "p.weight");
    CHECK(one.weights[1].parameter == "p.bias");
}

TEST_CASE("conv: refusals") {
    auto const x = f32({2, 8, 5, 5});
    CHECK(refusal(ops::conv2d{}, {x}) == "option out is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::conv2d{.out = 4, .kernel = {7, 1}}, {x}) == "window of kernel 7 and dilation 1 along h: must fit the padded extent 5");
    CHECK(refusal(ops::conv2d{.out = 4, .kernel = {std::int64_t{1} << 40, 1}, .dilation = {std::int64_t{1} << 40, 1}}, {x}) ==
          "window of kernel 1099511627776 and dilation 1099511627776 along h: must fit the padded extent 5");
    CHECK(refusal(ops::conv2d{.out = 4, .stride = {1, 0}}, {x}) == "option stride is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::conv2d{.out = 4, .padding = {-1, 0}}, {x}) == "option padding is -1: must be between 0 and 2^40");
    CHECK(refusal(ops::conv2d{.out = 4, .dilation = {1, -2}}, {x}) == "option dilation is -2: must be between 1 and 2^40");
    CHECK(refusal(ops::conv2d{.out = 4, .groups = 3}, {x}) ==
          "input 0 of shape f32[2,8,5,5]: option groups is 3: must divide the channels (8) and option out (4)");
    CHECK(refusal(ops::conv2d{.out = 4, .groups = 0}, {x}) == "option groups is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::conv2d{.out = 4}, {f32({2, 8, 5})}) == "input 0 of shape f32[2,8,5]: must have 4 axes");
    CHECK(refusal(ops::conv1d{.out = 4}, {x}) == "input 0 of shape f32[2,8,5,5]: must have 3 axes");
}

TEST_CASE("conv: other padding behind than in front") {
    auto const op = infer(ops::conv2d{.out = 4, .kernel = {3, 3}, .stride = {2, 2}, .padding_end = {1, 1}}, {f32({2, 3, 8, 8})});
    CHECK(extents(op.outputs[0]) == shape{2, 4, 4, 4});
    CHECK(shard_interval(op, op.inputs[0], 2, {1, 1, 2, 1, 1}, 0) == ops::interval{0, 5});
    CHECK(shard_interval(op, op.inputs[0], 2, {1, 1, 2, 1, 1}, 1) == ops::interval{4, 8});
    CHECK(refusal(ops::conv1d{.out = 1, .padding_end = -2}, {f32({1, 1, 4})}) == "option padding_end is -2: must be between -1 and 2^40");
}
