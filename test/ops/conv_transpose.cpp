#include <parsearch/ops/conv_transpose.hpp>

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("conv_transpose2d: extents, weights, counts") {
    // PyTorch: ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1) doubles 5x7.
    auto const op =
        infer(ops::conv_transpose2d{.out = 4, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 1}}, {f32({2, 6, 5, 7})});
    CHECK(extents(op.outputs[0]) == shape{2, 4, 10, 14});
    CHECK(extents(op.weights[0]) == shape{6, 4, 3, 3});
    CHECK(dims(op) == "s2 o4* h5~ w7~ c6+");
    CHECK(op.multiply_adds == 2.0 * 6 * 35 * 4 * 9);
    CHECK(op.weights[1].gradient_flops == 2 * 4 * 140);
    auto const grouped = infer(ops::conv_transpose1d{.out = 4, .kernel = 2, .groups = 2, .bias = false}, {f32({2, 6, 5})});
    CHECK(dims(grouped) == "s2 g2* o2! l6~ c3!");
    CHECK(extents(grouped.weights[0]) == shape{6, 2, 2});
    CHECK(grouped.multiply_adds == 2.0 * 6 * 5 * 2 * 2);
}

TEST_CASE("conv_transpose: a shard reads the positions whose windows reach its results") {
    std::mt19937_64 rng{7};
    auto const draw = [&](std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(most - least + 1)));
    };
    for (int trial = 0; trial < 300; ++trial) {
        CAPTURE(trial);
        auto const extent = draw(2, 9), kernel = draw(1, 5), stride = draw(1, 4), dilation = draw(1, 2), padding = draw(0, kernel / 2);
        ops::conv_transpose1d const layer{.out = 1, .kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation, .bias = false};
        if ((extent - 1) * stride + dilation * (kernel - 1) + 1 <= 2 * padding) continue;
        auto const op = infer(layer, {f32({1, 1, extent})});
        auto const results = op.outputs[0].axes[2].extent, blocks = op.dims[2].extent;
        for (std::int64_t d = 1; d <= blocks; ++d) {
            if (blocks % d) continue;
            std::vector<std::int32_t> const degrees{1, 1, static_cast<std::int32_t>(d), 1};
            for (std::int64_t shard = 0; shard < d; ++shard) {
                auto const made = shard_interval(op, op.outputs[0], 2, degrees, shard), read = shard_interval(op, op.inputs[0], 2, degrees, shard);
                // x[i] adds to result i * stride + t * dilation - padding for each tap t.
                for (std::int64_t i = 0; i < extent; ++i)
                    for (std::int64_t t = 0; t < kernel; ++t)
                        if (auto const at = i * stride + t * dilation - padding; at >= made.begin && at < made.end && at < results)
                            CHECK((i >= read.begin && i < read.end));
            }
        }
    }
}

TEST_CASE("conv_transpose: refusals") {
    CHECK(refusal(ops::conv_transpose1d{.out = 1, .kernel = 1, .padding = 3}, {f32({1, 1, 4})}) ==
          "padding leaves -2 results along l: must leave something");
    CHECK(refusal(ops::conv_transpose1d{.out = 3, .groups = 2}, {f32({1, 2, 4})}) ==
          "input 0 of shape f32[1,2,4]: option groups is 2: must divide the channels (2) and option out (3)");
}
