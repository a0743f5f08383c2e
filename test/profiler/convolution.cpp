#include "profiler/lower/convolution.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/conv_transpose.hpp>
#include <parsearch/ops/pool.hpp>

#include "profiler/lower.hpp"

using namespace parsearch;
using namespace parsearch::profiler;

namespace {

using row = std::vector<std::int64_t>;

/// y of the launch's convolution of `x` with `w`, one channel along the width, by its definition.
row convolve(convolution const& c, row const& x, row const& w) {
    row y;
    REQUIRE(static_cast<std::int64_t>(x.size()) == c.size[1]);
    for (std::int64_t p = 0; p < c.result[1]; ++p) {
        std::int64_t sum = 0;
        for (std::int64_t k = 0; k < c.kernel[1]; ++k) {
            auto const at = p * c.stride[1] - c.padding[1] + k * c.dilation[1];
            REQUIRE(at < c.size[1] + c.padding_end[1]); // no window beyond the padding
            if (at >= 0 && at < c.size[1]) sum += x[static_cast<std::size_t>(at)] * w[static_cast<std::size_t>(k)];
        }
        y.push_back(sum);
    }
    return y;
}
/// Its data gradient: each element of `y` goes where its window was.
row spread(convolution const& c, row const& y, row const& w) {
    row x(static_cast<std::size_t>(c.size[1]));
    REQUIRE(static_cast<std::int64_t>(y.size()) == c.result[1]);
    for (std::int64_t p = 0; p < c.result[1]; ++p)
        for (std::int64_t k = 0; k < c.kernel[1]; ++k) {
            auto const at = p * c.stride[1] - c.padding[1] + k * c.dilation[1];
            if (at >= 0 && at < c.size[1]) x[static_cast<std::size_t>(at)] += y[static_cast<std::size_t>(p)] * w[static_cast<std::size_t>(k)];
        }
    return x;
}
row random_row(std::mt19937_64& rng, std::int64_t n) {
    row out;
    for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<std::int64_t>(uniform_index(rng, 100)));
    return out;
}
row part(row const& x, ops::interval i) { return {x.begin() + i.begin, x.begin() + i.end}; }
std::int64_t between(std::mt19937_64& rng, std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(last - first + 1)));
}
/// The convolution of a whole row, or the one of which a transposed convolution is the data gradient.
template <class Op> convolution whole_row(Op const& op, std::int64_t size, std::int64_t result) {
    return {.size = {1, size},
            .kernel = {1, op.kernel},
            .stride = {1, op.stride},
            .dilation = {1, op.dilation},
            .padding = {0, op.padding},
            .padding_end = {0, op.padding_end < 0 ? op.padding : op.padding_end},
            .result = {1, result}};
}
/// What `op` does with one row; nothing where it refuses the length.
template <class Op> std::optional<ops::operation> inferred(Op const& op, std::int64_t length) {
    try {
        return op.infer(std::vector<ops::tensor>{{{1, 1, length}}});
    } catch (invalid_input const&) {
        return {};
    }
}
/// Calls `check(degree, in, out, lowered)` for every way to split the row evenly: what the middle shard reads of x and makes of y, and its launches.
template <class Check> void for_each_split(ops::operation const& o, Check const& check) {
    for (std::int32_t degree = 1; degree <= o.dims[2].extent; ++degree) {
        if (o.dims[2].extent % degree != 0) continue;
        CAPTURE(degree);
        std::vector<std::int32_t> const degrees{1, 1, degree, 1};
        auto const box = ops::middle_shard(o, degrees);
        check(degree, ops::axis_interval(o.inputs[0].axes[2], box), ops::axis_interval(o.outputs[0].axes[2], box),
              lower(ops::work_of(o, degrees, ops::pass::forward)));
    }
}
/// Libraries compute the number of results from the sizes.
void check_sizes(convolution const& c) {
    for (std::size_t i = 0; i < 2; ++i) {
        auto const room = c.size[i] + c.padding[i] + c.padding_end[i] - (c.dilation[i] * (c.kernel[i] - 1) + 1);
        CHECK(room >= 0);
        CHECK(room / c.stride[i] + 1 == c.result[i]);
    }
}
} // namespace

TEST_CASE("convolution: what the launches here are compared by, by hand") {
    ops::conv1d const op{.out = 1, .kernel = 2, .stride = 2, .padding = 1, .dilation = 2, .bias = false};
    CHECK(convolve(whole_row(op, 5, 3), {1, 2, 3, 4, 5}, {1, 10}) == row{20, 42, 4});
    CHECK(spread(whole_row(op, 5, 3), {1, 2, 3}, {1, 10}) == row{0, 12, 0, 23, 0});
}

