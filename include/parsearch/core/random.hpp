#pragma once
/// Random draws that give the same values on every platform. The standard distributions differ between
/// standard libraries and `exp`/`log` between C libraries; everything here is integer arithmetic on the engine's output.

#include <concepts>
#include <cstdint>

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

/// A uniform integer in [0, n). Precondition: n > 0. Expected draws below 2.
template <RandomBits R> [[nodiscard]] std::uint64_t uniform_index(R& rng, std::uint64_t n) {
    std::uint64_t mask = n - 1;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    for (;;)
        if (std::uint64_t const draw = uniform_bits(rng) & mask; draw < n) return draw;
}

/// True with probability `p` (0 never, 1 always).
template <RandomBits R> [[nodiscard]] bool bernoulli(R& rng, double p) {
    return static_cast<double>(uniform_bits(rng) >> 11) * 0x1p-53 < p;
}

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
        if (odd) return whole + static_cast<double>(first >> 11) * 0x1p-53;
    }
}

} // namespace parsearch
