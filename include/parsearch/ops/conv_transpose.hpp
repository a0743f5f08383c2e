#pragma once
/// Transposed convolutions in one and two spatial dimensions: what computes the gradient of a convolution's input.

#include <array>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/window.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {

/// Dims as those of a convolution, but that a spatial dim counts blocks of `stride` results: block b is summed of the positions of x whose windows
/// reach it, [b + floor((padding - span) / stride) + 1, b + floor((stride - 1 + padding) / stride)]. `extra` results follow the last window.
[[nodiscard]] operation transposed_convolution(std::span<tensor const> inputs, convolution_options const& conv, std::span<window const> windows,
                                               std::span<std::int64_t const> extra);
} // namespace detail

/// Two-dimensional transposed convolution: x[s, c, h, w] -> y[s, out, h', w'], h' = (h - 1) stride + span + output_padding - paddings.
/// Every product of an element of x counts, also where its result falls into the padding.
struct conv_transpose2d {
    static constexpr std::string_view kind = "conv_transpose2d";
    std::int64_t out = 0;
    std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0}, dilation{1, 1}; ///< along h and w
    std::array<std::int64_t, 2> padding_end{-1, -1};                                       ///< behind; -1: as in front
    std::array<std::int64_t, 2> output_padding{0, 0};
    std::int64_t groups = 1;
    bool bias = true;
    std::string parameter{};
    /// Input: x of four axes. Weights: weight[c, out / groups, kernel...], bias[out].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 2> windows;
        for (std::size_t i = 0; i < 2; ++i) windows[i] = {kernel[i], stride[i], padding[i], dilation[i], padding_end[i]};
        return detail::transposed_convolution(inputs, {kind, out, groups, bias, parameter}, windows, output_padding);
    }
};

/// One-dimensional transposed convolution: x[s, c, l] -> y[s, out, l'].
struct conv_transpose1d {
    static constexpr std::string_view kind = "conv_transpose1d";
    std::int64_t out = 0;
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
    std::int64_t padding_end = -1; ///< behind; -1: as in front
    std::int64_t output_padding = 0;
    std::int64_t groups = 1;
    bool bias = true;
    std::string parameter{};
    /// Input: x of three axes. Weights: weight[c, out / groups, kernel], bias[out].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::array<kit::window, 1> const windows{{{kernel, stride, padding, dilation, padding_end}}};
        std::array<std::int64_t, 1> const extra{output_padding};
        return detail::transposed_convolution(inputs, {kind, out, groups, bias, parameter}, windows, extra);
    }
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/conv_transpose.ipp>
#endif
