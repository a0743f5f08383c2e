#include <parsearch/ops/broadcast.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("expand: what is repeated is read by all, and its gradient is summed") {
    auto const op = infer(ops::expand{{4, 6, 1}}, {f32({1, 8})});
    CHECK(extents(op.outputs[0]) == shape{4, 6, 8});
    CHECK(replicated_by(op, op.inputs[0]) == "s l");
    CHECK(op.inputs[0].gradient_flops == 4 * 6 * 8);
    CHECK(infer(ops::expand{{4, 1}}, {f32({4, 8})}).inputs[0].gradient_flops == 0);
    CHECK(refusal(ops::expand{{3}}, {f32({4, 8})}) ==
          "input 1 of shape f32[3]: axis 0 must have extent 8 or 1 to be combined with the inputs before it");
}

TEST_CASE("tile: repetitions are divisible, what is repeated is not") {
    auto const op = infer(ops::tile{{1, 3, 2}}, {f32({4, 1, 8})});
    CHECK(extents(op.outputs[0]) == shape{4, 3, 16});
    CHECK(dims(op) == "s4 l3~ e'2~ e8!");
    CHECK(shard_interval(op, op.outputs[0], 2, {1, 1, 2, 1}, 1) == ops::interval{8, 16});
    CHECK(shard_extents(op, op.inputs[0], {2, 3, 2, 1}, 0) == shape{2, 1, 8});
    CHECK(refusal(ops::tile{{2}}, {f32({4, 8})}) == "option repeats has 1 numbers: must have one per axis of input 0 of shape f32[4,8]");
}

TEST_CASE("pad: a shard reads what lies in it, and nothing where it is all padding") {
    auto const op = infer(ops::pad{.before = {0, 4}, .after = {0, 2}}, {f32({4, 6})});
    CHECK(extents(op.outputs[0]) == shape{4, 12});
    CHECK(shard_extents(op, op.inputs[0], {1, 3}, 0) == shape{4, 0});
    CHECK(shard_interval(op, op.inputs[0], 1, {1, 3}, 1) == ops::interval{0, 4});
    CHECK(shard_interval(op, op.inputs[0], 1, {1, 3}, 2) == ops::interval{4, 6});
    auto const cut = infer(ops::pad{.before = {0, -1}, .after = {0, -2}}, {f32({4, 6})});
    CHECK(extents(cut.outputs[0]) == shape{4, 3});
    CHECK(shard_interval(cut, cut.inputs[0], 1, {1, 1}, 0) == ops::interval{1, 4});
    CHECK(refusal(ops::pad{.before = {0, -4}, .after = {0, -2}}, {f32({4, 6})}) ==
          "options before and after leave 0 of axis 1 of input 0 of shape f32[4,6]: must leave something");
}
