#include <parsearch/ops/elementwise.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("unary: kind, dims, and what backward keeps") {
    auto const x = f32({4, 6, 8, 8});
    auto const relu = infer(ops::unary{ops::function::relu}, {x});
    CHECK(relu.kind == "relu");
    CHECK(relu == infer(ops::relu{}, {x}));
    CHECK(dims(relu) == "s4 c6~ h8~ w8~");
    CHECK(relu.outputs[0].saved);
    CHECK_FALSE(relu.inputs[0].saved);
    auto const gelu = infer(ops::gelu{}, {x});
    CHECK(gelu.kind == "gelu");
    CHECK(gelu.inputs[0].saved);
    CHECK_FALSE(gelu.outputs[0].saved);
    CHECK(gelu.flops > relu.flops);
    CHECK(infer(ops::unary{ops::function::tanh}, {x}).outputs[0].saved);
    auto const identity = infer(ops::unary{}, {x});
    CHECK(identity.flops == 0);
    CHECK_FALSE((identity.inputs[0].saved || identity.outputs[0].saved));
    CHECK(ops::name_of(ops::function::reciprocal) == "reciprocal");
}

TEST_CASE("nary: sums keep nothing, products keep their factors") {
    auto const x = f32({4, 6});
    auto const sum = infer(ops::add{}, {x, x, x});
    CHECK(sum == infer(ops::nary{ops::combine::add}, {x, x, x}));
    CHECK(sum.kind == "add");
    CHECK(sum.flops == 2 * 4 * 6);
    for (auto const& in : sum.inputs) {
        CHECK_FALSE(in.saved);
        CHECK(in.gradient_flops == 0);
    }
    auto const product = infer(ops::multiply{}, {x, x});
    for (auto const& in : product.inputs) {
        CHECK(in.saved);
        CHECK(in.gradient_flops == 4 * 6);
    }
    CHECK_FALSE(infer(ops::add{}, {i64({4}), i64({4})}).outputs[0].differentiable);
}

TEST_CASE("nary: broadcast replicates, and its gradient is summed") {
    auto const op = infer(ops::add{}, {f32({1, 6, 8}), f32({4, 1, 8}), f32({8})});
    CHECK(dims(op) == "s4 l6~ e8~");
    CHECK(extents(op.outputs[0]) == shape{4, 6, 8});
    CHECK(extents(op.inputs[0]) == shape{1, 6, 8});
    CHECK(replicated_by(op, op.inputs[0]) == "s");
    CHECK(replicated_by(op, op.inputs[1]) == "l");
    CHECK(replicated_by(op, op.inputs[2]) == "s l");
    CHECK(op.inputs[2].gradient_flops == 4 * 6 * 8);
    CHECK(shard_extents(op, op.inputs[0], {2, 3, 1}, 0) == shape{1, 2, 8});
}

TEST_CASE("dropout: a mask of a byte per element") {
    auto const op = infer(ops::dropout{.rate = 0.1}, {f32({4, 6})});
    CHECK(op.saved_bytes == 24);
    CHECK_FALSE((op.inputs[0].saved || op.outputs[0].saved));
}

TEST_CASE("elementwise: refusals") {
    CHECK(refusal(ops::relu{}, {i64({4})}) == "input 0 of shape i64[4]: must have a floating-point type");
    CHECK(refusal(ops::add{}, {f32({4})}) == "1 inputs: must have at least 2");
    CHECK(refusal(ops::add{}, {f32({4, 6}), f32({4, 5})}) ==
          "input 1 of shape f32[4,5]: axis 1 must have extent 6 or 1 to be combined with the inputs before it");
    CHECK(refusal(ops::add{}, {f32({4}), i64({4})}) == "input 1 of shape i64[4]: must have the type of input 0 of shape f32[4]");
    CHECK(refusal(ops::dropout{.rate = 1}, {f32({4})}) == "option rate is 1: must be at least 0 and below 1");
    CHECK_FALSE(refusal(ops::dropout{.rate = -0.1}, {f32({4})}).empty());
    CHECK_FALSE(refusal(ops::dropout{.rate = std::numeric_limits<double>::quiet_NaN()}, {f32({4})}).empty());
}

TEST_CASE("nary: comparisons make truth values, logic combines them, and neither has a gradient") {
    auto const less = infer(ops::nary{ops::combine::compare}, {f32({4, 6}), f32({6})});
    CHECK(less.outputs[0].type == ops::dtype::i8);
    CHECK_FALSE(less.outputs[0].differentiable);
    for (auto const& in : less.inputs) CHECK_FALSE((in.differentiable || in.saved || in.gradient_flops > 0));
    ops::tensor const truth{{4, 6}, ops::dtype::i8};
    CHECK(infer(ops::nary{ops::combine::logical}, {truth, truth}).outputs[0].type == ops::dtype::i8);
    auto const slope = infer(ops::nary{ops::combine::prelu}, {f32({4, 6, 8}), f32({6, 1})});
    CHECK(slope.inputs[0].saved);
    CHECK(slope.inputs[1].gradient_flops == 2 * 4 * 6 * 8); // a product each, and the sum
}

TEST_CASE("unary: integers where they make sense") {
    auto const op = infer(ops::unary{ops::function::square}, {i64({4})});
    CHECK(op.outputs[0].type == ops::dtype::i64);
    CHECK_FALSE((op.inputs[0].saved || op.inputs[0].differentiable || op.inputs[0].gradient_flops > 0));
    CHECK(ops::name_of(ops::function::complement) == "complement"); // the last of the table
}

TEST_CASE("select: the condition is kept, gradients go where it holds and where not") {
    ops::tensor const condition{{4, 1}, ops::dtype::i8};
    auto const op = infer(ops::select{}, {condition, f32({4, 6}), f32({6})});
    CHECK(dims(op) == "s4 c6~");
    CHECK(op.inputs[0].saved);
    CHECK_FALSE((op.inputs[0].differentiable || op.inputs[1].saved || op.inputs[2].saved));
    CHECK(op.inputs[1].gradient_flops == 24);
    CHECK(op.inputs[2].gradient_flops == 48);
    CHECK(refusal(ops::select{}, {f32({4, 6}), f32({4, 6}), f32({6})}) == "input 0 of shape f32[4,6]: truth values must have type i8");
    CHECK(refusal(ops::select{}, {condition, f32({4, 6}), i64({6})}) == "input 2 of shape i64[6]: must have the type of input 1 of shape f32[4,6]");
}

TEST_CASE("cast: a gradient flows between floating-point types") {
    auto const half = infer(ops::cast{ops::dtype::bf16}, {f32({4, 6})});
    CHECK(half.outputs[0].type == ops::dtype::bf16);
    CHECK(half.inputs[0].type == ops::dtype::f32);
    CHECK(half.inputs[0].gradient_flops == 24);
    CHECK_FALSE(infer(ops::cast{ops::dtype::i64}, {f32({4})}).inputs[0].differentiable);
    CHECK(infer(ops::cast{ops::dtype::f32}, {i64({4})}).inputs[0].gradient_flops == 0);
}
