#include <parsearch/cost/interpolation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/ops/conv.hpp>

#include "support/shuffle.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {

using extents = std::array<std::int64_t, 3>;
constexpr std::uint64_t seed = 11;

kernel kernel_at(extents const& e) {
    return {.op = "linear",
            .pass = ops::pass::forward,
            .dims = {{"s", e[0]}, {"o", e[1]}, {"k", e[2]}},
            .operands = "x:f32[s,k] w:f32[o,k] -> y:f32[s,o]"};
}
double flops_at(extents const& e) { return 2.0 * static_cast<double>(e[0]) * static_cast<double>(e[1]) * static_cast<double>(e[2]); }
double bytes_at(extents const& e) {
    auto const [s, o, k] = e;
    return 4.0 * static_cast<double>(s * k + o * k + s * o);
}

/// A device that obeys the rule of families: arithmetic whose rate grows with small extents, memory, a launch.
double device_seconds(extents const& e, double launch) {
    auto const full = [](std::int64_t n, double half) { return (static_cast<double>(n) + half); };
    double const arithmetic = 2e-12 * full(e[0], 100) * full(e[1], 60) * full(e[2], 30);
    return std::max(arithmetic, bytes_at(e) * 2e-12) + launch;
}
extents drawn(std::mt19937_64& rng) {
    extents e{};
    for (auto& x : e) x = static_cast<std::int64_t>(std::exp2(4 + 8 * uniform_unit(rng)));
    return e;
}
profile_entry entry_at(extents const& e, picoseconds time, bool knows_work) {
    profile_entry out{.device = "gpu", .kernel = kernel_at(e), .time = time};
    if (knows_work) {
        out.flops = flops_at(e);
        out.bytes = bytes_at(e);
        out.work = ops::work_class::matmul;
    }
    return out;
}
auto asked(interpolation const& table, extents const& e) { return table("gpu", kernel_at(e), flops_at(e), bytes_at(e), ops::work_class::matmul); }
/// A table of `n` kernels: times of the device, or wild ones that contradict every rule.
std::vector<profile_entry> random_entries(std::mt19937_64& rng, std::size_t n, bool knows_work, bool wild) {
    std::vector<profile_entry> out;
    double const launch = 1e-6 * (1 + uniform_unit(rng));
    while (out.size() < n) {
        auto const e = drawn(rng);
        double const seconds = device_seconds(e, launch) * (wild ? std::exp2(4 * uniform_unit(rng)) : 1);
        out.push_back(entry_at(e, from_seconds(seconds), knows_work));
    }
    return out;
}
profile table_of(std::vector<profile_entry> const& entries) {
    profile p;
    for (auto const& e : entries)
        if (!p.find(e.device, e.kernel)) p.add(e);
    return p;
}
measured_options const everything{.octaves = 100};
} // namespace

TEST_CASE("family: what separates kernels, and what does not") {
    CHECK(family_of(kernel_at({1, 2, 3})) == "linear forward s o k (x:f32[s,k] w:f32[o,k] -> y:f32[s,o])");
    CHECK(family_of({.op = "update", .pass = ops::pass::update, .dims = {{"flops", 1}, {"bytes", 2}}, .operands = {}}) ==
          "update update flops bytes");
    auto const conv = [](std::int64_t image, std::int64_t step, std::vector<std::int32_t> const& degrees) {
        std::vector<ops::tensor> const x{{{8, 4, image, image}}};
        auto const op = ops::conv2d{.out = 64, .kernel = {7, 7}, .stride = {step, step}, .padding = {3, 3}, .bias = false}.infer(x);
        return family_of(kernel_of(ops::work_of(op, degrees, ops::pass::forward)));
    };
    // Padded borders follow from the extents; steps do not.
    CHECK(conv(224, 2, {1, 1, 1, 1, 1}) == conv(112, 2, {2, 4, 7, 1, 1}));
    CHECK(conv(224, 2, {1, 1, 1, 1, 1}) == "conv2d forward s o h w c (x:f32[s,c,2*h-3:7,2*w-3:7] weight:f32[o,c,7,7] -> y:f32[s,o,h,w])");
    CHECK(conv(224, 2, {1, 1, 1, 1, 1}) != conv(224, 1, {1, 1, 1, 1, 1}));
    CHECK(output_type(kernel_at({1, 1, 1})) == "f32");
    CHECK(output_type({.op = "u", .pass = ops::pass::update, .dims = {}, .operands = {}}).empty());
    CHECK(output_type({.op = "u", .dims = {}, .operands = "x:bf16[s] -> y:i8[s] z:f32[s]"}) == "i8");
    for (auto const* const odd : {"->", "-> y", "-> [:", "x:f32[s]"}) CHECK(output_type({.op = "u", .dims = {}, .operands = odd}).empty());
}

