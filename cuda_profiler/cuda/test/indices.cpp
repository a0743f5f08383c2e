/// Every kernel's indices, run on the host: each element once, and none outside.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <parsearch/core/random.hpp>

#include "profiler/device.hpp"
#include "kernels.hpp"
#include "profiler/test/reference.hpp"

using namespace parsearch;
using namespace parsearch::profiler;

TEST_CASE("a grid strides over every item once") {
    for (std::int64_t const items : {1, 255, 256, 257, 5000, 100000})
        for (int const multiprocessors : {1, 2, 132}) {
            int const blocks = blocks_for(items, multiprocessors);
            CHECK(blocks >= 1);
            CHECK(blocks <= 8 * multiprocessors);
            std::vector<int> seen(static_cast<std::size_t>(items));
            for (std::int64_t first = 0; first < std::int64_t{blocks} * block_threads; ++first)
                for (std::int64_t i = first; i < items; i += std::int64_t{blocks} * block_threads) ++seen[static_cast<std::size_t>(i)];
            CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
        }
}

TEST_CASE("random data are non-zero, exact in their type, and within bounds") {
    // The first output of SplitMix64 of seed 0, as Vigna's splitmix64.c gives it.
    CHECK(mix(0, 0) == 0xe220a8397b1dcdafULL);
    for (int const bits : {6, 8, 11, 24}) {
        double sum = 0;
        for (std::uint64_t i = 0; i < 20000; ++i) {
            float const v = random_value(7, i, bits);
            CHECK_UNARY(v != 0 && v > -1 && v < 1);
            double const scaled = std::ldexp(static_cast<double>(v), bits); // an odd integer of `bits` bits
            CHECK_UNARY(scaled == std::floor(scaled) && std::fmod(scaled, 2.0) != 0);
            CHECK_UNARY(random_positive(7, i, bits) > 0.5F - 1e-6F);
            CHECK_UNARY(random_positive(7, i, bits) < 2.F + 1e-6F);
            sum += static_cast<double>(v);
        }
        CHECK(std::abs(sum / 20000) < 0.02); // six deviations of a uniform mean
    }
    for (std::int64_t const bound : {1, 2, 7, 30522})
        for (std::uint64_t i = 0; i < 1000; ++i) CHECK_UNARY(random_index(3, i, bound) >= 0 && random_index(3, i, bound) < bound);
}

TEST_CASE("groups that are taken together lie together") {
    for (int const group : {2, 4, 8})
        for (std::int64_t longest = 1; longest <= 40; ++longest)
            for (std::int64_t elements = 1; elements <= longest; ++elements)
                for (std::int64_t at = 0; at < longest; at += group) {
                    if (!together(at, group, elements, longest)) continue;
                    std::int64_t const first = wrapped(at, elements);
                    CHECK_UNARY(first % group == 0);
                    CHECK_UNARY(at + group <= longest);
                    for (int j = 0; j < group; ++j) CHECK_UNARY(wrapped(at + j, elements) == first + j && first + j < elements);
                }
    // Stores: an array shorter than the longest is never written beyond its end.
    CHECK_FALSE(together(8, 4, 10, 10));
    CHECK(together(4, 4, 8, 8));
    CHECK_FALSE(together(8, 4, 8, 8));
}

TEST_CASE("dropout keeps nine of ten, and the mean") {
    std::array<std::int64_t, 8> kept{}; // by the place among eight
    for (std::int64_t i = 0; i < 800000; ++i) kept[static_cast<std::size_t>(i % 8)] += kept_by_dropout(dropout_number(i), i);
    for (auto const k : kept) CHECK(static_cast<double>(k) * dropout_scale == doctest::Approx(1e5).epsilon(0.005));
    CHECK(1 / dropout_scale == doctest::Approx(0.9).epsilon(0.01));
}

TEST_CASE("slices part a range") {
    for (std::int64_t n = 0; n <= 70; ++n)
        for (std::int64_t parts = 1; parts <= 17; ++parts) {
            std::int64_t at = 0;
            for (std::int64_t p = 0; p < parts; ++p) {
                slice const s = slice_of(n, parts, p);
                CHECK_UNARY(s.begin == at);
                CHECK_UNARY(s.end - s.begin >= n / parts && s.end - s.begin <= n / parts + 1);
                at = s.end;
            }
            CHECK(at == n);
        }
}

