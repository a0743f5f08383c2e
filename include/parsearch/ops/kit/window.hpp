#pragma once
/// Sliding windows: what convolution and pooling share.

#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops::kit {

/// A window that slides along one axis.
struct window {
    std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
    std::int64_t padding_end = -1; ///< behind the axis; -1: as in front
    [[nodiscard]] std::int64_t behind() const noexcept { return padding_end < 0 ? padding : padding_end; }
    [[nodiscard]] std::int64_t span() const noexcept { return dilation * (kernel - 1) + 1; }
};

/// The name of spatial axis `i` of `count`: l, or h and w.
[[nodiscard]] inline std::string_view spatial_name(std::size_t i, std::size_t count) noexcept { return count == 1 ? "l" : i == 0 ? "h" : "w"; }

/// The number of positions of the window on an axis of `extent`: floor((extent + paddings - span) / stride) + 1. `ceil_mode` rounds
/// up instead, but no window starts in the padding behind (as PyTorch does). Throws `invalid_input` where an option is out of range or the
/// window is longer than the padded axis.
[[nodiscard]] inline std::int64_t window_positions(std::int64_t extent, window const& w, std::string_view axis_name, bool ceil_mode = false) {
    checked("kernel", w.kernel);
    checked("stride", w.stride);
    checked("padding", w.padding, 0);
    checked("padding_end", w.padding_end, -1);
    checked("dilation", w.dilation);
    std::int64_t const padded = extent + w.padding + w.behind();
    if (static_cast<double>(w.dilation) * static_cast<double>(w.kernel - 1) + 1 > static_cast<double>(padded))
        throw invalid_input("window of kernel ", w.kernel, " and dilation ", w.dilation, " along ", axis_name, ": must fit the padded extent ",
                            padded);
    std::int64_t const room = padded - w.span();
    if (!ceil_mode) return room / w.stride + 1;
    std::int64_t const positions = (room + w.stride - 1) / w.stride + 1;
    return (positions - 1) * w.stride >= extent + w.padding ? positions - 1 : positions;
}

/// The axis that the window reads while dim `d` counts its positions.
[[nodiscard]] inline axis window_axis(std::int64_t extent, std::uint32_t d, window const& w) {
    return {.extent = extent, .terms = {{d, w.stride}}, .offset = -w.padding, .span = w.span()};
}

} // namespace parsearch::ops::kit