TEST_CASE("family: products of 16 bits are separated by how their rows are aligned") {
    auto const product = [](std::int64_t out, std::int64_t in, std::string const& type) {
        return kernel{.op = "linear",
                      .pass = ops::pass::forward,
                      .dims = {{"s", 3}, {"o", out}, {"k", in}},
                      .operands = "x:" + type + "[s,k] w:" + type + "[o,k] -> y:" + type + "[s,o]"};
    };
    CHECK(row_alignment(product(50304, 768, "bf16")) == 16);
    CHECK(row_alignment(product(30522, 768, "bf16")) == 4);
    CHECK(row_alignment(product(50257, 768, "f16")) == 2);
    CHECK(row_alignment(product(768, 12, "f16")) == 8);
    CHECK(row_alignment(product(50257, 768, "f32")) == 16); // nothing is known of these
    CHECK(row_alignment(product(1, 768, "bf16")) == 16);    // a row of one element
    CHECK(family_of(product(50257, 768, "bf16")) == "linear forward s o k (x:bf16[s,k] w:bf16[o,k] -> y:bf16[s,o]) rows at 2 bytes");
    CHECK(family_of(product(50257, 768, "bf16")) != family_of(product(50304, 768, "bf16")));
    // Numbers are axes too. What is no product, or has axes that are no plain dims, is as it was.
    auto const with = [](std::string operands) {
        std::vector<kernel_dim> dims;
        for (auto const* const name : {"s", "e", "c", "h", "w"}) dims.push_back({name, 5});
        return row_alignment({.op = "mine", .pass = ops::pass::forward, .dims = std::move(dims), .operands = std::move(operands)});
    };
    CHECK(with("x:bf16[s,e] w:bf16[e,6] -> y:bf16[s,6]") == 2);
    CHECK(with("x:bf16[s,c,8] w:bf16[8,c] -> y:bf16[s,8]") == 2);
    CHECK(with("x:i8[s,e] w:i8[e,6] -> y:i8[s,6]") == 16);
    CHECK(with("x:bf16[s,e] -> y:bf16[s]") == 16);                                    // one input: a reduction
    CHECK(with("x:bf16[s,e] labels:i64[s] -> loss:bf16[s]") == 16);                   // nothing summed is shared
    CHECK(with("x:bf16[s,e] z:bf16[s,e] -> y:bf16[s,e]") == 16);                      // nothing is summed
    CHECK(with("x:bf16[s,c,h,w] weight:bf16[e,c,1,1] -> y:bf16[s,e,h,w]") == 16);     // a convolution
    CHECK(with("x:bf16[s,c,2*h,2*w] weight:bf16[e,c,1,1] -> y:bf16[s,e,h,w]") == 16); // with steps
    CHECK(with("x:bf16[s,e-1:3=9] w:bf16[e,6] -> y:bf16[s,7]") == 16);
    CHECK(with("x:bf16[s,e] w:bf16[e,c] -> y:bf16[s,c-64=64] z:bf16[s,c=64]") == 16);
    for (auto const* const none : {"", "[", "[]", "x[s,e]", "x:[e", "x:bf16[] -> y:bf16[s,5]"}) CHECK(with(none) == 16);
    // One odd product tells nothing of the others: 50,304 words are faster than 50,257.
    auto const entry = [&](std::int64_t out, std::int64_t microseconds) {
        profile_entry e{.device = "gpu", .kernel = product(out, 768, "bf16"), .time = std::chrono::microseconds{microseconds}};
        e.flops = 2.0 * 3 * 768 * static_cast<double>(out);
        e.bytes = 2.0 * 768 * static_cast<double>(out);
        e.work = ops::work_class::matmul;
        return e;
    };
    interpolation const estimates(table_of({entry(16384, 100), entry(32768, 200), entry(65536, 400), entry(50257, 2000)}), {});
    auto const asked = entry(49152, 0);
    auto const found = estimates("gpu", asked.kernel, *asked.flops, *asked.bytes, ops::work_class::matmul);
    REQUIRE(found);
    CHECK(found->source == cost_source::interpolated);
    CHECK(to_seconds(found->time) == doctest::Approx(300e-6).epsilon(0.01));
}

