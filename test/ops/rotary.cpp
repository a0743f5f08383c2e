#include <parsearch/ops/rotary.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;
using enum ops::attention_layout;

TEST_CASE("rotary_embedding: heads, positions and samples are divisible, elements of a head are not") {
    auto const op = infer(ops::rotary_embedding{.heads = 3}, {f32({2, 8, 12}), f32({8, 4}), f32({8, 4})});
    CHECK(dims(op) == "s2 l8~ heads3~");
    CHECK(op.work == ops::work_class::elementwise);
    CHECK(op.flops == 3 * 2 * 8 * 12);
    CHECK(op.multiply_adds == 0);
    CHECK(op.inputs[0].gradient_flops == 3 * 2 * 8 * 12);
    CHECK_FALSE(op.inputs[0].saved);
    CHECK(op.inputs[1].saved);
    CHECK(extents(op.outputs[0]) == shape{2, 8, 12});
    std::vector<std::int32_t> const degrees{2, 4, 3};
    CHECK(shard_extents(op, op.inputs[0], degrees, 0) == shape{1, 2, 4});
    CHECK(shard_interval(op, op.inputs[0], 2, degrees, 1) == ops::interval{4, 8});
    CHECK(shard_extents(op, op.inputs[1], degrees, 0) == shape{2, 4});
    CHECK(replicated_by(op, op.inputs[1]) == "s heads");
}

TEST_CASE("rotary_embedding: layouts, tables of their own alignment, halved tables") {
    auto const by_heads = infer(ops::rotary_embedding{.heads = 3, .layout = by_head}, {f32({2, 3, 8, 4}), f32({2, 1, 8, 4}), f32({2, 1, 8, 4})});
    CHECK(replicated_by(by_heads, by_heads.inputs[2]) == "heads");
    CHECK(shard_extents(by_heads, by_heads.outputs[0], {1, 2, 3}, 0) == shape{2, 1, 4, 4});
    auto const halved =
        infer(ops::rotary_embedding{.heads = 3, .layout = by_position, .tables = by_position}, {f32({2, 8, 3, 4}), f32({8, 1, 2}), f32({8, 1, 2})});
    CHECK(shard_extents(halved, halved.inputs[1], {1, 2, 3}, 0) == shape{4, 1, 2});
    CHECK(halved.flops == by_heads.flops);
}

TEST_CASE("rotary_embedding: refusals") {
    auto const x = f32({2, 8, 12}), table = f32({8, 4});
    CHECK(refusal(ops::rotary_embedding{}, {x, table, table}) == "option heads is 0: must be between 1 and 2^40");
    CHECK(refusal(ops::rotary_embedding{.heads = 5}, {x, table, table}) == "input 0 of shape f32[2,8,12]: axis 2 must be a multiple of its 5 heads");
    CHECK(refusal(ops::rotary_embedding{.heads = 3}, {x, table, f32({7, 4})}) ==
          "input 2 of shape f32[7,4]: axis 0 must have extent 8 or 1: it is broadcast to by_head");
    CHECK(refusal(ops::rotary_embedding{.heads = 3, .tables = packed}, {x, table, table}) ==
          "option tables is packed: must be by_head or by_position");
    CHECK(refusal(ops::rotary_embedding{.heads = 3}, {x, table}) == "2 inputs: must have 3");
}
