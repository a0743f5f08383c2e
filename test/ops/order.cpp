#include <parsearch/ops/order.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("top_k: values and indices, the axis is whole") {
    auto const op = infer(ops::top_k{.k = 3}, {f32({4, 10})});
    CHECK(dims(op) == "s4 c10!");
    CHECK(extents(op.outputs[0]) == shape{4, 3});
    CHECK(op.outputs[1].type == ops::dtype::i64);
    CHECK_FALSE(op.outputs[1].differentiable);
    CHECK(op.flops == 40 * 2);
    CHECK(op.inputs[0].gradient_flops == 12);
    CHECK(refusal(ops::top_k{.k = 11}, {f32({4, 10})}) == "option k is 11: must be at most axis 1 of input 0 of shape f32[4,10]");
}

TEST_CASE("arg_max and cumulative_sum") {
    auto const best = infer(ops::arg_max{.axis = 1}, {f32({4, 10, 2})});
    CHECK(extents(best.outputs[0]) == shape{4, 2});
    CHECK_FALSE(best.inputs[0].differentiable);
    CHECK(extents(infer(ops::arg_max{.axis = -2, .keep = true}, {f32({4, 10, 2})}).outputs[0]) == shape{4, 1, 2});
    auto const sums = infer(ops::cumulative_sum{.axis = 1}, {f32({4, 10, 2})});
    CHECK(dims(sums) == "s4 l10! e2~");
    CHECK(sums.inputs[0].gradient_flops == 80);
    CHECK(infer(ops::cumulative_sum{}, {i64({4})}).inputs[0].gradient_flops == 0);
}