TEST_CASE("family: names with blanks are not taken for several names") {
    profile_entry one{.device = "gpu",
                      .kernel = {.op = "mine", .pass = ops::pass::forward, .dims = {{"a", 4}, {"b c d", 8}}, .operands = {}},
                      .time = picoseconds{4000}};
    profile_entry other{.device = "gpu",
                        .kernel = {.op = "mine", .pass = ops::pass::forward, .dims = {{"a b", 8}, {"c", 3}, {"d", 3}}, .operands = {}},
                        .time = picoseconds{9000}};
    CHECK(family_of(one.kernel) != family_of(other.kernel));
    auto const with_op = [](std::string op, std::string dim) {
        return kernel{.op = std::move(op), .pass = ops::pass::forward, .dims = {{std::move(dim), 1}}, .operands = {}};
    };
    CHECK(family_of(with_op("a forward b", "c")) !=
          family_of({.op = "a", .pass = ops::pass::forward, .dims = {{"b", 1}, {"forward", 1}, {"c", 1}}, .operands = {}}));
    CHECK(family_of(with_op("a", "3:b c")) != family_of(with_op("a", "b c")));
    profile p;
    p.add(one);
    p.add(other);
    interpolation const table(p, everything);
    for (auto const& e : {one, other}) {
        auto const answer = table("gpu", e.kernel, 0, 0, ops::work_class::elementwise);
        CHECK_FALSE(answer.has_value()); // one member and no work: no trend
    }
}

TEST_CASE("interpolation: where the operation's roofline takes over, it stays between smaller and larger members of the family") {
    std::mt19937_64 rng{seed};
    int taken_over = 0, bounded = 0;
    for (int tables = 0; tables < 60; ++tables) {
        CAPTURE(tables);
        // A family that does not tell its work, and another of the operation that does.
        auto const members = random_entries(rng, 2 + uniform_index(rng, 6), false, false);
        auto entries = members;
        for (auto e : random_entries(rng, 8, true, true)) {
            e.kernel.operands = "other" + e.kernel.operands;
            entries.push_back(e);
        }
        interpolation const table(table_of(entries), {.octaves = 1});
        for (int n = 0; n < 200; ++n) {
            auto const e = drawn(rng);
            auto const answer = asked(table, e);
            REQUIRE(answer.has_value());
            taken_over += answer->source == cost_source::roofline;
            for (auto const& m : members) {
                bool below = true, above = true;
                for (std::size_t d = 0; d < 3; ++d) {
                    below = below && m.kernel.dims[d].extent <= e[d];
                    above = above && m.kernel.dims[d].extent >= e[d];
                }
                bounded += below || above;
                constexpr picoseconds rounding{100};
                if (below) CHECK(m.time <= answer->time + rounding);
                if (above) CHECK(answer->time <= m.time + rounding);
            }
        }
    }
    CHECK(taken_over > 2000);
    CHECK(bounded > 2000);
}

TEST_CASE("interpolation: at the entries it answers them, where they obey the rule") {
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < 40; ++round) {
        CAPTURE(round);
        auto const entries = random_entries(rng, 2 + uniform_index(rng, 30), round % 2, false);
        interpolation const table(table_of(entries), everything);
        for (auto const& e : entries) {
            auto const found = table("gpu", e.kernel, e.flops.value_or(0), e.bytes.value_or(0), ops::work_class::matmul);
            REQUIRE(found);
            REQUIRE(found->source == cost_source::interpolated);
            REQUIRE(std::abs(found->time.count() - e.time.count()) <= 1 + e.time.count() / 1'000'000'000);
        }
    }
}

TEST_CASE("interpolation: growing an extent never shortens the answer, nor more than in proportion within the bounds; wild tables too") {
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    int compared = 0;
    for (int round = 0; round < 60; ++round) {
        CAPTURE(round);
        auto const entries = random_entries(rng, 2 + uniform_index(rng, 40), round % 2, round % 3 == 0);
        interpolation const table(table_of(entries), everything);
        for (int i = 0; i < 100; ++i) {
            auto const a = drawn(rng);
            auto b = a;
            for (auto& x : b)
                if (uniform_index(rng, 2)) x += static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(x)));
            auto const small = asked(table, a), large = asked(table, b);
            REQUIRE((small && large));
            // Logarithms round: a billionth of the time is no shortening.
            REQUIRE(large->time.count() >= small->time.count() - 1 - small->time.count() / 1'000'000'000);
            ++compared;
        }
    }
    CHECK(compared == 6000);
}

