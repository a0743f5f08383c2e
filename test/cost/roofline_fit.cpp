#include <parsearch/cost/roofline_fit.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"
#include "support/shuffle.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {
/// Points of a roofline, each time off by up to `noise` of itself.
std::vector<work_point> points_of(roofline_fit const& f, std::size_t n, double noise, std::mt19937_64& rng) {
    std::vector<work_point> out;
    for (std::size_t i = 0; i < n; ++i) {
        double const flops = std::exp2(20 + 20 * uniform_unit(rng)), bytes = flops / std::exp2(10 * uniform_unit(rng));
        out.push_back({flops, bytes, from_seconds(f.seconds(flops, bytes) * (1 + noise * (2 * uniform_unit(rng) - 1)))});
    }
    return out;
}
} // namespace

TEST_CASE("roofline fit: the points of a roofline give it back, noise and wild points or not") {
    constexpr std::uint64_t seed = 3;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < 60; ++round) {
        CAPTURE(round);
        roofline_fit const truth{1e-12 * (1 + 9 * uniform_unit(rng)), 3e-11 * (1 + 9 * uniform_unit(rng)), 1e-6 * (1 + 9 * uniform_unit(rng))};
        auto points = points_of(truth, 100, round % 2 ? 0.05 : 0, rng);
        if (round % 3 == 0)
            for (std::size_t i = 0; i < 10; ++i) points[i].time *= 5;
        auto const fit = fit_roofline(points);
        std::vector<double> errors;
        for (auto const& p : points_of(truth, 200, 0, rng)) errors.push_back(std::abs(fit.seconds(p.flops, p.bytes) / to_seconds(p.time) - 1));
        std::ranges::sort(errors);
        REQUIRE(errors[100] < 0.05);
        REQUIRE(errors[190] < 0.25);
        // Any order of the points gives the same bits.
        support::shuffle(points, rng);
        REQUIRE(fit_roofline(points) == fit);
    }
}

TEST_CASE("roofline fit: what no point tells") {
    // Memory bounds all of them: arithmetic is as slow as agrees with that, and no slower.
    std::vector<work_point> copies;
    for (int i = 0; i < 8; ++i) copies.push_back({1e3 * (1 << i), 1e6 * (1 << i), std::chrono::microseconds(1 << i)});
    auto const memory = fit_roofline(copies);
    CHECK(memory.seconds(1e3, 1e6) == doctest::Approx(1e-6).epsilon(0.03));
    CHECK(memory.seconds_per_flop * 1e3 <= 1.03e-6);
    // Without flops, without bytes.
    CHECK(fit_roofline(std::vector<work_point>{{0, 1e6, picoseconds{5}}}).seconds_per_flop == 0);
    CHECK(fit_roofline(std::vector<work_point>{{1e6, 0, picoseconds{5}}}).seconds_per_byte == 0);
    CHECK(fit_roofline(std::vector<work_point>{{0, 0, picoseconds{1000}}}).seconds(0, 0) == doctest::Approx(1e-9).epsilon(0.02));
}

TEST_CASE("roofline fit: mistakes are named") {
    auto const refused = [](std::vector<work_point> const& points) { return support::refusal([&] { return fit_roofline(points).overhead; }); };
    CHECK(refused({}) == "fit of a roofline to 0 points: must be at least one");
    CHECK(refused({{1, 1, picoseconds{0}}}) ==
          "fit of a roofline: points[0] has 1 flops and 1 bytes in 0 ps: amounts must be finite and not negative, times positive");
    CHECK(refused({{1, 1, picoseconds{1}}, {-1, 1, picoseconds{1}}}).find("points[1] has -1 flops") != std::string::npos);
    CHECK(refused({{1, std::numeric_limits<double>::infinity(), picoseconds{1}}}).find("inf bytes") != std::string::npos);
}
