#include <parsearch/ops/reduce.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("reduce: reduced dims leave partial sums") {
    auto const op = infer(ops::reduce{.axes = {1}}, {f32({4, 6, 8})});
    CHECK(op.kind == "reduce_sum");
    CHECK(dims(op) == "s4 l6+ e8~");
    CHECK(extents(op.outputs[0]) == shape{4, 8});
    CHECK(op.flops == 4 * 6 * 8);
    CHECK(op.inputs[0].gradient_flops == 0);
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 3, 1}) == 3);
    CHECK(extents(infer(ops::reduce{.axes = {-2}, .keep = true}, {f32({4, 6, 8})}).outputs[0]) == shape{4, 1, 8});
    auto const all = infer(ops::reduce{.mode = ops::reduction_mode::mean, .axes = {0, 1, 2}}, {f32({4, 6, 8})});
    CHECK(all.kind == "reduce_mean");
    CHECK(dims(all) == "s4+ l6+ e8+");
    CHECK(ops::elements_of(all.outputs[0]) == 1);
    CHECK(ops::partial_sums(all, all.outputs[0], std::vector<std::int32_t>{2, 3, 1}) == 6);
}

TEST_CASE("reduce: only a maximum keeps its operands") {
    auto const maximum = infer(ops::reduce{.mode = ops::reduction_mode::max, .axes = {1}}, {f32({4, 6})});
    CHECK((maximum.inputs[0].saved && maximum.outputs[0].saved));
    auto const mean = infer(ops::reduce{.mode = ops::reduction_mode::mean, .axes = {1}}, {f32({4, 6})});
    CHECK_FALSE((mean.inputs[0].saved || mean.outputs[0].saved));
}

TEST_CASE("reduce: refusals") {
    CHECK(refusal(ops::reduce{}, {f32({4, 6})}) == "option axes is empty: must name at least one axis");
    CHECK(refusal(ops::reduce{.axes = {1, -1}}, {f32({4, 6})}) == "option axes names axis -1 twice: must name each once");
    CHECK(refusal(ops::reduce{.axes = {-3}}, {f32({4, 6})}) == "option axes is axis -3: must be between -2 and 1 for a tensor of 2 axes");
    CHECK(refusal(ops::reduce{.mode = ops::reduction_mode::mean, .axes = {1}}, {i64({4, 6})}) ==
          "input 0 of shape i64[4,6]: must have a floating-point type");
}

TEST_CASE("reduce: what norms and logarithms keep and cost") {
    auto const x = f32({4, 6});
    auto const l2 = infer(ops::reduce{.mode = ops::reduction_mode::l2, .axes = {1}}, {x});
    CHECK(l2.kind == "reduce_l2");
    CHECK((l2.inputs[0].saved && l2.outputs[0].saved));
    CHECK(l2.flops == 2 * 24);
    auto const squares = infer(ops::reduce{.mode = ops::reduction_mode::sum_square, .axes = {1}}, {x});
    CHECK((squares.inputs[0].saved && !squares.outputs[0].saved));
    auto const whole = infer(ops::reduce{.mode = ops::reduction_mode::max, .axes = {0}}, {i64({4, 6})});
    CHECK_FALSE((whole.inputs[0].saved || whole.outputs[0].saved || whole.inputs[0].gradient_flops > 0));
    CHECK(ops::name_of(ops::reduction_mode::log_sum_exp) == "log_sum_exp"); // the last of the table
}
