#include <parsearch/ops/kit/window.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/pool.hpp>

#include "support/operators.hpp"
#include "support/random_operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

namespace {

/// The positions of a window that lies within the padded axis, one by one.
std::int64_t count_positions(std::int64_t extent, ops::kit::window const& w) {
    std::int64_t n = 0;
    while (n * w.stride + w.dilation * (w.kernel - 1) < extent + w.padding + w.behind()) ++n;
    return n;
}

/// Checks axis `axis` of the input of `op`, whose dim `dim` counts window positions, against every tap of every position.
void check_taps(ops::operation const& op, std::size_t axis, std::uint32_t dim, ops::kit::window const& w) {
    auto const extent = op.dims[dim].extent;
    for (std::int32_t degree = 1; degree <= extent; ++degree) {
        if (extent % degree) continue;
        std::vector<std::int32_t> degrees(op.dims.size(), 1);
        degrees[dim] = degree;
        for (std::int64_t shard = 0; shard < degree; ++shard) {
            std::vector<std::int64_t> touched;
            for (auto p = shard * extent / degree; p < (shard + 1) * extent / degree; ++p)
                for (std::int64_t k = 0; k < w.kernel; ++k)
                    if (auto const at = p * w.stride - w.padding + k * w.dilation; at >= 0 && at < op.inputs[0].axes[axis].extent)
                        touched.push_back(at);
            auto const found = shard_interval(op, op.inputs[0], axis, degrees, shard);
            CAPTURE(degree);
            CAPTURE(shard);
            if (touched.empty()) continue; // all taps lie in the padding; positions between them may count
            auto const [first, last] = std::minmax_element(touched.begin(), touched.end());
            if (w.dilation == 1 && w.stride <= w.kernel) {
                CHECK((found.begin == *first && found.end == *last + 1));
            } else { // where taps leave gaps, one beyond the border may widen the interval by less than a step
                auto const step = std::max(w.dilation, w.stride);
                CHECK((found.begin <= *first && found.begin > *first - step));
                CHECK((found.end > *last && found.end <= *last + step));
            }
        }
    }
}

constexpr std::uint64_t first_seed = 31;
constexpr std::uint64_t trials = 400;

} // namespace

TEST_CASE("window: shards of convolutions read what the taps of their outputs touch") {
    for (std::uint64_t seed = first_seed; seed < first_seed + trials; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        drawer draw{rng};
        auto const one = random_application<ops::conv1d>::draw(draw);
        auto const op = one.infer();
        ops::kit::window const w{one.op.kernel, one.op.stride, one.op.padding, one.op.dilation, one.op.padding_end};
        std::uint32_t const l = one.op.groups > 1 ? 3 : 2;
        CHECK(op.dims[l].extent == count_positions(one.inputs[0].extents[2], w));
        check_taps(op, 2, l, w);
        auto const two = random_application<ops::conv2d>::draw(draw);
        auto const plane = two.infer();
        for (std::uint32_t i = 0; i < 2; ++i) {
            ops::kit::window const side{two.op.kernel[i], two.op.stride[i], two.op.padding[i], two.op.dilation[i], two.op.padding_end[i]};
            std::uint32_t const d = (two.op.groups > 1 ? 3 : 2) + i;
            CHECK(plane.dims[d].extent == count_positions(two.inputs[0].extents[2 + i], side));
            check_taps(plane, 2 + i, d, side);
        }
    }
    MESSAGE("seeds ", first_seed, " to ", first_seed + trials - 1);
}

TEST_CASE("window: shards of poolings likewise, rounded down and up") {
    for (std::uint64_t seed = first_seed; seed < first_seed + trials; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        drawer draw{rng};
        auto const one = random_application<ops::pool1d>::draw(draw);
        auto const op = one.infer();
        ops::kit::window const w{one.op.kernel, one.op.stride, one.op.padding, 1, one.op.padding_end};
        check_taps(op, 2, 2, w);
        auto const two = random_application<ops::pool2d>::draw(draw);
        auto const plane = two.infer();
        for (std::uint32_t i = 0; i < 2; ++i)
            check_taps(plane, 2 + i, 2 + i, {two.op.kernel[i], two.op.stride[i], two.op.padding[i], 1, two.op.padding_end[i]});
        if (!one.op.ceil_mode) CHECK(op.dims[2].extent == count_positions(one.inputs[0].extents[2], w));
        // Rounded up, the windows reach as far as they can: one more would start in the padding, or the last reaches the end.
        auto const up = ops::kit::window_positions(one.inputs[0].extents[2], w, "l", true);
        auto const extent = one.inputs[0].extents[2];
        CHECK((up - 1) * w.stride - w.padding < extent);
        CHECK((up * w.stride >= extent + w.padding || (up - 1) * w.stride + w.kernel >= extent + w.padding + w.behind()));
        CHECK(up >= count_positions(extent, w));
        CHECK(up <= count_positions(extent, w) + 1);
    }
    MESSAGE("seeds ", first_seed, " to ", first_seed + trials - 1);
}