TEST_CASE("an item is in the one piece that holds it") {
    for (std::vector<std::int64_t> const& sizes :
         {std::vector<std::int64_t>{5}, {1, 1, 1}, {3, 0, 4}, {0, 2}, {0, 0, 1, 0, 0}, {7, 1, 0, 0, 900, 2, 1, 1, 30}}) {
        std::vector<std::int64_t> begin{0};
        for (auto const size : sizes) begin.push_back(begin.back() + size);
        std::int64_t item = 0;
        for (std::size_t p = 0; p < sizes.size(); ++p)
            for (std::int64_t i = 0; i < sizes[p]; ++i) CHECK(piece_of(begin.data(), static_cast<int>(sizes.size()), item++) == static_cast<int>(p));
    }
}

TEST_CASE("a reduction adds every element to its result once") {
    for (auto const& [outer, summed, inner] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {1, 100000, 1}, {7, 1000, 1}, {3, 5, 7}, {2, 4097, 3}, {1, 5000, 64}, {40, 33, 1}})
        for (int const multiprocessors : {1, 132}) {
            reduction_shape const r = shape_of_reduction(outer, summed, inner, multiprocessors);
            CAPTURE(r.splits);
            CHECK(r.splits >= 1);
            CHECK(block_threads % r.row_threads == 0);
            std::vector<int> seen(static_cast<std::size_t>(outer * summed * inner));
            // As `row_sums` and `column_sums` go, part by part; parts are stored [outer, splits, inner].
            for (std::int64_t row = 0; row < outer * r.splits; ++row) {
                slice const part = slice_of(summed, r.splits, row % r.splits);
                for (std::int64_t i = 0; i < inner; ++i)
                    for (int lane = 0; lane < r.row_threads; ++lane)
                        for (std::int64_t s = part.begin + lane; s < part.end; s += r.row_threads) {
                            std::int64_t const from = reduction_source(r, row / r.splits, s, i);
                            CHECK_UNARY(from / inner / summed == row / r.splits);
                            CHECK_UNARY(from % inner == i);
                            ++seen[static_cast<std::size_t>(from)];
                        }
            }
            CHECK(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
        }
    CHECK(reduction_workspace({.outer = 3, .summed = 8, .inner = 5, .splits = 1}, dtype::f16) == 0);
    CHECK(reduction_workspace({.outer = 3, .summed = 8, .inner = 5, .splits = 2}, dtype::f16) == 120);
    CHECK(reduction_workspace({.outer = 3, .summed = 8, .inner = 5, .splits = 2}, dtype::f64) == 240);
}

TEST_CASE("windows and the positions that they cover, both ways") {
    for (std::int64_t size = 1; size <= 9; ++size)
        for (std::int64_t window = 1; window <= 4; ++window)
            for (std::int64_t stride = 1; stride <= 4; ++stride)
                for (std::int64_t front = 0; front < window; ++front)
                    for (std::int64_t results = 1; (results - 1) * stride - front < size; ++results)
                        for (std::int64_t position = 0; position < size; ++position)
                            for (std::int64_t r = 0; r < results; ++r) {
                                bool const covers = position >= r * stride - front && position < r * stride - front + window;
                                slice const of_window = window_at({size, window, stride, front, results}, r);
                                slice const of_position = windows_over({size, window, stride, front, results}, position);
                                CHECK_UNARY((position >= of_window.begin && position < of_window.end) == covers);
                                CHECK_UNARY((r >= of_position.begin && r < of_position.end) == covers);
                            }
}

