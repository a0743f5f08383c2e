#pragma once
/// Convolutions in one and two spatial dimensions.

#include <array>

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
[[nodiscard]] inline operation convolution_space(std::span<tensor const> inputs, convolution_options const& conv, std::size_t spatial) {
    expect_inputs(inputs, 1);
    expect_rank(inputs, 0, 2 + spatial);
    expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const channels = x.extents[1], groups = checked("groups", conv.groups);
    checked("out", conv.out);
    if (channels % groups || conv.out % groups)
        throw invalid_input(shown(inputs, 0), ": option groups is ", groups, ": must divide the channels (", channels, ") and option out (", conv.out,
                            ")");
    operation op{.kind = std::string(conv.kind), .work = work_class::convolution};
    add_dim(op, "s", x.extents[0], dim_kind::sample);
    if (groups > 1) add_dim(op, "g", groups, dim_kind::parameter);
    add_dim(op, "o", conv.out / groups, groups > 1 ? dim_kind::fixed : dim_kind::parameter);
    return op;
}

/// A channel axis: the group's number times its channels, plus the channel within the group, which dim `inner` counts.
[[nodiscard]] inline axis channel_axis(operation const& op, std::uint32_t inner, std::int64_t groups) {
    auto a = along(op, inner);
    if (groups > 1) {
        a.terms.insert(a.terms.begin(), term{1, a.extent});
        a.extent *= groups;
    }
    return a;
}

/// Dims: s, o (parameter), spatial (attribute), c (reduction). With groups: s, g (parameter), o and c within a group (fixed, so that
/// shards stay contiguous), spatial. Kernel positions are no dims: windows are spans of the input's axes, and flops carry them.
[[nodiscard]] inline operation convolution(std::span<tensor const> inputs, convolution_options const& conv, std::span<window const> windows) {
    auto op = convolution_space(inputs, conv, windows.size());
    auto const& x = inputs[0];
    auto const channels = x.extents[1], groups = conv.groups;
    auto const o = static_cast<std::uint32_t>(op.dims.size() - 1);
    double positions = static_cast<double>(x.extents[0]), per_output = static_cast<double>(channels / groups);
    auto const first = static_cast<std::uint32_t>(op.dims.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
        auto const name = spatial_name(i, windows.size());
        auto const n = window_positions(x.extents[2 + i], windows[i], name);
        add_dim(op, std::string(name), n, dim_kind::attribute);
        positions *= static_cast<double>(n);
        per_output *= static_cast<double>(windows[i].kernel);
    }
    auto const c = add_dim(op, "c", channels / groups, groups > 1 ? dim_kind::fixed : dim_kind::reduction);
    std::vector<axis> x_axes{along(op, 0), channel_axis(op, c, groups)}, y_axes{along(op, 0), channel_axis(op, o, groups)};
    std::vector<axis> w_axes{channel_axis(op, o, groups), along(op, c)};
    for (std::uint32_t i = 0; i < windows.size(); ++i) {
        x_axes.push_back(window_axis(x.extents[2 + i], first + i, windows[i]));
        y_axes.push_back(along(op, first + i));
        w_axes.push_back(whole(windows[i].kernel));
    }
    double const outputs = positions * static_cast<double>(conv.out);
    op.multiply_adds = outputs * per_output;
    op.flops = 2 * op.multiply_adds;
    auto& in = add_input(op, "x", x.type, std::move(x_axes));
    in.saved = true;
    in.gradient_flops = op.flops;
    add_weight(op, conv.parameter, "weight", x.type, std::move(w_axes), op.flops);
    add_output(op, "y", x.type, std::move(y_axes));
    if (conv.bias) {
        add_weight(op, conv.parameter, "bias", x.type, {channel_axis(op, o, groups)}, outputs);
        op.flops += outputs;
    }
    return finished(std::move(op));
}
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
