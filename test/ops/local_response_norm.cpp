#include <parsearch/ops/local_response_norm.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("local_response_norm: shards of channels read a halo") {
    auto const op = infer(ops::local_response_norm{.size = 5}, {f32({2, 8, 4, 4})});
    CHECK(dims(op) == "s2 c8~ h4~ w4~");
    CHECK(extents(op.outputs[0]) == shape{2, 8, 4, 4});
    CHECK(shard_interval(op, op.inputs[0], 1, {1, 2, 1, 1}, 0) == ops::interval{0, 6});
    CHECK(shard_interval(op, op.inputs[0], 1, {1, 2, 1, 1}, 1) == ops::interval{2, 8});
    CHECK(op.flops == 9 * 256);
    CHECK(op.saved_bytes == 256 * 4);
    // Of an even size, the longer half is behind.
    auto const even = infer(ops::local_response_norm{.size = 4}, {f32({2, 8})});
    CHECK(shard_interval(even, even.inputs[0], 1, {1, 2}, 1) == ops::interval{3, 8});
    CHECK(shard_interval(even, even.inputs[0], 1, {1, 2}, 0) == ops::interval{0, 6});
    CHECK(refusal(ops::local_response_norm{.size = 0}, {f32({2, 8})}) == "option size is 0: must be between 1 and 2^40");
}
