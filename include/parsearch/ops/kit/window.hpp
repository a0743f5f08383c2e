#pragma once
/// Sliding windows: what convolution and pooling share.

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] std::int64_t window_positions(std::int64_t extent, window const& w, std::string_view axis_name, bool ceil_mode = false);

/// The axis that the window reads while dim `d` counts its positions.
[[nodiscard]] inline axis window_axis(std::int64_t extent, std::uint32_t d, window const& w) {
    return {.extent = extent, .terms = {{d, w.stride}}, .offset = -w.padding, .span = w.span()};
}

} // namespace parsearch::ops::kit

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/window.ipp>
#endif
