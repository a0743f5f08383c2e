#pragma once
/// Translators of convolutions and pooling.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/conv_transpose.hpp>
#include <parsearch/ops/pool.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// The list that attribute `name` gives for the spatial axes; `otherwise` each where there is none.
inline std::vector<std::int64_t> spatial(translation const& t, std::string_view name, std::size_t count, std::int64_t otherwise, std::int64_t least) {
    auto list = t.attribute(name, std::vector<std::int64_t>(count, otherwise));
    if (list.size() != count) throw invalid_input("attribute ", name, " has ", list.size(), " numbers: must have ", count);
    for (auto const v : list)
        if (v < least || v > ops::kit::largest_extent)
            throw invalid_input("attribute ", name, " holds ", v, ": must be between ", least, " and 2^40");
    return list;
}

/// What ONNX says of a window along each spatial axis of `x`.
struct windows {
    std::vector<std::int64_t> kernel, stride, dilation, begin, end;
    [[nodiscard]] std::size_t count() const noexcept { return kernel.size(); }
    [[nodiscard]] std::int64_t span(std::size_t i) const noexcept { return dilation[i] * (kernel[i] - 1) + 1; }
    [[nodiscard]] std::array<std::int64_t, 2> pair(std::vector<std::int64_t> const& v) const { return {v[0], v[1]}; }
};

/// Kernel `kernel`, and the attributes strides, dilations, pads, auto_pad of the node.
inline windows read_windows(translation const& t, std::vector<std::int64_t> kernel, std::vector<std::int64_t> const& x) {
    auto const n = kernel.size();
    if (x.size() != n + 2) throw invalid_input("input 0 has ", x.size(), " axes and the kernel ", n, ": must be two more");
    if (n != 1 && n != 2) throw invalid_input("has ", n, " spatial axes: one or two are supported");
    windows w{
        .kernel = std::move(kernel), .stride = spatial(t, "strides", n, 1, 1), .dilation = spatial(t, "dilations", n, 1, 1), .begin = {}, .end = {}};
    auto const pads = spatial(t, "pads", 2 * n, 0, 0);
    w.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
    w.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
    for (std::size_t i = 0; i < n; ++i)
        if (w.kernel[i] < 1 || static_cast<double>(w.dilation[i]) * static_cast<double>(w.kernel[i]) > static_cast<double>(ops::kit::largest_extent))
            throw invalid_input("has a kernel of ", w.kernel[i], " and dilation ", w.dilation[i], ": must span between 1 and 2^40");
    auto const padding = t.word("auto_pad", "NOTSET");
    if (padding == "NOTSET") return w;
    if (padding != "SAME_UPPER" && padding != "SAME_LOWER" && padding != "VALID")
        throw invalid_input("attribute auto_pad is '", padding, "': must be NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    for (std::size_t i = 0; i < n; ++i) {
        auto const positions = (x[2 + i] - 1) / w.stride[i] + 1;
        auto const all = padding == "VALID" ? 0 : std::max<std::int64_t>(0, (positions - 1) * w.stride[i] + w.span(i) - x[2 + i]);
        w.begin[i] = padding == "SAME_LOWER" ? all - all / 2 : all / 2;
        w.end[i] = all - w.begin[i];
    }
    return w;
}

/// Rounding the number of positions up is padding behind. Where the last window would then begin in the padding, versions of the
/// definition differ: the one that the network's shape agrees with counts, and where that is not known, such a window is dropped.
inline void round_up(translation const& t, windows& w, std::vector<std::int64_t> const& x) {
    auto const* const wanted = t.known_output(0);
    for (std::size_t i = 0; i < w.count(); ++i) {
        auto const room = x[2 + i] + w.begin[i] + w.end[i] - w.span(i);
        if (room < 0) continue; // refused by the operator
        auto n = (room + w.stride[i] - 1) / w.stride[i] + 1;
        bool const outside = (n - 1) * w.stride[i] >= x[2 + i] + w.begin[i];
        if (outside && !(wanted && wanted->extents.size() == x.size() && wanted->extents[2 + i] == n)) --n;
        w.end[i] = std::max(w.end[i], (n - 1) * w.stride[i] + w.span(i) - x[2 + i] - w.begin[i]);
    }
}

inline void translate_conv(translation& t) {
    auto const& x = t.extents(0);
    auto const& weight = t.extents(1);
    if (weight.size() < 3) throw invalid_input("weight has shape ", ops::to_string(t.shape(1)), ": must have at least three axes");
    std::vector<std::int64_t> const kernel(weight.begin() + 2, weight.end());
    if (t.has("kernel_shape") && t.attribute("kernel_shape", kernel) != kernel)
        throw invalid_input("attribute kernel_shape differs from the weight of shape ", ops::to_string(t.shape(1)));
    auto const w = read_windows(t, kernel, x);
    std::vector<argument> weights{t.input(1)};
    if (t.has_input(2)) weights.push_back(t.input(2));
    auto const out = weight[0], groups = t.integer("group", 1);
    if (groups < 1 || x[1] % groups || x[1] / groups != weight[1])
        throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), " in ", groups,
                            " groups: must have the channels of the weight of shape ", ops::to_string(t.shape(1)));
    if (w.count() == 1)
        t.emit(ops::conv1d{.out = out,
                           .kernel = w.kernel[0],
                           .stride = w.stride[0],
                           .padding = w.begin[0],
                           .dilation = w.dilation[0],
                           .padding_end = w.end[0],
                           .groups = groups,
                           .bias = t.has_input(2)},
               {t.input(0)}, weights);
    else
        t.emit(ops::conv2d{.out = out,
                           .kernel = w.pair(w.kernel),
                           .stride = w.pair(w.stride),
                           .padding = w.pair(w.begin),
                           .dilation = w.pair(w.dilation),
                           .padding_end = w.pair(w.end),
                           .groups = groups,
                           .bias = t.has_input(2)},
               {t.input(0)}, weights);
}

