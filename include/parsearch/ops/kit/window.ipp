#pragma once
// Sliding windows: what convolution and pooling share.

#include <parsearch/ops/kit/window.hpp>

namespace parsearch::ops::kit {

PARSEARCH_INLINE std::int64_t window_positions(std::int64_t extent, window const& w, std::string_view axis_name, bool ceil_mode) {
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

} // namespace parsearch::ops::kit
