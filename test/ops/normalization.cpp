#include <parsearch/ops/normalization.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("layer_norm: trailing axes are fixed and carry the weights") {
    auto const op = infer(ops::layer_norm{.parameter = "n"}, {f32({4, 6, 8})});
    CHECK(dims(op) == "s4 l6~ e8!");
    CHECK(op.work == ops::work_class::normalization);
    CHECK(ops::parameters_of(op) == 16);
    CHECK(op.weights[0].parameter == "n.weight");
    CHECK(op.weights[1].parameter == "n.bias");
    CHECK(replicated_by(op, op.weights[0]) == "s l");
    CHECK(op.flops == 8 * 4 * 6 * 8);
    CHECK(op.saved_bytes == 2 * 4 * 6 * 4); // mean and deviation of each row
    CHECK(op.inputs[0].saved);
    auto const both = infer(ops::layer_norm{.axes = 2}, {f32({4, 6, 8})});
    CHECK(dims(both) == "s4 l6! e8!");
    CHECK(ops::parameters_of(both) == 96);
    CHECK(infer(ops::layer_norm{.affine = false}, {f32({4, 6, 8})}).weights.empty());
    CHECK(ops::parameters_of(infer(ops::layer_norm{.bias = false}, {f32({4, 6, 8})})) == 8);
}

TEST_CASE("rms_norm: one weight, one statistic") {
    auto const op = infer(ops::rms_norm{}, {f32({4, 6, 8})});
    CHECK(dims(op) == "s4 l6~ e8!");
    CHECK(ops::parameters_of(op) == 8);
    CHECK(op.saved_bytes == 4 * 6 * 4);
    CHECK(op.flops < infer(ops::layer_norm{}, {f32({4, 6, 8})}).flops);
}

TEST_CASE("batch_norm: channels are a parameter dim, all else replicates the weights") {
    auto const op = infer(ops::batch_norm{.parameter = "n"}, {f32({4, 6, 8, 8})});
    CHECK(dims(op) == "s4 c6* h8~ w8~");
    CHECK(ops::parameters_of(op) == 12);
    CHECK(replicated_by(op, op.weights[0]) == "s h w");
    CHECK(op.weights[1].parameter == "n.bias");
    CHECK(op.saved_bytes == 2 * 6 * 4);
    CHECK(dims(infer(ops::batch_norm{}, {f32({4, 6, 8})})) == "s4 c6* l8~");
}

TEST_CASE("batch_norm: relu is fused, and keeps the result") {
    auto const x = f32({4, 6, 8, 8});
    auto const plain = infer(ops::batch_norm{.parameter = "n"}, {x}), fused = infer(ops::batch_norm{.parameter = "n", .relu = true}, {x});
    auto const relu = infer(ops::relu{}, {x});
    CHECK(fused.kind == "batch_norm_relu");
    CHECK(plain.kind == "batch_norm");
    CHECK(fused.weights == plain.weights);
    CHECK(fused.dims == plain.dims);
    CHECK(fused.flops == plain.flops + relu.flops);
    CHECK(fused.inputs[0].gradient_flops == plain.inputs[0].gradient_flops + relu.inputs[0].gradient_flops);
    CHECK(fused.saved_bytes == plain.saved_bytes);
    CHECK(fused.outputs[0].saved);
    CHECK_FALSE(plain.outputs[0].saved);
    // Less is moved than by the two.
    auto const bytes = [](ops::operation const& op) {
        return ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), ops::pass::forward).bytes;
    };
    CHECK(bytes(fused) == bytes(plain));
}

TEST_CASE("normalization: refusals") {
    CHECK(refusal(ops::layer_norm{.axes = 2}, {f32({4, 6})}) == "option axes is 2: must be between 1 and 1 for input 0 of shape f32[4,6]");
    CHECK(refusal(ops::rms_norm{.axes = 0}, {f32({4, 6})}) == "option axes is 0: must be between 1 and 1 for input 0 of shape f32[4,6]");
    CHECK(refusal(ops::layer_norm{}, {f32({4})}) == "input 0 of shape f32[4]: must have at least 2 axes");
    CHECK(refusal(ops::batch_norm{}, {i64({4, 6})}) == "input 0 of shape i64[4,6]: must have a floating-point type");
}
