#include <parsearch/ops/linear.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("linear: shapes, counts and weights worked out by hand") {
    auto const op = infer(ops::linear{.out = 6}, {f32({4, 8})});
    CHECK(op.kind == "linear");
    CHECK(op.work == ops::work_class::matmul);
    CHECK(dims(op) == "s4 o6* k8+");
    CHECK(extents(op.outputs[0]) == shape{4, 6});
    CHECK(extents(op.weights[0]) == shape{6, 8});
    CHECK(extents(op.weights[1]) == shape{6});
    CHECK(ops::parameters_of(op) == 6 * 8 + 6);
    CHECK(op.multiply_adds == 4 * 6 * 8);
    CHECK(op.flops == 2 * 4 * 6 * 8 + 4 * 6);
    CHECK(op.inputs[0].gradient_flops == 2 * 4 * 6 * 8);
    CHECK(op.weights[0].gradient_flops == 2 * 4 * 6 * 8);
    CHECK(op.weights[1].gradient_flops == 4 * 6);
    CHECK(op.backward_flops == 0);
    CHECK(op.inputs[0].saved);
    CHECK_FALSE(op.outputs[0].saved);
}

TEST_CASE("linear: middle axes are attributes, and no bias means no bias") {
    auto const op = infer(ops::linear{.out = 6, .bias = false}, {f32({4, 3, 8})});
    CHECK(dims(op) == "s4 l3~ o6* k8+");
    CHECK(extents(op.outputs[0]) == shape{4, 3, 6});
    CHECK(op.weights.size() == 1);
    CHECK(op.flops == 2 * op.multiply_adds);
    CHECK(op.flops == 2 * 4 * 3 * 6 * 8);
}

TEST_CASE("linear: what each split does") {
    auto const op = infer(ops::linear{.out = 6}, {f32({4, 8})});
    CHECK(replicated_by(op, op.inputs[0]) == "o");
    CHECK(replicated_by(op, op.weights[0]) == "s");
    CHECK(replicated_by(op, op.weights[1]) == "s k");
    CHECK(replicated_by(op, op.outputs[0]) == "k");
    std::vector<std::int32_t> const by_k{1, 1, 2}, by_o{1, 3, 1};
    CHECK(ops::partial_sums(op, op.outputs[0], by_k) == 2);
    CHECK(ops::partial_sums(op, op.outputs[0], by_o) == 1);
    CHECK(shard_extents(op, op.inputs[0], by_k, 1) == shape{4, 4});
    CHECK(shard_extents(op, op.weights[0], by_o, 2) == shape{2, 8});
    CHECK(shard_interval(op, op.outputs[0], 1, by_o, 2) == ops::interval{4, 6});
}

TEST_CASE("linear: the parameter's name shares weights, and the type follows the input") {
    auto const op = infer(ops::linear{.out = 6, .parameter = "tied"}, {ops::tensor{{4, 8}, ops::dtype::bf16}});
    CHECK(op.weights[0].parameter == "tied.weight");
    CHECK(op.weights[1].parameter == "tied.bias");
    CHECK(op.weights[0].type == ops::dtype::bf16);
    CHECK(op.outputs[0].type == ops::dtype::bf16);
    CHECK(infer(ops::linear{.out = 6}, {f32({4, 8})}).weights[0].parameter.empty());
}

TEST_CASE("linear: refusals") {
    CHECK(refusal(ops::linear{}, {f32({4, 8})}) == "option out is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::linear{.out = 6}, {f32({8})}) == "input 0 of shape f32[8]: must have at least 2 axes");
    CHECK(refusal(ops::linear{.out = 6}, {}) == "0 inputs: must have 1");
    CHECK(refusal(ops::linear{.out = 6}, {f32({4, 8}), f32({4, 8})}) == "2 inputs: must have 1");
    CHECK(refusal(ops::linear{.out = 6}, {i64({4, 8})}) == "input 0 of shape i64[4,8]: must have a floating-point type");
    CHECK(refusal(ops::linear{.out = 6}, {f32({4, 0})}) == "input 0 of shape f32[4,0]: each extent must be between 1 and 2^40");
    CHECK(refusal(ops::linear{.out = 6}, {f32({1, 1, 1, 1, 1, 1, 1, 1, 1, 1})}) == "needs 11 iteration dims: at most 10 are supported");
    CHECK(refusal(ops::linear{.out = std::int64_t{1} << 40}, {f32({1 << 20, 8})}) ==
          "operand 'y' of shape f32[1048576,1099511627776]: has more than 5e17 elements");
}

TEST_CASE("batched_matmul: shapes and counts, plain and transposed") {
    auto const plain = infer(ops::batched_matmul{}, {f32({4, 2, 5, 8}), f32({4, 2, 8, 3})});
    CHECK(extents(plain.outputs[0]) == shape{4, 2, 5, 3});
    CHECK(plain.multiply_adds == 4 * 2 * 5 * 8 * 3);
    CHECK(plain.flops == 2 * plain.multiply_adds);
    for (auto const& in : plain.inputs) {
        CHECK(in.gradient_flops == plain.flops);
        CHECK(in.saved);
    }
    CHECK(replicated_by(plain, plain.inputs[0]) == "n");
    CHECK(replicated_by(plain, plain.inputs[1]) == "m");
    CHECK(replicated_by(plain, plain.outputs[0]) == "k");
    auto const both = infer(ops::batched_matmul{.transpose_a = true, .transpose_b = true}, {f32({4, 2, 8, 5}), f32({4, 2, 3, 8})});
    CHECK(both.dims == plain.dims);
    CHECK(both.outputs == plain.outputs);
    CHECK(both.flops == plain.flops);
    CHECK(dims(infer(ops::batched_matmul{}, {f32({5, 8}), f32({8, 3})})) == "s5 n3~ k8+");
}

TEST_CASE("batched_matmul: refusals") {
    CHECK(refusal(ops::batched_matmul{}, {f32({4, 5, 8}), f32({4, 7, 3})}) ==
          "input 1 of shape f32[4,7,3]: axis 1 must have extent 8, the extent of input 0 that is summed over");
    CHECK(refusal(ops::batched_matmul{.transpose_b = true}, {f32({4, 5, 8}), f32({4, 8, 3})}) ==
          "input 1 of shape f32[4,8,3]: axis 2 must have extent 8, the extent of input 0 that is summed over");
    CHECK(refusal(ops::batched_matmul{}, {f32({4, 5, 8}), f32({2, 8, 3})}) ==
          "input 1 of shape f32[2,8,3]: axis 0 must have extent 4, that of input 0");
    CHECK(refusal(ops::batched_matmul{}, {f32({4, 5, 8}), f32({8, 3})}) == "input 1 of shape f32[8,3]: must have 3 axes");
    CHECK(refusal(ops::batched_matmul{}, {f32({5, 8}), ops::tensor{{8, 3}, ops::dtype::f16}}) ==
          "input 1 of shape f16[8,3]: must have the type of input 0 of shape f32[5,8]");
}
