#include <parsearch/ops/softmax.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("softmax: its axis is fixed, its output is kept") {
    auto const op = infer(ops::softmax{}, {f32({4, 6, 8})});
    CHECK(dims(op) == "s4 l6~ e8!");
    CHECK(op.work == ops::work_class::softmax);
    CHECK(op.outputs[0].saved);
    CHECK_FALSE(op.inputs[0].saved);
    CHECK(op.flops == 5 * 4 * 6 * 8);
    CHECK(dims(infer(ops::softmax{.axis = 1}, {f32({4, 6, 8})})) == "s4 l6! e8~");
    CHECK(dims(infer(ops::softmax{.axis = -3}, {f32({4, 6, 8})})) == "s4! l6~ e8~");
}

TEST_CASE("cross_entropy: a loss per sample") {
    auto const op = infer(ops::cross_entropy{}, {f32({4, 6, 50}), i64({4, 6})});
    CHECK(dims(op) == "s4 l6~ v50!");
    CHECK(extents(op.outputs[0]) == shape{4, 6});
    CHECK(op.inputs[0].differentiable);
    CHECK_FALSE(op.inputs[1].differentiable);
    CHECK(op.inputs[1].saved);
    CHECK(op.saved_bytes == 4 * 6 * 50 * 4);
    CHECK(op.intermediate_bytes == 0);
    // 16 bits: logits become 32 and are read again, as gradients do before they are narrowed.
    auto const narrow = infer(ops::cross_entropy{}, {{{4, 6, 50}, ops::dtype::bf16}, i64({4, 6})});
    CHECK(narrow.saved_bytes == 4 * 6 * 50 * 4);
    CHECK(narrow.intermediate_bytes == 2 * 4 * 6 * 50 * 4);
    CHECK(narrow.backward_intermediate_bytes == 2 * 4 * 6 * 50 * 4);
    CHECK(extents(infer(ops::cross_entropy{}, {f32({4, 50}), i64({4})}).outputs[0]) == shape{4});
}

TEST_CASE("softmax: refusals") {
    CHECK(refusal(ops::softmax{.axis = 2}, {f32({4, 6})}) == "option axis is axis 2: must be between -2 and 1 for a tensor of 2 axes");
    CHECK(refusal(ops::cross_entropy{}, {f32({4, 50}), f32({4})}) == "input 1 of shape f32[4]: indices must have type i64 or i32");
    CHECK(refusal(ops::cross_entropy{}, {f32({4, 50}), i64({3})}) == "input 1 of shape i64[3]: axis 0 must have extent 4, that of input 0");
    CHECK(refusal(ops::cross_entropy{}, {f32({4, 50}), i64({4, 1})}) == "input 1 of shape i64[4,1]: must have 1 axis");
    CHECK(refusal(ops::cross_entropy{}, {f32({4}), i64({4})}) == "input 0 of shape f32[4]: must have at least 2 axes");
}

TEST_CASE("softmax: its logarithm") {
    auto const op = infer(ops::softmax{.axis = 1, .logarithm = true}, {f32({4, 6, 8})});
    CHECK(op.kind == "log_softmax");
    CHECK(dims(op) == dims(infer(ops::softmax{.axis = 1}, {f32({4, 6, 8})})));
    CHECK(op.outputs[0].saved);
}
