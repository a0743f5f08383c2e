#pragma once
/// Units: integer picoseconds, bytes, floating point operations, bandwidth.

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

#include <parsearch/core/error.hpp>

namespace parsearch {

/// Simulated time. Integer, so that "equal" means equal; 64 bits of picoseconds hold 106 days.
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// A number of bytes.
using byte_count = std::int64_t;

/// A number of floating point operations (a multiply-add is two). Double: exact below 2^53, and
/// a training step of the largest models does not overflow.
using flop_count = double;

/// Throughput of a link or a memory, in bytes per second.
struct bandwidth {
    double bytes_per_second = 0;
    friend constexpr auto operator<=>(bandwidth const&, bandwidth const&) = default;
};

/// Seconds to picoseconds, rounded to nearest, half up. Throws `invalid_input` on a negative or non-finite value or one past 64 bits.
[[nodiscard]] inline picoseconds from_seconds(double seconds) {
    double const volatile product = seconds * 1e12; // volatile: not fused with the addition below, which would round differently
    double const ps = product;
    if (!(ps >= 0) || ps >= 9.2e18) throw invalid_input("time of ", seconds, " s: must be finite, not negative and below 9.2e6 s");
    auto const whole = static_cast<std::int64_t>(ps);
    return picoseconds{whole + (ps - static_cast<double>(whole) >= 0.5)}; // ps + 0.5 would itself be rounded
}

/// Picoseconds to seconds.
[[nodiscard]] constexpr double to_seconds(picoseconds t) noexcept { return static_cast<double>(t.count()) * 1e-12; }

/// Time that `bytes` take at `rate`. Throws `invalid_input` where `rate` is not positive.
[[nodiscard]] inline picoseconds time_of(byte_count bytes, bandwidth rate) {
    if (!(rate.bytes_per_second > 0)) throw invalid_input("bandwidth of ", rate.bytes_per_second, " B/s: must be positive");
    return from_seconds(static_cast<double>(bytes) / rate.bytes_per_second);
}

/// User-defined literals: `100_Gbps` (bits), `32_GBps` (bytes), `16_GiB`, `19.5_TFLOPS`. Times: those of `<chrono>`.
namespace literals {
[[nodiscard]] constexpr bandwidth operator""_Gbps(unsigned long long v) noexcept { return {static_cast<double>(v) * 1e9 / 8}; }
[[nodiscard]] constexpr bandwidth operator""_Gbps(long double v) noexcept { return {static_cast<double>(v) * 1e9 / 8}; }
[[nodiscard]] constexpr bandwidth operator""_GBps(unsigned long long v) noexcept { return {static_cast<double>(v) * 1e9}; }
[[nodiscard]] constexpr bandwidth operator""_GBps(long double v) noexcept { return {static_cast<double>(v) * 1e9}; }
[[nodiscard]] constexpr byte_count operator""_KiB(unsigned long long v) noexcept { return static_cast<byte_count>(v) << 10; }
[[nodiscard]] constexpr byte_count operator""_MiB(unsigned long long v) noexcept { return static_cast<byte_count>(v) << 20; }
[[nodiscard]] constexpr byte_count operator""_GiB(unsigned long long v) noexcept { return static_cast<byte_count>(v) << 30; }
[[nodiscard]] constexpr double operator""_TFLOPS(unsigned long long v) noexcept { return static_cast<double>(v) * 1e12; }
[[nodiscard]] constexpr double operator""_TFLOPS(long double v) noexcept { return static_cast<double>(v) * 1e12; }
} // namespace literals

/// The sum of two times that are not negative, at most the largest value.
[[nodiscard]] constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) noexcept {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    return b > most - a ? most : a + b;
}

} // namespace parsearch
