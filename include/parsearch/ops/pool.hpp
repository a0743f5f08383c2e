#pragma once
/// Pooling: windows in one and two spatial dimensions, and global.

#include <array>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/window.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/reduce.hpp>

namespace parsearch::ops {

enum class pool_mode : std::uint8_t { max, average, norm }; ///< norm: the root of the sum of squares, or another power
[[nodiscard]] constexpr std::string_view name_of(pool_mode m) noexcept {
    return m == pool_mode::max ? "max" : m == pool_mode::average ? "average" : "norm";
}

namespace detail {
/// Dims: s, then c and the spatial axes as attributes (FlexFlow, table 1: a pooling's channel splits no weights).
[[nodiscard]] operation pooling(std::span<tensor const> inputs, std::string_view kind, pool_mode mode, bool ceil_mode,
                                std::span<window const> windows);
} // namespace detail

/// Two-dimensional pooling: x[s, c, h, w] -> y[s, c, h', w']. A maximum keeps the index of each output's origin for backward.
/// The operation's kind names the mode: "max_pool2d".
struct pool2d {
    static constexpr std::string_view kind = "pool2d";
    pool_mode mode = pool_mode::max;
    std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1}; ///< along h and w
    std::array<std::int64_t, 2> padding_end{-1, -1};                                       ///< behind; -1: as in front
    bool ceil_mode = false;                                                                ///< round the number of positions up
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 2> windows;
        for (std::size_t i = 0; i < 2; ++i) windows[i] = {kernel[i], stride[i], padding[i], dilation[i], padding_end[i]};
        return detail::pooling(inputs, kind, mode, ceil_mode, windows);
    }
};

/// One-dimensional pooling: x[s, c, l] -> y[s, c, l'].
struct pool1d {
    static constexpr std::string_view kind = "pool1d";
    pool_mode mode = pool_mode::max;
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
    std::int64_t padding_end = -1; ///< behind; -1: as in front
    bool ceil_mode = false;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 1> const windows{{{kernel, stride, padding, dilation, padding_end}}};
        return detail::pooling(inputs, kind, mode, ceil_mode, windows);
    }
};

/// Pooling over all of each spatial axis: x[s, c, h, w] -> y[s, c, 1, 1] (likewise with one spatial axis, or more than two).
/// A reduction over these axes, which are reduction dims.
struct global_pool {
    static constexpr std::string_view kind = "global_pool";
    pool_mode mode = pool_mode::average;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/pool.ipp>
#endif
