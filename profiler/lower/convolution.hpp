#pragma once
/// Windows: convolutions, transposed convolutions and pooling.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shard.hpp"

namespace parsearch::profiler::detail {

/// A window along one axis of a shard: x of `size` with `padding` in front and `padding_end` behind makes `result` positions.
struct shard_window {
    std::int64_t size = 1, kernel = 1, stride = 1, dilation = 1, padding = 0, padding_end = 0, result = 1;
    [[nodiscard]] std::int64_t span() const noexcept { return dilation * (kernel - 1) + 1; }
};

/// Sets the padding behind: what the last window reaches past the end, or cuts where more than a stride of elements would be left over.
inline void fit_end(shard_window& w) {
    auto const missing = (w.result - 1) * w.stride + w.span() - w.size - w.padding;
    w.padding_end = missing >= 0 || -missing >= w.stride ? missing : 0;
}

/// The window of axis `a`, of kernel `kernel`, whose one term counts the positions. An axis that is not split keeps its whole extent, of a split
/// one the shard has what it touches: its part and the halo.
[[nodiscard]] inline shard_window window_of(shard const& s, ops::axis const& a, std::int64_t kernel) {
    s.expect(a.terms.size() == 1, "a spatial axis is not a window");
    auto const d = a.terms[0].dim;
    shard_window w{.kernel = kernel, .stride = a.terms[0].stride, .result = s.extent(d)};
    s.expect(kernel == 1 ? a.span == 1 : (a.span - 1) % (kernel - 1) == 0, "a window's span is no dilated kernel");
    w.dilation = kernel == 1 ? 1 : (a.span - 1) / (kernel - 1);
    auto const first = a.offset + w.stride * s.box()[d].begin;
    w.padding = std::max<std::int64_t>(0, -first);
    w.size = s.degree(d) == 1 ? a.extent - std::max<std::int64_t>(0, first) : s.touched(a);
    s.expect(w.size > 0, "the shard reads padding alone");
    fit_end(w);
    return w;
}

[[nodiscard]] inline std::int64_t floor_of(std::int64_t a, std::int64_t b) noexcept { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// The window of the convolution of which a transposed one is the data gradient: of `y` (blocks of `stride` results) with positions `x`. The
/// operation tells padding and dilation only as far as they matter for which positions are touched: the least that agree are taken.
[[nodiscard]] inline shard_window transposed_window(shard const& s, ops::axis const& x, ops::axis const& y, std::int64_t kernel) {
    s.expect(x.terms.size() == 1 && y.terms.size() == 1 && x.terms[0].dim == y.terms[0].dim, "a spatial axis is not a transposed window");
    auto const d = x.terms[0].dim;
    shard_window w{.kernel = kernel, .stride = y.terms[0].stride};
    auto const low = x.offset, high = x.offset + x.span - 1;
    auto const agrees = [&](std::int64_t padding, std::int64_t dilation) {
        auto const span = dilation * (kernel - 1) + 1;
        auto const first = floor_of(padding - span, w.stride) + 1, last = floor_of(w.stride - 1 + padding, w.stride);
        return first == low && std::max<std::int64_t>(1, last - first + 1) == high - low + 1;
    };
    auto const most_dilation = kernel == 1 ? 1 : (x.span + 2) * w.stride / (kernel - 1) + 1;
    auto const most_padding = (std::max<std::int64_t>(high, 0) + 1 + x.span) * w.stride;
    std::int64_t whole_padding = -1;
    for (std::int64_t dilation = 1; dilation <= most_dilation && whole_padding < 0; ++dilation)
        for (std::int64_t padding = 0; padding <= most_padding && whole_padding < 0; ++padding)
            if (agrees(padding, dilation)) {
                w.dilation = dilation;
                whole_padding = padding;
            }
    s.expect(whole_padding >= 0, "no padding and dilation touch what the transposed window touches");
    bool const split = s.degree(d) > 1;
    auto const from = split ? ops::axis_interval(x, s.box()) : ops::interval{0, x.extent};
    auto const to = ops::axis_interval(y, s.box());
    s.expect(from.size() > 0 && to.size() > 0, "the shard reads padding alone");
    w.size = to.size();
    w.result = from.size();
    w.padding = whole_padding + to.begin - from.begin * w.stride;
    fit_end(w);
    return w;
}

/// Sets the windows of a launch: `window_along(axis)` for each spatial axis of x, of which there must be one or two. One is the width, as libraries
/// have it.
template <class Launch, class WindowAlong> void set_windows(shard const& s, Launch& l, WindowAlong const& window_along) {
    auto const axes = s.op().inputs[0].axes.size();
    s.expect(axes == 3 || axes == 4, "must have one or two spatial axes");
    for (std::size_t axis = 2; axis < axes; ++axis) {
        shard_window const w = window_along(axis);
        auto const at = axis + 2 - axes;
        l.size[at] = w.size;
        l.stride[at] = w.stride;
        l.padding[at] = w.padding;
        l.padding_end[at] = w.padding_end;
        l.result[at] = w.result;
        if constexpr (requires { l.window; }) {
            l.window[at] = w.kernel;
        } else {
            l.kernel[at] = w.kernel;
            l.dilation[at] = w.dilation;
        }
    }
}

[[nodiscard]] inline convolution convolution_of(shard const& s, bool transposed) {
    auto const& op = s.op();
    auto const* const weight = s.weight("weight");
    s.expect(op.inputs.size() == 1 && op.outputs.size() == 1 && weight, "must have x, weight and y");
    auto const &x = op.inputs[0], &y = op.outputs[0];
    s.expect(y.axes.size() == x.axes.size() && weight->axes.size() == x.axes.size(), "must have the same spatial axes in x, weight and y");
    convolution c{.n = s.extent("s"), .groups = s.extent("g"), .in = s.extent("c"), .out = s.extent("o"), .type = x.type};
    if (transposed) std::swap(c.in, c.out);
    set_windows(s, c, [&](std::size_t axis) {
        auto const kernel = weight->axes[axis].extent;
        return transposed ? transposed_window(s, x.axes[axis], y.axes[axis], kernel) : window_of(s, x.axes[axis], kernel);
    });
    return c;
}

[[nodiscard]] inline launches lower_convolution(shard const& s, bool transposed) {
    auto c = convolution_of(s, transposed);
    auto const& y = s.op().outputs[0];
    auto const* const bias = s.weight("bias");
    launches out;
    if (!s.backward()) {
        c.pass = transposed ? convolution_pass::data_gradient : convolution_pass::forward;
        out.emplace_back(c);
        if (bias)
            append_streaming(out, {{s.elements(y), y.type}, {s.elements(*bias), y.type}}, {{s.elements(y), y.type}},
                             static_cast<double>(s.elements(y)));
        return out;
    }
    if (s.wants(0)) {
        c.pass = transposed ? convolution_pass::forward : convolution_pass::data_gradient;
        out.emplace_back(c);
    }
    c.pass = convolution_pass::filter_gradient;
    out.emplace_back(c);
    if (bias) {
        auto const channels = s.elements(*bias), samples = s.extent("s");
        append_reductions(out, {samples, channels, s.elements(y) / samples / channels}, {false, true, false}, y.type);
    }
    return out;
}

/// The operation does not say whether its windows are dilated, but its flops do: one for each position of a window.
[[nodiscard]] inline launches lower_pooling(shard const& s) {
    auto const& op = s.op();
    auto const &x = op.inputs[0], &y = op.outputs[0];
    s.expect(!op.kind.starts_with("norm_"), "no library has a pooling of norms");
    pooling p{.average = op.kind.starts_with("average_"), .backward = s.backward(), .n = s.extent("s"), .channels = s.extent("c"), .type = x.type};
    set_windows(s, p, [&](std::size_t axis) { return window_of(s, x.axes[axis], x.axes[axis].span); });
    auto const positions = static_cast<double>(p.window[0]) * static_cast<double>(p.window[1]);
    s.expect(op.flops == positions * static_cast<double>(ops::elements_of(y)), "no library has dilated pooling windows");
    if (s.backward() && !s.wants(0)) return {};
    return {p};
}

} // namespace parsearch::profiler::detail
