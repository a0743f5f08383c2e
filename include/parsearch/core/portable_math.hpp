#pragma once
/// Arithmetic that gives the same bits on every platform: sums of products without fused operations, logarithms and powers of two of our own.

#include <cmath>
#include <limits>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// `x`, rounded to a double as it stands: a product that goes through here is not fused with a sum around it, which some compilers do
/// where the processor can (-ffp-contract), and which rounds otherwise.
[[nodiscard]] inline double unfused(double x) noexcept {
    double const volatile rounded = x;
    return rounded;
}

/// The logarithm to base 2 of a positive finite number, within 1e-15 of it or of its size, whichever is larger; the C library's differs in last
/// bits between platforms. x = 2^e m with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(z), z = (m - 1) / (m + 1), by its series (M. Abramowitz,
/// I. Stegun, Handbook of Mathematical Functions, 4.1.27): |z| is below 0.1716, so that 11 terms leave less than 1e-18. Not a number for others.
[[nodiscard]] inline double binary_log(double x) noexcept {
    if (!(x > 0) || x > std::numeric_limits<double>::max()) return std::numeric_limits<double>::quiet_NaN();
    int exponent = 0;
    double m = std::frexp(x, &exponent); // exact, in [1/2, 1)
    if (m < 0.70710678118654752) {
        m *= 2;
        --exponent;
    }
    double const z = (m - 1) / (m + 1), square = unfused(z * z);
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) sum = unfused(sum * square) + 1.0 / k;
    constexpr double two_over_ln2 = 2.8853900817779268;
    return static_cast<double>(exponent) + unfused(two_over_ln2 * unfused(z * sum));
}

/// 2^x within 1e-15 of its size, for x in [-1000, 1000] (others are taken as the nearest of these; what is no number stays none): the series of exp(f
/// ln 2), |f| <= 1/2.
[[nodiscard]] inline double binary_exp(double x) noexcept {
    if (x != x) return x;
    double const clamped = x < -1000 ? -1000 : x > 1000 ? 1000 : x;
    auto whole = static_cast<int>(clamped);
    if (clamped - whole > 0.5) ++whole;
    if (clamped - whole < -0.5) --whole;
    constexpr double ln2 = 0.69314718055994531;
    double const y = unfused((clamped - whole) * ln2);
    double sum = 1;
    for (int k = 17; k >= 1; --k) sum = unfused(sum * (y / k)) + 1; // 0.347^18 / 18! is below 1e-24
    return std::ldexp(sum, whole);
}

} // namespace parsearch
