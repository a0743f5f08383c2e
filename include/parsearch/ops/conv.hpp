#pragma once
/// Convolutions in one and two spatial dimensions.

#include <array>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/window.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// What the convolutions have in common beside their windows.
struct convolution_options {
    std::string_view kind;
    std::int64_t out, groups;
    bool bias;
    std::string_view parameter;
};

/// Checks the input, of `spatial` axes beside samples and channels, and adds the first dims: s (number 0) and o, or with groups s, g (1), o.
[[nodiscard]] operation convolution_space(std::span<tensor const> inputs, convolution_options const& conv, std::size_t spatial);

/// A channel axis: the group's number times its channels, plus the channel within the group, which dim `inner` counts.
[[nodiscard]] axis channel_axis(operation const& op, std::uint32_t inner, std::int64_t groups);

/// Dims: s, o (parameter), spatial (attribute), c (reduction). With groups: s, g (parameter), o and c within a group (fixed, so that
/// shards stay contiguous), spatial. Kernel positions are no dims: windows are spans of the input's axes, and flops carry them.
[[nodiscard]] operation convolution(std::span<tensor const> inputs, convolution_options const& conv, std::span<window const> windows);
} // namespace detail

/// Two-dimensional convolution: x[s, c, h, w] -> y[s, out, h', w'].
/// Padding counts at full cost, as is usual. Each gradient costs what forward costs.
struct conv2d {
    static constexpr std::string_view kind = "conv2d";
    std::int64_t out = 0;
    std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1}; ///< along h and w
    std::array<std::int64_t, 2> padding_end{-1, -1};                                       ///< behind; -1: as in front
    std::int64_t groups = 1;
    bool bias = true;
    std::string parameter{};
    /// Input: x of four axes. Weights: weight[out, c / groups, kernel...], bias[out].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 2> windows;
        for (std::size_t i = 0; i < 2; ++i) windows[i] = {kernel[i], stride[i], padding[i], dilation[i], padding_end[i]};
        return detail::convolution(inputs, {kind, out, groups, bias, parameter}, windows);
    }
};

/// One-dimensional convolution: x[s, c, l] -> y[s, out, l'].
struct conv1d {
    static constexpr std::string_view kind = "conv1d";
    std::int64_t out = 0;
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
    std::int64_t padding_end = -1; ///< behind; -1: as in front
    std::int64_t groups = 1;
    bool bias = true;
    std::string parameter{};
    /// Input: x of three axes. Weights: weight[out, c / groups, kernel], bias[out].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 1> const windows{{{kernel, stride, padding, dilation, padding_end}}};
        return detail::convolution(inputs, {kind, out, groups, bias, parameter}, windows);
    }
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/conv.ipp>
#endif