TEST_CASE("convolution: the shard's launch computes the shard's part of the whole") {
    std::size_t split = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        ops::conv1d const op{.out = 1,
                             .kernel = between(rng, 1, 5),
                             .stride = between(rng, 1, 4),
                             .padding = between(rng, 0, 4),
                             .dilation = between(rng, 1, 3),
                             .padding_end = between(rng, -1, 4),
                             .bias = false};
        auto const length = between(rng, 1, 40);
        auto const o = inferred(op, length);
        if (!o) continue;
        auto const x = random_row(rng, length), w = random_row(rng, op.kernel);
        auto const whole = convolve(whole_row(op, length, o->outputs[0].axes[2].extent), x, w);
        for_each_split(*o, [&](std::int32_t degree, ops::interval in, ops::interval out, lowered const& l) {
            if (!l) {
                CHECK(in.size() == 0);
                return;
            }
            auto const& c = std::get<convolution>(l.launches.at(0));
            check_sizes(c);
            CHECK(c.result[1] == out.size());
            CHECK(convolve(c, degree == 1 ? x : part(x, in), w) == part(whole, out));
            split += degree > 1;
        });
    }
    CHECK(split > 3000);
}

TEST_CASE("convolution: a transposed one is the data gradient of one") {
    std::size_t equal = 0, alike = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        ops::conv_transpose1d const op{.out = 1,
                                       .kernel = between(rng, 1, 5),
                                       .stride = between(rng, 1, 4),
                                       .padding = between(rng, 0, 4),
                                       .dilation = between(rng, 1, 2),
                                       .padding_end = between(rng, -1, 3),
                                       .output_padding = between(rng, 0, 2),
                                       .bias = false};
        auto const length = between(rng, 1, 20);
        auto const o = inferred(op, length);
        if (!o) continue;
        auto const x = random_row(rng, length), w = random_row(rng, op.kernel);
        auto const whole = spread(whole_row(op, o->outputs[0].axes[2].extent, length), x, w);
        for_each_split(*o, [&](std::int32_t degree, ops::interval in, ops::interval out, lowered const& l) {
            if (!l) {
                CHECK((in.size() == 0 || out.size() == 0));
                return;
            }
            auto const& c = std::get<convolution>(l.launches.at(0));
            CHECK(c.pass == convolution_pass::data_gradient);
            check_sizes(c);
            CHECK(c.size[1] == out.size());
            CHECK(c.result[1] == (degree == 1 ? length : in.size()));
            // Other padding and dilation can touch the same positions: then the launch is one of as much work.
            auto const first = degree == 1 ? 0 : in.begin;
            bool const same = c.dilation[1] == op.dilation && c.padding[1] == op.padding + out.begin - first * op.stride;
            ++(same ? equal : alike);
            if (same) CHECK(spread(c, degree == 1 ? x : part(x, in), w) == part(whole, out));
        });
    }
    MESSAGE(equal << " launches equal, " << alike << " alike");
    CHECK(equal > 1500);
}

TEST_CASE("convolution: groups, channels, two axes, and the passes") {
    using tensors = std::vector<ops::tensor>;
    auto const h = ops::dtype::bf16;
    auto const op = ops::conv2d{.out = 96, .kernel = {3, 5}, .stride = {2, 1}, .padding = {1, 2}, .groups = 4}.infer(tensors{{{16, 32, 28, 14}, h}});
    std::vector<std::int32_t> const degrees{2, 4, 1, 2, 1, 1}; // s, g, o, h, w, c
    convolution c{.pass = convolution_pass::forward,
                  .n = 8,
                  .groups = 1,
                  .in = 8,
                  .out = 24,
                  .size = {14, 14},
                  .kernel = {3, 5},
                  .stride = {2, 1},
                  .dilation = {1, 1},
                  .padding = {0, 2},
                  .padding_end = {0, 2},
                  .result = {7, 14},
                  .type = h};
    auto const forward = lower(ops::work_of(op, degrees, ops::pass::forward));
    auto const& made = std::get<convolution>(forward.launches.at(0));
    // The lower half reads row 13 of the upper one; nothing of the padding behind.
    c.size[0] = 15;
    CHECK(made == c);
    CHECK(std::get<streaming>(forward.launches.at(1)).reads.size() == 2);
    auto const backward = lower(ops::work_of(op, degrees, ops::pass::backward));
    REQUIRE(backward.launches.size() == 4);
    c.pass = convolution_pass::data_gradient;
    CHECK(std::get<convolution>(backward.launches[0]) == c);
    c.pass = convolution_pass::filter_gradient;
    CHECK(std::get<convolution>(backward.launches[1]) == c);
    CHECK(std::get<reduction>(backward.launches[2]) == reduction{.outer = 8 * 24, .summed = 7 * 14, .inner = 1, .type = h});
    CHECK(std::get<reduction>(backward.launches[3]) == reduction{.outer = 1, .summed = 8, .inner = 24, .type = h});
    auto const pooled = ops::pool2d{.mode = ops::pool_mode::average, .kernel = {2, 2}, .stride = {2, 2}}.infer(tensors{{{16, 32, 28, 14}, h}});
    auto const p = lower(ops::work_of(pooled, std::vector<std::int32_t>{1, 2, 7, 1}, ops::pass::backward));
    CHECK(std::get<pooling>(p.launches.at(0)) == pooling{.average = true,
                                                         .backward = true,
                                                         .n = 16,
                                                         .channels = 16,
                                                         .size = {4, 14},
                                                         .window = {2, 2},
                                                         .stride = {2, 2},
                                                         .result = {2, 7},
                                                         .type = h});
}
