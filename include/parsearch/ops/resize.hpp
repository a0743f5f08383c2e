#pragma once
/// Interpolation to other extents.

#include <array>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class interpolation : std::uint8_t { nearest, linear, cubic };
[[nodiscard]] constexpr std::string_view name_of(interpolation i) noexcept {
    constexpr std::array<std::string_view, 3> names{"nearest", "linear", "cubic"};
    return names[static_cast<std::size_t>(i)];
}

/// x of any extents, interpolated to those of `shape`. An axis whose extent changes has one dim, the largest common divisor of both extents: a part
/// of the result is interpolated from the same part of x, with a halo of one element for `linear` and two for `cubic`.
/// The operation's kind names the mode: "resize_linear".
struct resize {
    static constexpr std::string_view kind = "resize";
    std::vector<std::int64_t> shape{};
    interpolation mode = interpolation::nearest;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/resize.ipp>
#endif
