#include <parsearch/ops/kit/weighted.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/indexing.hpp>
#include <parsearch/ops/lstm.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/shard.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {
ops::operation sum_with_table() {
    std::vector<ops::tensor> const in{{{4, 6, 8}}, {{6, 8}}};
    return ops::nary{ops::combine::add}.infer(in);
}
} // namespace

TEST_CASE("weighted: a table that is added is a weight, split where its axes are") {
    auto const plain = sum_with_table();
    auto const op = ops::with_weights(plain, {{.input = 1, .name = "table", .parameter = "positions"}});
    REQUIRE(op.inputs.size() == 1);
    CHECK(op.inputs[0] == plain.inputs[0]);
    REQUIRE(op.weights.size() == 1);
    auto const& w = op.weights[0];
    CHECK(w.name == "table");
    CHECK(w.parameter == "positions");
    CHECK(ops::tensor_of(w) == ops::tensor{{6, 8}});
    CHECK(ops::parameters_of(op) == 48);
    CHECK(w.gradient_flops == 4 * 6 * 8); // summed over the samples
    CHECK(op.dims[0].kind == ops::dim_kind::sample);
    CHECK(op.dims[1].kind == ops::dim_kind::parameter);
    CHECK(op.dims[2].kind == ops::dim_kind::parameter);
    CHECK(!ops::is_indexed_by(w, 0)); // replicated where samples are split
    CHECK(op.flops == plain.flops);
    CHECK(op.outputs == plain.outputs);
    ops::validate(op, "sum");
}

TEST_CASE("weighted: dims that index no weight keep their kind, a saved operand is not kept twice") {
    std::vector<ops::tensor> const in{{{4, 6, 8}}, {{8}}};
    auto const op = ops::with_weights(ops::nary{ops::combine::multiply}.infer(in), {{.input = 1}});
    CHECK(op.dims[1].kind == ops::dim_kind::attribute);
    CHECK(op.dims[2].kind == ops::dim_kind::parameter);
    CHECK(op.inputs[0].saved);
    CHECK(!op.weights[0].saved);
    CHECK(op.weights[0].name == "weight");
}

TEST_CASE("weighted: what is repeated along an axis is there once") {
    std::vector<ops::tensor> const in{{{4, 1, 8}}, {{4, 6, 8}}};
    auto const op = ops::with_weights(ops::concat{.axis = 1}.infer(in), {{.input = 0, .name = "class", .extents = {1, 1, 8}}});
    REQUIRE(op.inputs.size() == 1);
    CHECK(op.inputs[0].name == "x1");
    CHECK(ops::parameters_of(op) == 8);
    CHECK(op.weights[0].gradient_flops == 4 * 8);
    CHECK(!ops::is_indexed_by(op.weights[0], 0));
    CHECK(ops::is_indexed_by(op.weights[0], 2));
    // The token lies in the first part of the second dim, and is not touched by the others.
    std::vector<std::int32_t> const degrees{2, 7, 1};
    CHECK(ops::shard_elements(op.weights[0], ops::shard_box(op, degrees, 0)) == 8);
    CHECK(ops::shard_elements(op.weights[0], ops::shard_box(op, degrees, 1)) == 0);
    ops::validate(op, "joined");
}

TEST_CASE("weighted: several inputs, and weights that are there already stay in front") {
    std::vector<ops::tensor> const in{{{4, 8}}, {{4, 16}}, {{4, 16}}};
    auto const op = ops::with_weights(ops::lstm_cell{.hidden = 16}.infer(in),
                                      {{.input = 2, .name = "c0", .extents = {1, 16}}, {.input = 1, .name = "h0", .extents = {1, 16}}});
    REQUIRE(op.inputs.size() == 1);
    CHECK(op.inputs[0].name == "x");
    REQUIRE(op.weights.size() == 6);
    CHECK(op.weights[4].name == "c0");
    CHECK(op.weights[5].name == "h0");
}

TEST_CASE("weighted: an operator of a tensor and a weight infers what is moved by hand") {
    std::vector<ops::tensor> const in{{{4, 1, 8}}, {{4, 6, 8}}};
    ops::weight_input const token{.input = 0, .name = "class", .extents = {1, 1, 8}};
    ops::weighted<ops::concat> const joined{.op = {.axis = 1}, .weight = token, .as = in[0]};
    static_assert(ops::ShapedOperator<ops::weighted<ops::concat>>);
    CHECK(joined.infer(std::vector{in[1]}) == ops::with_weights(ops::concat{.axis = 1}.infer(in), {token}));
    ops::weighted<ops::nary> const moved{.weight = {.input = 2}, .as = in[0]};
    CHECK(support::refusal([&] { return moved.infer(std::vector{in[1]}); }) == "weight 'weight' is input 2: there are 1 others");
}

TEST_CASE("weighted: bad weights are refused") {
    auto const with = [](ops::weight_input w) { return support::refusal([&] { return ops::with_weights(sum_with_table(), {w}); }); };
    CHECK(with({.input = 2}) == "weight 'weight' is input 2: there are 2 inputs");
    CHECK(with({.input = 1, .extents = {48}}) == "weight 'weight' has 1 extents: input 1 has 2 axes");
    CHECK(with({.input = 1, .name = "t", .extents = {3, 8}}) == "weight 't' has extent 3 in axis 0: must be 1 or that of input 1, 6");
    CHECK(support::refusal([] {
              return ops::with_weights(sum_with_table(), {{.input = 1}, {.input = 1}});
          }) == "weight 'weight' is input 1: it is a weight already");
    std::vector<ops::tensor> const in{{{4, 6}}, {{2}, ops::dtype::i64}};
    CHECK(support::refusal([&] { return ops::with_weights(ops::gather{}.infer(in), {{.input = 1}}); }) ==
          "weight 'weight' is input 1 of type i64: must have a floating-point type");
}
