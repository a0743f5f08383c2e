#pragma once
// Convolutions in one and two spatial dimensions.

#include <parsearch/ops/conv.hpp>

namespace parsearch::ops::detail {

PARSEARCH_INLINE operation convolution_space(std::span<tensor const> inputs, convolution_options const& conv, std::size_t spatial) {
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

PARSEARCH_INLINE axis channel_axis(operation const& op, std::uint32_t inner, std::int64_t groups) {
    auto a = along(op, inner);
    if (groups > 1) {
        a.terms.insert(a.terms.begin(), term{1, a.extent});
        a.extent *= groups;
    }
    return a;
}

PARSEARCH_INLINE operation convolution(std::span<tensor const> inputs, convolution_options const& conv, std::span<window const> windows) {
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

} // namespace parsearch::ops::detail
