#include <parsearch/core/portable_math.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;

TEST_CASE("binary_log: exact at powers of two, near the C library's elsewhere, growing") {
    for (int e = -1074; e < 1024; ++e) CHECK(binary_log(std::ldexp(1.0, e)) == e);
    constexpr std::uint64_t seed = 5;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int i = 0; i < 20000; ++i) {
        double const x = std::ldexp(1 + uniform_unit(rng), static_cast<int>(uniform_index(rng, 2000)) - 1000);
        double const exact = std::log2(x);
        REQUIRE(std::abs(binary_log(x) - exact) <= 1e-14 * std::max(1.0, std::abs(exact)));
        REQUIRE(std::abs(binary_exp(exact) / x - 1) <= 1e-12);
        REQUIRE(binary_log(std::nextafter(x, 1e308)) >= binary_log(x) - 4e-16 * std::abs(exact));
    }
    // The same bits everywhere.
    CHECK(std::bit_cast<std::uint64_t>(binary_log(3)) == std::bit_cast<std::uint64_t>(1.5849625007211563));
    for (double const bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
        CHECK(std::isnan(binary_log(bad)));
}

TEST_CASE("binary_exp: exact at integers, near the C library's elsewhere, clamped") {
    for (int e = -1000; e <= 1000; ++e) CHECK(binary_exp(e) == std::ldexp(1.0, e));
    for (double x = -999.9; x < 1000; x += 0.0371) REQUIRE(std::abs(binary_exp(x) / std::exp2(x) - 1) <= 1e-14);
    CHECK(binary_exp(1e9) == std::ldexp(1.0, 1000));
    CHECK(std::isnan(binary_exp(std::numeric_limits<double>::quiet_NaN())));
    CHECK(binary_exp(-1e9) == std::ldexp(1.0, -1000));
}