TEST_CASE("elements of channelled arrays are found where they lie") {
    for (bool const last : {false, true})
        for (std::int64_t i = 0; i < 2 * 3 * 4 * 5; ++i) {
            pixel const p = pixel_at(i, 3, 4, 5, last);
            CHECK(place_of(p, 3, 4, 5, last) == i);
            CHECK_UNARY(p.n < 2 && p.channel < 3 && p.y < 4 && p.x < 5);
        }
    CHECK(place_of({0, 1, 0, 0}, 3, 4, 5, true) == 1);
    CHECK(place_of({0, 0, 0, 1}, 3, 4, 5, false) == 1);
}

TEST_CASE("our own gradient of pooling is the reference's, where elements of a window are equal too") {
    split_mix bits(20261124);
    auto const few = [&](std::int64_t n, std::uint64_t values) { // so few values that most windows have equal ones
        testing::numbers v(static_cast<std::size_t>(n));
        for (double& x : v) x = static_cast<double>(uniform_index(bits, values)) - 1;
        return v;
    };
    for (bool const average : {false, true})
        for (bool const last : {false, true})
            for (std::int64_t const front : {0, 1})
                for (std::int64_t const stride : {1, 2, 3}) {
                    pooling const forward{.average = average,
                                          .n = 2,
                                          .channels = 3,
                                          .size = {7, 6},
                                          .window = {3, 2},
                                          .stride = {stride, stride},
                                          .padding = {front, front},
                                          .result = {(7 + front - 3) / stride + 1, (6 + front - 2) / stride + 1}};
                    pooling backward = forward;
                    backward.backward = true;
                    testing::numbers const x = few(2 * 3 * 7 * 6, 3), dy = few(2 * 3 * forward.result[0] * forward.result[1], 100);
                    testing::numbers const y = testing::pooled(forward, x, {}), wanted = testing::pooled(backward, x, dy);
                    auto const axis = [&](std::size_t i) {
                        return pool_axis{forward.size[i], forward.window[i], forward.stride[i], forward.padding[i], forward.result[i]};
                    };
                    pool_shape const shape{average, 3, axis(0), axis(1)};
                    // Where the element at a place in memory is in the reference's order.
                    auto const reader = [&](testing::numbers const& v, pool_axis const& rows, pool_axis const& columns, bool inputs) {
                        std::int64_t const height = inputs ? rows.size : rows.results, width = inputs ? columns.size : columns.results;
                        return [&v, height, width, last](std::int64_t i) {
                            std::int64_t const at = place_of(pixel_at(i, 3, height, width, last), 3, height, width, false);
                            return static_cast<float>(v.at(static_cast<std::size_t>(at)));
                        };
                    };
                    auto const read_x = reader(x, shape.rows, shape.columns, true), read_wanted = reader(wanted, shape.rows, shape.columns, true);
                    auto const read_y = reader(y, shape.rows, shape.columns, false), read_dy = reader(dy, shape.rows, shape.columns, false);
                    CAPTURE(average);
                    CAPTURE(last);
                    CAPTURE(front);
                    CAPTURE(stride);
                    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i)
                        CHECK(pool_gradient(shape, last, i, read_x, read_y, read_dy) == doctest::Approx(static_cast<double>(read_wanted(i))));
                }
}

namespace {

/// Output from input, by the definition.
std::vector<int> permuted(permutation const& p) {
    std::vector<std::int64_t> stride(p.extents.size(), 1);
    for (std::size_t i = p.extents.size(); i-- > 1;) stride[i - 1] = stride[i] * p.extents[i];
    std::vector<int> from{0};
    for (std::uint32_t const a : p.order) {
        std::vector<int> next;
        for (int const base : from)
            for (std::int64_t i = 0; i < p.extents[a]; ++i) next.push_back(base + static_cast<int>(i * stride[a]));
        from = std::move(next);
    }
    return from;
}

/// The same as the kernels go; -1 where nothing was written, -2 where twice.
std::vector<int> as_run(permutation const& p, std::size_t element_bytes) {
    permutation_plan plan = plan_of(p, "a test");
    std::size_t const wide = widen(plan, element_bytes);
    auto const width = static_cast<int>(wide / element_bytes);
    std::vector<int> out(static_cast<std::size_t>(plan.elements() * width), -1);
    auto const write = [&](std::int64_t to, std::int64_t from) {
        for (int j = 0; j < width; ++j) {
            int& o = out.at(static_cast<std::size_t>(to * width + j));
            o = o == -1 ? static_cast<int>(from * width + j) : -2;
        }
    };
    if (plan.turned < 0) {
        for (std::int64_t i = 0; i < plan.elements(); ++i) write(i, permutation_source<std::uint32_t>(plan, static_cast<std::uint32_t>(i)));
        return out;
    }
    CHECK(width == 1);
    CHECK(plan.source[plan.turned] == 1);
    CHECK(plan.target[plan.rank - 1] == 1);
    for (std::int64_t t = 0; t < plan.tiles(); ++t) {
        tile_place const at = place_of_tile(plan, t);
        CHECK_UNARY(at.turned >= 1 && at.turned <= tile && at.last >= 1 && at.last <= tile);
        for (int turned = 0; turned < at.turned; ++turned)
            for (int last = 0; last < at.last; ++last)
                write(at.target + turned * plan.target[plan.turned] + last, at.source + last * plan.source[plan.rank - 1] + turned);
    }
    return out;
}

} // namespace

