#pragma once
/// Translators of reductions, of operators along an axis in which order counts, and of interpolation.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/order.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/resize.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// Over all axes where none are named, unless an empty list is to mean none.
inline void translate_reduce(translation& t, ops::reduction_mode mode) {
    auto axes = t.integers("axes", 1).value_or(integer_list{});
    if (t.rank(0) == 0 || (axes.empty() && t.integer("noop_with_empty_axes", 0))) return t.output(0, t.input(0));
    if (axes.empty()) {
        axes.resize(t.rank(0));
        std::iota(axes.begin(), axes.end(), 0);
    }
    t.emit(ops::reduce{.mode = mode, .axes = std::move(axes), .keep = t.integer("keepdims", 1) != 0}, t.input(0));
}

inline void translate_top_k(translation& t) {
    auto const k = required(t, "k", 1);
    if (k.size() != 1) throw invalid_input("has ", k.size(), " numbers k: must have one");
    t.emit(ops::top_k{.k = k[0], .axis = t.integer("axis", -1)}, t.input(0));
}

inline void translate_cumulative_sum(translation& t) {
    auto const axis = required(t, "axis", 1);
    if (axis.size() != 1) throw invalid_input("has ", axis.size(), " axes: must have one");
    t.emit(ops::cumulative_sum{.axis = axis[0]}, t.input(0));
}

/// Extents from a list of them, or of factors, whichever is there; for some axes where attribute axes names them.
inline integer_list resized(translation const& t, std::size_t scales_at, std::size_t sizes_at) {
    auto const& x = t.extents(0);
    integer_list all(x.size());
    std::iota(all.begin(), all.end(), 0);
    auto const axes = axes_of(t.attribute("axes", all), x.size());
    auto const expect = [&](std::size_t count) {
        if (count != axes.size()) throw invalid_input("has ", count, " sizes or scales for ", axes.size(), " axes: must have as many");
    };
    auto shape = x;
    if (t.has_input(sizes_at)) {
        auto const sizes = required(t, "sizes", sizes_at);
        expect(sizes.size());
        double factor = 0; // where the ratio of the axes is to be kept
        auto const policy = t.word("keep_aspect_ratio_policy", "stretch");
        for (std::size_t i = 0; i < axes.size(); ++i) {
            double const own = static_cast<double>(ops::kit::checked("sizes", sizes[i])) / static_cast<double>(x[axes[i]]);
            if (i == 0 || (policy == "not_larger" ? own < factor : own > factor)) factor = own;
            shape[axes[i]] = sizes[i];
        }
        if (policy != "stretch")
            for (auto const a : axes) shape[a] = std::max(1LL, std::llround(static_cast<double>(x[a]) * factor));
        return shape;
    }
    std::vector<double> scales = t.attribute("scales", std::vector<double>{});
    if (auto const* const given = t.contents(scales_at))
        for (std::size_t i = 0; i < given->size(); ++i) scales.push_back(given->number(i));
    expect(scales.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
        double const extent = std::floor(static_cast<double>(x[axes[i]]) * scales[i]);
        if (!(extent >= 1 && extent <= static_cast<double>(ops::kit::largest_extent)))
            throw invalid_input("scale ", scales[i], " of axis ", axes[i], " of extent ", x[axes[i]], ": must give between 1 and 2^40");
        shape[axes[i]] = static_cast<std::int64_t>(extent);
    }
    return shape;
}

inline void translate_resize(translation& t, std::size_t scales_at, std::size_t sizes_at) {
    auto const mode = t.word("mode", "nearest");
    if (mode != "nearest" && mode != "linear" && mode != "cubic")
        throw invalid_input("attribute mode is '", mode, "': must be nearest, linear or cubic");
    auto shape = resized(t, scales_at, sizes_at);
    if (shape == t.extents(0)) return t.output(0, t.input(0));
    t.emit(ops::resize{.shape = std::move(shape),
                       .mode = mode == "nearest"  ? ops::interpolation::nearest
                               : mode == "linear" ? ops::interpolation::linear
                                                  : ops::interpolation::cubic},
           t.input(0));
}
} // namespace detail

/// The Reduce operators, ArgMax, ArgMin, TopK, CumSum, Resize, Upsample.
inline void add_reduction(operators& known) {
    using enum ops::reduction_mode;
    constexpr std::pair<std::string_view, ops::reduction_mode> modes[] = {{"ReduceSum", sum},        {"ReduceMean", mean},
                                                                          {"ReduceMax", max},        {"ReduceMin", min},
                                                                          {"ReduceProd", product},   {"ReduceL1", l1},
                                                                          {"ReduceL2", l2},          {"ReduceSumSquare", sum_square},
                                                                          {"ReduceLogSum", log_sum}, {"ReduceLogSumExp", log_sum_exp}};
    for (auto const& [type, m] : modes) known.add("", type, [m = m](translation& t) { detail::translate_reduce(t, m); });
    known.add("", {"ArgMax", "ArgMin"},
              [](translation& t) { t.emit(ops::arg_max{.axis = t.integer("axis", 0), .keep = t.integer("keepdims", 1) != 0}, t.input(0)); });
    known.add("", "TopK", detail::translate_top_k);
    known.add("", "CumSum", detail::translate_cumulative_sum);
    known.add("", "Resize", [](translation& t) {
        if (t.version() < 11) detail::translate_resize(t, 1, ~std::size_t{0});
        else detail::translate_resize(t, 2, 3);
    });
    known.add("", "Upsample", [](translation& t) { detail::translate_resize(t, 1, ~std::size_t{0}); });
}

} // namespace parsearch::io::onnx
