#include <parsearch/ops/embedding.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("embedding: a table of which a pass touches a row per index") {
    auto const op = infer(ops::embedding{.entries = 100, .features = 8, .parameter = "words"}, {i64({4, 6})});
    CHECK(dims(op) == "s4 l6~ o8* v100+");
    CHECK(op.work == ops::work_class::memory);
    CHECK(extents(op.outputs[0]) == shape{4, 6, 8});
    CHECK(extents(op.weights[0]) == shape{100, 8});
    CHECK(op.weights[0].parameter == "words.weight");
    CHECK(op.weights[0].touched_bytes == 4 * 6 * 8 * 4);
    CHECK(op.weights[0].gradient_flops == 4 * 6 * 8);
    CHECK(op.flops == 0);
    CHECK_FALSE(op.inputs[0].differentiable);
    CHECK(op.inputs[0].saved);
    CHECK(op.outputs[0].differentiable);
    CHECK(replicated_by(op, op.weights[0]) == "s l");
    CHECK(replicated_by(op, op.inputs[0]) == "o v");
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 1, 2, 4}) == 4);
    CHECK(infer(ops::embedding{.entries = 9, .features = 8, .type = ops::dtype::bf16}, {i64({4})}).outputs[0].type == ops::dtype::bf16);
}

TEST_CASE("embedding_bag: sums each bag") {
    auto const op = infer(ops::embedding_bag{.entries = 100, .features = 8}, {i64({4, 6})});
    CHECK(dims(op) == "s4 b6+ o8* v100+");
    CHECK(extents(op.outputs[0]) == shape{4, 8});
    CHECK(op.flops == 4 * 6 * 8);
    CHECK(op.weights[0].touched_bytes == 4 * 6 * 8 * 4);
    CHECK(ops::partial_sums(op, op.outputs[0], std::vector<std::int32_t>{2, 3, 2, 4}) == 12);
}

TEST_CASE("embedding: refusals") {
    CHECK(refusal(ops::embedding{.entries = 9, .features = 8}, {f32({4})}) == "input 0 of shape f32[4]: indices must have type i64 or i32");
    CHECK(refusal(ops::embedding{.features = 8}, {i64({4})}) == "option entries is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::embedding{.entries = 9}, {i64({4})}) == "option features is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::embedding{.entries = 9, .features = 8, .type = ops::dtype::i32}, {i64({4})}) ==
          "option type is i32: must be a floating-point type");
    CHECK(refusal(ops::embedding_bag{.entries = 9, .features = 8}, {i64({4})}) == "input 0 of shape i64[4]: must have 2 axes");
}