TEST_CASE("permutations move every element to its place") {
    std::vector<permutation> some{
        {{2, 3}, {1, 0}}, {{64, 33, 5}, {0, 2, 1}},      {{64, 33, 5}, {2, 1, 0}}, {{4, 1, 8}, {1, 0, 2}}, {{1, 1}, {1, 0}}, {{3, 40, 8}, {1, 0, 2}},
        {{7}, {0}},       {{2, 50, 3, 16}, {0, 2, 1, 3}}};
    std::uint64_t const seed = 20260101;
    INFO("seed ", seed);
    split_mix bits(seed);
    for (int i = 0; i < 300; ++i) {
        permutation p;
        auto const rank = 1 + uniform_index(bits, 6);
        for (std::uint64_t a = 0; a < rank; ++a) {
            p.extents.push_back(1 + static_cast<std::int64_t>(uniform_index(bits, a + 2 > rank ? 40 : 5)));
            p.order.push_back(static_cast<std::uint32_t>(a));
        }
        for (std::size_t a = p.order.size(); a-- > 1;) std::swap(p.order[a], p.order[uniform_index(bits, a + 1)]);
        some.push_back(std::move(p));
    }
    for (permutation const& p : some)
        for (std::size_t const bytes : {1U, 2U, 4U, 8U}) CHECK(as_run(p, bytes) == permuted(p));
}

TEST_CASE("permutations that are none are refused") {
    CHECK_THROWS_AS((void)plan_of({{2, 3}, {0, 0}}, "x"), launch_failure);
    CHECK_THROWS_AS((void)plan_of({{2, 3}, {0}}, "x"), launch_failure);
    CHECK_THROWS_AS((void)plan_of({{2, 0}, {0, 1}}, "x"), launch_failure);
    CHECK_THROWS_AS((void)plan_of({{2, 3}, {0, 2}}, "x"), launch_failure);
}

TEST_CASE("arithmetic of streaming and of an update") {
    CHECK(fmas_of(streaming{.reads = {{8}, {8}}, .writes = {{8}}, .flops = 1}) == 0);
    CHECK(fmas_of(streaming{.reads = {{8}, {8}}, .writes = {{8}}, .flops = 9}) == 4);
    CHECK(fmas_of(streaming{.reads = {}, .writes = {{8}}, .flops = 0}) == 0);
    CHECK(elements_of(updated_weights{.flops = 0, .bytes = 0}) == 0);
    CHECK(elements_of(updated_weights{.flops = 0, .bytes = 28}) == 1);
    CHECK(elements_of(updated_weights{.flops = 0, .bytes = 29}) == 2);
    CHECK(fmas_of(optimizer_update{}) == 0);
    CHECK(fmas_of(optimizer_update{.sets = {{.flops = 2000, .bytes = 2800}}}) == 4);
    CHECK(fmas_of(optimizer_update{.sets = {{.flops = 2000, .bytes = 2800}, {.flops = 0, .bytes = 2800}, {.flops = 10000, .bytes = 5600}}}) == 9);
}
