#include <parsearch/ops/resize.hpp>

#include <doctest/doctest.h>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("resize: a part of the result is made of the same part of the input, with a halo where neighbours are mixed") {
    auto const nearest = infer(ops::resize{.shape = {2, 3, 16, 9}}, {f32({2, 3, 8, 6})});
    CHECK(nearest.kind == "resize_nearest");
    CHECK(dims(nearest) == "s2 c3~ h8~ w3~");
    CHECK(extents(nearest.outputs[0]) == shape{2, 3, 16, 9});
    CHECK(shard_interval(nearest, nearest.inputs[0], 2, {1, 1, 4, 1}, 1) == ops::interval{2, 4});
    CHECK(shard_interval(nearest, nearest.outputs[0], 2, {1, 1, 4, 1}, 1) == ops::interval{4, 8});
    CHECK(nearest.flops == 0);
    auto const linear = infer(ops::resize{.shape = {2, 3, 16, 12}, .mode = ops::interpolation::linear}, {f32({2, 3, 8, 6})});
    CHECK(shard_interval(linear, linear.inputs[0], 2, {1, 1, 4, 1}, 1) == ops::interval{1, 5});
    CHECK(linear.flops == 2 * 4 * 2 * 3 * 16 * 12); // four taps
    // Every position of the result lies between input positions of its shard: centre (j + 1/2) / 2 - 1/2.
    for (std::int64_t shard = 0; shard < 8; ++shard) {
        auto const made = shard_interval(linear, linear.outputs[0], 2, {1, 1, 8, 1}, shard),
                   read = shard_interval(linear, linear.inputs[0], 2, {1, 1, 8, 1}, shard);
        for (auto j = made.begin; j < made.end; ++j)
            for (auto const i : {(2 * j - 1 < 0 ? -1 : (2 * j - 1) / 4), (2 * j - 1 < 0 ? -1 : (2 * j - 1) / 4) + 1})
                if (i >= 0 && i < 8) CHECK((i >= read.begin && i < read.end));
    }
    CHECK(infer(ops::resize{.shape = {2, 7}, .mode = ops::interpolation::cubic}, {f32({2, 5})}).dims[1].extent == 1);
    CHECK(refusal(ops::resize{.shape = {2}}, {f32({2, 5})}) == "option shape has 1 extents: must have one per axis of input 0 of shape f32[2,5]");
}
