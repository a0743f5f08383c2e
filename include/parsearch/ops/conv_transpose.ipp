#pragma once
// Transposed convolutions in one and two spatial dimensions: what computes the gradient of a convolution's input.

#include <parsearch/ops/conv_transpose.hpp>

namespace parsearch::ops::detail {

/// A floor division by a positive number.
[[nodiscard]] constexpr std::int64_t floor_division(std::int64_t a, std::int64_t b) noexcept { return a >= 0 ? a / b : -((b - 1 - a) / b); }

} // namespace parsearch::ops::detail

namespace parsearch::ops::detail {

PARSEARCH_INLINE operation transposed_convolution(std::span<tensor const> inputs, convolution_options const& conv, std::span<window const> windows,
                                                  std::span<std::int64_t const> extra) {
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

} // namespace parsearch::ops::detail