/// Padding is given, or follows from the extents of the output: explicitly, or as input times stride (auto_pad SAME_...).
inline void translate_conv_transpose(translation& t) {
    auto const& x = t.extents(0);
    auto const& weight = t.extents(1);
    if (weight.size() < 3) throw invalid_input("weight has shape ", ops::to_string(t.shape(1)), ": must have at least three axes");
    auto w = read_windows(t, {weight.begin() + 2, weight.end()}, x);
    auto const n = w.count();
    auto extra = spatial(t, "output_padding", n, 0, 0);
    auto const padding = t.word("auto_pad", "NOTSET");
    bool const same = padding == "SAME_UPPER" || padding == "SAME_LOWER";
    auto const shape = t.integers("output_shape");
    if (shape && shape->size() != n) throw invalid_input("attribute output_shape has ", shape->size(), " extents: must have one per spatial axis");
    for (std::size_t i = 0; i < n && (shape || same); ++i) {
        auto const wanted = shape ? ops::kit::checked("output_shape", (*shape)[i]) : ops::kit::checked_product("the output", x[2 + i], w.stride[i]);
        auto const all = ops::kit::checked_product("the output", x[2 + i], w.stride[i]) - w.stride[i] + extra[i] + w.span(i) - wanted;
        if (all < 0) { // more than the windows reach
            extra[i] -= all;
            w.begin[i] = w.end[i] = 0;
            continue;
        }
        w.begin[i] = padding == "SAME_UPPER" ? all / 2 : all - all / 2;
        w.end[i] = all - w.begin[i];
    }
    auto const groups = t.integer("group", 1);
    if (weight[0] != x[1])
        throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), ": must have the channels of the weight of shape ",
                            ops::to_string(t.shape(1)));
    auto const out = ops::kit::checked_product("the channels", weight[1], ops::kit::checked("group", groups));
    std::vector<argument> weights{t.input(1)};
    if (t.has_input(2)) weights.push_back(t.input(2));
    if (n == 1)
        t.emit(ops::conv_transpose1d{.out = out,
                                     .kernel = w.kernel[0],
                                     .stride = w.stride[0],
                                     .padding = w.begin[0],
                                     .dilation = w.dilation[0],
                                     .padding_end = w.end[0],
                                     .output_padding = extra[0],
                                     .groups = groups,
                                     .bias = t.has_input(2)},
               {t.input(0)}, weights);
    else
        t.emit(ops::conv_transpose2d{.out = out,
                                     .kernel = w.pair(w.kernel),
                                     .stride = w.pair(w.stride),
                                     .padding = w.pair(w.begin),
                                     .dilation = w.pair(w.dilation),
                                     .padding_end = w.pair(w.end),
                                     .output_padding = w.pair(extra),
                                     .groups = groups,
                                     .bias = t.has_input(2)},
               {t.input(0)}, weights);
}

inline void translate_pool(translation& t, ops::pool_mode mode) {
    auto const& x = t.extents(0);
    if (!t.has("kernel_shape")) throw invalid_input("attribute kernel_shape is missing: must give the window");
    auto w = read_windows(t, t.attribute("kernel_shape", std::vector<std::int64_t>{}), x);
    if (t.integer("ceil_mode", 0)) round_up(t, w, x);
    if (w.count() == 1)
        t.emit(ops::pool1d{.mode = mode,
                           .kernel = w.kernel[0],
                           .stride = w.stride[0],
                           .padding = w.begin[0],
                           .dilation = w.dilation[0],
                           .padding_end = w.end[0]},
               t.input(0));
    else
        t.emit(ops::pool2d{.mode = mode,
                           .kernel = w.pair(w.kernel),
                           .stride = w.pair(w.stride),
                           .padding = w.pair(w.begin),
                           .dilation = w.pair(w.dilation),
                           .padding_end = w.pair(w.end)},
               t.input(0));
}
} // namespace detail

/// Conv, ConvTranspose, MaxPool, AveragePool, LpPool, and the global poolings.
inline void add_windows(operators& known) {
    known.add("", "Conv", detail::translate_conv);
    known.add("", "ConvTranspose", detail::translate_conv_transpose);
    known.add("", "MaxPool", [](translation& t) { detail::translate_pool(t, ops::pool_mode::max); });
    known.add("", "AveragePool", [](translation& t) { detail::translate_pool(t, ops::pool_mode::average); });
    known.add("", "LpPool", [](translation& t) { detail::translate_pool(t, ops::pool_mode::norm); });
    known.add("", "GlobalLpPool", [](translation& t) { t.emit(ops::global_pool{.mode = ops::pool_mode::norm}, t.input(0)); });
    known.add("", "GlobalMaxPool", [](translation& t) { t.emit(ops::global_pool{.mode = ops::pool_mode::max}, t.input(0)); });
    known.add("", "GlobalAveragePool", [](translation& t) { t.emit(ops::global_pool{}, t.input(0)); });
}

} // namespace parsearch::io::onnx