TEST_CASE("interpolation: within the range of its neighbours, and near the device's times") {
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::vector<double> errors;
    for (int round = 0; round < 20; ++round) {
        auto const entries = random_entries(rng, 60, true, false);
        auto const launch = to_seconds(entries[0].time) -
                            device_seconds({entries[0].kernel.dims[0].extent, entries[0].kernel.dims[1].extent, entries[0].kernel.dims[2].extent}, 0);
        interpolation const table(table_of(entries), everything);
        for (int i = 0; i < 100; ++i) {
            auto const e = drawn(rng);
            auto const found = asked(table, e);
            REQUIRE(found);
            for (auto const& other : entries) {
                auto const &x = kernel_at(e).dims, &y = other.kernel.dims;
                bool const above = x[0].extent >= y[0].extent && x[1].extent >= y[1].extent && x[2].extent >= y[2].extent;
                bool const below = x[0].extent <= y[0].extent && x[1].extent <= y[1].extent && x[2].extent <= y[2].extent;
                double factor = 1; // the most that growing to the larger may cost
                for (std::size_t d = 0; d < 3; ++d)
                    factor *= above ? static_cast<double>(x[d].extent) / static_cast<double>(y[d].extent)
                                    : static_cast<double>(y[d].extent) / static_cast<double>(x[d].extent);
                double const ratio = to_seconds(found->time) / to_seconds(other.time);
                if (above) REQUIRE((ratio >= 1 - 1e-6 && ratio <= factor * (1 + 1e-6)));
                if (below) REQUIRE((ratio <= 1 + 1e-6 && ratio >= (1 - 1e-6) / factor));
            }
            errors.push_back(std::abs(to_seconds(found->time) / device_seconds(e, launch) - 1));
        }
    }
    std::ranges::sort(errors);
    CHECK(errors[errors.size() / 2] < 0.2);
}

TEST_CASE("interpolation: the order of the entries changes nothing") {
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < 20; ++round) {
        CAPTURE(round);
        auto entries = random_entries(rng, 2 + uniform_index(rng, 30), round % 2, round % 3 == 0);
        auto const first = table_of(entries);
        entries = first.entries(); // each kernel once
        interpolation const table(first);
        support::shuffle(entries, rng);
        interpolation const other(table_of(entries));
        for (int i = 0; i < 50; ++i) {
            auto const e = drawn(rng);
            auto const a = asked(table, e), b = asked(other, e);
            REQUIRE(a.has_value() == b.has_value());
            if (a) REQUIRE((a->time == b->time && a->source == b->source));
        }
    }
}

TEST_CASE("interpolation: what the entries leave open is the roofline's, and said so") {
    std::vector<profile_entry> entries;
    for (std::int64_t s = 64; s <= 1024; s *= 4)
        for (std::int64_t const o : {256, 1024}) entries.push_back(entry_at({s, o, 512}, from_seconds(device_seconds({s, o, 512}, 1e-6)), true));
    interpolation const table(table_of(entries));
    auto const source = [&](extents const& e) { return asked(table, e)->source; };
    CHECK(source({128, 256, 512}) == cost_source::interpolated);
    CHECK(source({256, 512, 512}) == cost_source::interpolated);
    CHECK(source({2048, 256, 512}) == cost_source::interpolated); // one doubling beyond
    CHECK(source({1024, 256, 4096}) == cost_source::roofline);
    CHECK(source({65536, 256, 512}) == cost_source::roofline);
    // Another operation of the class has no family here, and a class of others no roofline.
    auto k = kernel_at({64, 64, 64});
    k.op = "matmul";
    auto const other = table("gpu", k, 1e9, 1e6, ops::work_class::matmul);
    REQUIRE(other);
    CHECK(other->source == cost_source::roofline);
    CHECK_FALSE(table("gpu", k, 1e9, 1e6, ops::work_class::softmax));
    CHECK_FALSE(table("tpu", kernel_at({64, 256, 512}), 1e9, 1e6, ops::work_class::matmul));
    k.operands = "x:bf16[s,k] w:bf16[o,k] -> y:bf16[s,o]";
    CHECK_FALSE(table("gpu", k, 1e9, 1e6, ops::work_class::matmul)); // another type
    // Without flops and bytes there is no roofline to say what lies far off.
    for (auto& e : entries) e.flops = e.bytes = std::nullopt;
    interpolation const bare(table_of(entries));
    CHECK(asked(bare, {128, 256, 512})->source == cost_source::interpolated);
    CHECK_FALSE(asked(bare, {65536, 256, 512}));
    // One entry tells no slope.
    CHECK_FALSE(asked(interpolation(table_of({entries.front()})), {128, 256, 512}));
    // Entries of no time tell nothing, and updates tell their work themselves.
    profile zero;
    zero.add(entry_at({1, 1, 1}, picoseconds{0}, true));
    CHECK_FALSE(asked(interpolation(zero), {2, 2, 2}));
    profile updates;
    for (std::int64_t n = 0; n < 6; ++n)
        updates.add({.device = "gpu",
                     .kernel = {"update", ops::pass::update, {{"flops", n << 20}, {"bytes", n << 22}}, ""},
                     .time = picoseconds{1'000'000 + 3'000'000 * n}});
    auto const update = interpolation(updates)("gpu", {"update", ops::pass::update, {{"flops", 40 << 20}, {"bytes", 160 << 20}}, ""}, 40 << 20,
                                               160 << 20, ops::work_class::elementwise);
    REQUIRE(update);
    CHECK(update->source == cost_source::roofline);
    CHECK(to_seconds(update->time) == doctest::Approx(121e-6).epsilon(0.05));
}
