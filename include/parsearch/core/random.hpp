#pragma once
/// Random draws that give the same values on every platform. The standard distributions differ between
/// standard libraries and `exp`/`log` between C libraries; everything here is integer arithmetic on the engine's output.

#include <concepts>
#include <cstdint>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// `std::uniform_random_bit_generator`, without the compile time of `<random>`: every standard engine is a model.
template <class R>
concept RandomBits = requires(R& rng) {
    { rng() } -> std::unsigned_integral;
    { R::min() } -> std::same_as<decltype(rng())>;
    { R::max() } -> std::same_as<decltype(rng())>;
    requires(R::min() < R::max());
};

/// 64 uniform bits from any engine.
template <RandomBits R> [[nodiscard]] std::uint64_t uniform_bits(R& rng) {
    constexpr std::uint64_t span = static_cast<std::uint64_t>(R::max() - R::min());
    if constexpr (span == ~std::uint64_t{0}) {
        return static_cast<std::uint64_t>(rng() - R::min());
    } else {
        // The largest power of two that fits the engine's range: values above it are drawn again.
        constexpr int bits = [] {
            int b = 0;
            while (b < 63 && ((std::uint64_t{1} << (b + 1)) - 1) <= span) ++b;
            return b;
        }();
        static_assert(bits > 0, "the engine yields a single value");
        std::uint64_t out = 0;
        for (int have = 0; have < 64;) {
            auto const draw = static_cast<std::uint64_t>(rng() - R::min());
            if (draw >> bits) continue;
            out = (out << bits) | draw;
            have += bits;
        }
        return out;
    }
}

namespace detail {
/// The double in [0, 1) of the upper 53 of 64 bits. Exact.
[[nodiscard]] constexpr double unit_of(std::uint64_t bits) noexcept { return static_cast<double>(bits >> 11) * 0x1p-53; }
} // namespace detail

/// A uniform double in [0, 1) of 53 random bits: every multiple of 2^-53 is as likely.
template <RandomBits R> [[nodiscard]] double uniform_unit(R& rng) { return detail::unit_of(uniform_bits(rng)); }

/// A uniform integer in [0, n). Precondition: n > 0. Expected draws below 2.
template <RandomBits R> [[nodiscard]] std::uint64_t uniform_index(R& rng, std::uint64_t n) {
    std::uint64_t mask = n - 1;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    for (;;)
        if (std::uint64_t const draw = uniform_bits(rng) & mask; draw < n) return draw;
}

/// A small engine, for whoever needs many: SplitMix64.
/// Source: G. L. Steele, D. Lea, C. H. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
class split_mix {
  public:
    explicit split_mix(std::uint64_t seed) : state_(seed) {}
    static constexpr std::uint64_t min() { return 0; }
    static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }
    std::uint64_t operator()() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

/// True with probability `p` (0 never, 1 always).
template <RandomBits R> [[nodiscard]] bool bernoulli(R& rng, double p) { return uniform_unit(rng) < p; }

/// An exponential variate of mean 1, the same on every platform (-ln u without a logarithm).
/// Source: J. von Neumann, Various techniques used in connection with random digits, 1951:
/// the integer part counts failed rounds; the fraction is the first of a descending run of odd length.
template <RandomBits R> [[nodiscard]] double standard_exponential(R& rng) {
    for (double whole = 0;; whole += 1) {
        std::uint64_t const first = uniform_bits(rng);
        std::uint64_t last = first;
        bool odd = true;
        for (;;) {
            std::uint64_t const next = uniform_bits(rng);
            if (next >= last) break;
            last = next;
            odd = !odd;
        }
        if (odd) return whole + detail::unit_of(first);
    }
}

} // namespace parsearch
