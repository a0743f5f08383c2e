#pragma once
/// Small tensors of integers modulo a prime: what rewrites are checked on. Identities of sums and products hold exactly in the field, and a
/// false one holds at a random point with a probability of about degree / modulus (Schwartz, JACM 1980; Zippel, EUROSAM 1979).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::rewrite::reference {

/// The field: integers modulo 2^31 - 1, written as those of least magnitude, so that "positive" makes sense to relu and maxima.
inline constexpr std::int64_t modulus = 2147483647;

[[nodiscard]] constexpr std::int64_t residue(std::int64_t v) noexcept {
    v %= modulus;
    if (v > modulus / 2) v -= modulus;
    if (v < -(modulus / 2)) v += modulus;
    return v;
}
[[nodiscard]] constexpr std::int64_t sum(std::int64_t a, std::int64_t b) noexcept { return residue(a + b); }
[[nodiscard]] constexpr std::int64_t product(std::int64_t a, std::int64_t b) noexcept { return residue(a * b); }
/// 1 / v, by Fermat's little theorem. 0 where v is 0.
[[nodiscard]] constexpr std::int64_t inverse(std::int64_t v) noexcept {
    std::int64_t power = 1, base = residue(v);
    for (auto n = modulus - 2; n; n /= 2) {
        if (n % 2) power = product(power, base);
        base = product(base, base);
    }
    return power;
}

/// A tensor: extents, and residues in row-major order.
struct array {
    std::vector<std::int64_t> extents{};
    std::vector<std::int64_t> values{};
    friend bool operator==(array const&, array const&) = default;
};

/// The most elements of an array, and points of an iteration space, that are computed with: references are for small sizes.
inline constexpr double most_points = 1e9;

/// An array of one value. Throws `invalid_input` on an extent below 1 and on more than `most_points` elements.
[[nodiscard]] array filled(std::vector<std::int64_t> extents, std::int64_t value = 0);
[[nodiscard]] inline array zeros_of(ops::operand const& o) { return filled(ops::tensor_of(o).extents); }

/// Uniform residues.
template <RandomBits R> [[nodiscard]] array random_array(std::vector<std::int64_t> extents, R& rng) {
    auto a = filled(std::move(extents));
    for (auto& v : a.values) v = residue(static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(modulus))));
    return a;
}

namespace detail {
/// Elements in front of axis `axis`, and behind it.
struct stretch {
    std::size_t outer = 1, inner = 1;
};
[[nodiscard]] stretch around(array const& a, std::size_t axis);
} // namespace detail

/// The positions [begin, begin + size) of `axis`; what lies outside the array is zero.
[[nodiscard]] array part(array const& a, std::size_t axis, std::int64_t begin, std::int64_t size);

/// Arrays joined along `axis`. Throws `invalid_input` where there is none, or other extents differ.
[[nodiscard]] array joined(std::span<array const> parts, std::size_t axis);

/// A function of residues that is nobody's: it stands for gelu, tanh, ... where only what holds for every function may hold. `name` picks it.
/// Every name has a derivative of its own, as unrelated to it.
[[nodiscard]] std::int64_t unknown(std::string_view name, std::int64_t v, bool derivative = false) noexcept;

} // namespace parsearch::rewrite::reference

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/reference/array.ipp>
#endif
