#pragma once
/// Transposed convolutions in one and two spatial dimensions: what computes the gradient of a convolution's input.

#include <array>

#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/window.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// A floor division by a positive number.
[[nodiscard]] constexpr std::int64_t floor_division(std::int64_t a, std::int64_t b) noexcept { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// Dims as those of a convolution, but that a spatial dim counts blocks of `stride` results: block b is summed of the positions of x whose windows
/// reach it, [b + floor((padding - span) / stride) + 1, b + floor((stride - 1 + padding) / stride)]. `extra` results follow the last window.
[[nodiscard]] inline operation transposed_convolution(std::span<tensor const> inputs, convolution_options const& conv,
                                                      std::span<window const> windows, std::span<std::int64_t const> extra) {
    auto op = convolution_space(inputs, conv, windows.size());
    auto const& x = inputs[0];
    auto const channels = x.extents[1], groups = conv.groups;
    auto const o = static_cast<std::uint32_t>(op.dims.size() - 1);
    auto const first = static_cast<std::uint32_t>(op.dims.size());
    auto const c = first + static_cast<std::uint32_t>(windows.size());
    std::vector<axis> x_spatial, y_spatial, kernel;
    double results = static_cast<double>(x.extents[0]) * static_cast<double>(conv.out),
           products = elements(x) * static_cast<double>(conv.out / groups);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        auto const& w = windows[i];
        auto const name = spatial_name(i, windows.size());
        (void)window_positions(w.span(), w, name); // checks the options
        checked("output_padding", extra[i], 0);
        auto const extent = x.extents[2 + i];
        auto const result = checked_product("the transposed extent", extent, w.stride) - w.stride + w.span() + extra[i] - w.padding - w.behind();
        if (result < 1) throw invalid_input("padding leaves ", result, " results along ", name, ": must leave something");
        auto const d = add_dim(op, std::string(name), (result + w.stride - 1) / w.stride, dim_kind::attribute);
        auto const low = floor_division(w.padding - w.span(), w.stride) + 1, high = floor_division(w.stride - 1 + w.padding, w.stride);
        x_spatial.push_back({.extent = extent, .terms = {{d, 1}}, .offset = low, .span = std::max<std::int64_t>(1, high - low + 1)});
        y_spatial.push_back({.extent = result, .terms = {{d, w.stride}}, .span = w.stride});
        kernel.push_back(whole(w.kernel));
        results *= static_cast<double>(result);
        products *= static_cast<double>(w.kernel);
    }
    add_dim(op, "c", channels / groups, groups > 1 ? dim_kind::fixed : dim_kind::reduction);
    auto const operand_axes = [](axis a, axis b, std::vector<axis> const& rest) {
        std::vector<axis> all{std::move(a), std::move(b)};
        all.insert(all.end(), rest.begin(), rest.end());
        return all;
    };
    op.multiply_adds = products;
    op.flops = 2 * products;
    auto& in = add_input(op, "x", x.type, operand_axes(along(op, 0), channel_axis(op, c, groups), x_spatial));
    in.saved = true;
    in.gradient_flops = op.flops;
    add_weight(op, conv.parameter, "weight", x.type, operand_axes(channel_axis(op, c, groups), along(op, o), kernel), op.flops);
    add_output(op, "y", x.type, operand_axes(along(op, 0), channel_axis(op, o, groups), y_spatial));
    if (conv.bias) {
        add_weight(op, conv.parameter, "bias", x.type, {channel_axis(op, o, groups)}, results);
        op.flops += results;
    }
    return finished(std::move(op));
}
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
