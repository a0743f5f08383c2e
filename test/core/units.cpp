#include <parsearch/core/units.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::literals;

namespace {
std::string refusal_of(double seconds) {
    try {
        (void)from_seconds(seconds);
    } catch (invalid_input const& e) {
        return e.what();
    }
    return "";
}
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
} // namespace

TEST_CASE("units: picoseconds hold every coarser duration exactly") {
    static_assert(std::is_convertible_v<std::chrono::nanoseconds, picoseconds>);
    static_assert(!std::is_convertible_v<double, picoseconds>);
    static_assert(!std::is_convertible_v<std::chrono::duration<double>, std::chrono::nanoseconds>);
    CHECK(picoseconds(std::chrono::hours(24 * 106)).count() == std::int64_t{24} * 106 * 3600 * 1'000'000'000'000);
}

TEST_CASE("units: from_seconds rounds to nearest, half up") {
    CHECK(from_seconds(0).count() == 0);
    CHECK(from_seconds(-0.0).count() == 0);
    CHECK(from_seconds(1).count() == 1'000'000'000'000);
    CHECK(from_seconds(1e-12).count() == 1);
    CHECK(from_seconds(0.5e-12).count() == 1);
    CHECK(from_seconds(0.49e-12).count() == 0);
    CHECK(from_seconds(1.49e-12).count() == 1);
    CHECK(from_seconds(2.5e-12).count() == 3);
    CHECK(from_seconds(1e-300).count() == 0);
}

TEST_CASE("units: from_seconds is exact where doubles hold no halves") {
    // Above 2^52 ps every double is whole; the nearest number of picoseconds is the product itself.
    for (double const seconds : {4503.599627370497, 5000.000000000001, 8000.000000000003, 9007.199254740991, 1e6}) {
        double const product = seconds * 1e12;
        REQUIRE(product >= 0x1p52);
        CHECK(from_seconds(seconds).count() == static_cast<std::int64_t>(product));
    }
}

TEST_CASE("units: from_seconds refuses what 64 bits of picoseconds do not hold") {
    CHECK(from_seconds(9.19e6).count() == 9'190'000'000'000'000'000);
    for (double const wrong : {9.2e6, 1e300, infinite, -1.0, -1e-12, -infinite, not_a_number})
        CHECK_THROWS_AS((void)from_seconds(wrong), invalid_input);
    CHECK(refusal_of(-2).find("time of -2") == 0);
    CHECK(refusal_of(-2).find("must be finite, not negative and below 9.2e6 s") != std::string::npos);
}

TEST_CASE("units: to_seconds undoes from_seconds") {
    CHECK(to_seconds(picoseconds{0}) == 0);
    CHECK(to_seconds(std::chrono::milliseconds(3)) == doctest::Approx(3e-3).epsilon(1e-15));
    for (double const seconds : {1e-9, 0.125, 17.25, 86400.0}) CHECK(to_seconds(from_seconds(seconds)) == doctest::Approx(seconds).epsilon(1e-12));
}

TEST_CASE("units: time_of") {
    CHECK(time_of(0, {1}).count() == 0);
    CHECK(time_of(1, {1e12}).count() == 1);
    CHECK(time_of(1'000'000, 1_GBps) == std::chrono::milliseconds(1));
    CHECK(time_of(3, {2e12}).count() == 2); // 1.5 ps
    CHECK(time_of(1, {infinite}).count() == 0);
    CHECK_THROWS_WITH_AS((void)time_of(1, {0}), doctest::Contains("B/s: must be positive"), invalid_input);
    CHECK_THROWS_WITH_AS((void)time_of(1, {-5}), doctest::Contains("bandwidth of -5"), invalid_input);
    CHECK_THROWS_AS((void)time_of(1, {not_a_number}), invalid_input);
    CHECK_THROWS_AS((void)time_of(-1, {1}), invalid_input);
    CHECK_THROWS_AS((void)time_of(std::numeric_limits<byte_count>::max(), {1}), invalid_input);
}

TEST_CASE("units: literals") {
    static_assert(100_Gbps == bandwidth{12.5e9});
    static_assert(2.5_Gbps == bandwidth{0.3125e9});
    static_assert(32_GBps == bandwidth{32e9});
    static_assert(1.5_GBps == bandwidth{1.5e9});
    static_assert(3_KiB == 3072);
    static_assert(2_MiB == 2 << 20);
    static_assert(80_GiB == byte_count{80} << 30);
    static_assert(312_TFLOPS == 312e12);
    static_assert(19.5_TFLOPS == 19.5e12);
    CHECK(8_Gbps == 1_GBps);
}

TEST_CASE("units: bandwidths are ordered") {
    CHECK(10_Gbps < 2_GBps);
    CHECK(bandwidth{} == bandwidth{0});
}
