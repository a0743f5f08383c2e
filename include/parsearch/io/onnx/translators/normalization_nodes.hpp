#pragma once
/// Translators of normalizations and softmax.

#include <cstdint>
#include <optional>
#include <vector>

#include <parsearch/io/onnx/translators/shape_nodes.hpp>
#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/group_norm.hpp>
#include <parsearch/ops/local_response_norm.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/softmax.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// Running mean and variance are buffers: no gradient reaches them.
inline void translate_batch_norm(translation& t) {
    t.ignore(3);
    t.ignore(4);
    t.output(0, t.emit(ops::batch_norm{}, {t.input(0)}, {t.input(1), t.input(2)}));
}

/// Layer or root-mean-square normalization of `x` over the axes from attribute `axis` on, with the scale, and a bias where `bias` is there.
inline emitted emit_layer_norm(translation& t, argument const& x, argument const& scale, std::optional<argument> const& bias, bool root_mean_square) {
    auto const rank = x.shape.extents.size();
    auto const axes = static_cast<std::int64_t>(rank - ops::kit::axis_number("axis", t.integer("axis", -1), rank));
    if (root_mean_square) {
        auto const y = t.emit(ops::rms_norm{.axes = axes}, {x}, {scale});
        return bias ? t.as("bias").emit(ops::add{}, y, *bias) : y;
    }
    if (bias) return t.emit(ops::layer_norm{.axes = axes}, {x}, {scale, *bias});
    return t.as("scale").emit(ops::multiply{}, t.emit(ops::layer_norm{.axes = axes, .affine = false}, x), scale);
}

inline void translate_layer_norm(translation& t, bool root_mean_square) {
    std::optional<argument> bias;
    if (t.has_input(2)) bias = t.input(2);
    t.output(0, emit_layer_norm(t, t.input(0), t.input(1), bias, root_mean_square));
}

/// The normalization of a sum: input, skip, scale, then bias of the normalization (less where it has none), bias of the sum; output 3 is the sum.
inline void translate_skip_norm(translation& t, bool root_mean_square) {
    std::size_t const sum_bias = root_mean_square ? 3 : 4;
    argument sum = t.as("sum").emit(ops::add{}, t.input(0), t.input(1));
    if (t.has_input(sum_bias)) sum = t.as("sum_bias").emit(ops::add{}, sum, t.input(sum_bias));
    std::optional<argument> bias;
    if (!root_mean_square && t.has_input(3)) bias = t.input(3);
    t.output(0, emit_layer_norm(t, sum, t.input(2), bias, root_mean_square));
    t.output(3, sum);
}

/// Scale and bias per channel, or before version 21 per group.
inline void translate_group_norm(translation& t) {
    auto const groups = ops::kit::checked("num_groups", t.integer("num_groups", 0));
    auto const& x = t.extents(0);
    if (x.size() < 2) throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), ": must have at least two axes");
    if (t.extents(1) == integer_list{x[1]}) {
        t.emit(ops::group_norm{.groups = groups}, {t.input(0)}, {t.input(1), t.input(2)});
        return;
    }
    integer_list grouped = x, broadcast(x.size() + 1, 1);
    grouped[1] = groups;
    grouped.insert(grouped.begin() + 2, x[1] / groups);
    broadcast[1] = groups;
    broadcast.erase(broadcast.begin());
    argument y = t.as("split").emit(ops::reshape{grouped}, t.emit(ops::group_norm{.groups = groups, .affine = false}, t.input(0)));
    y = t.as("scale").emit(ops::multiply{}, y, t.reshaped(t.input(1), broadcast));
    y = t.as("bias").emit(ops::add{}, y, t.reshaped(t.input(2), broadcast));
    t.output(0, t.as("join").emit(ops::reshape{x}, y));
}

inline void translate_lp_norm(translation& t) {
    auto const mode = t.integer("p", 2) == 1 ? ops::reduction_mode::l1 : ops::reduction_mode::l2;
    auto const norm = t.as("norm").emit(ops::reduce{.mode = mode, .axes = {t.integer("axis", -1)}, .keep = true}, t.input(0));
    t.emit(ops::nary{ops::combine::divide}, t.input(0), norm);
}

/// Before version 13, over all axes from `axis` on, as if they were one.
inline void translate_softmax(translation& t, bool logarithm) {
    auto const& x = t.extents(0);
    bool const flattens = t.version() < 13;
    auto const at = ops::kit::axis_number("axis", t.integer("axis", flattens ? 1 : -1), x.size());
    ops::softmax op{.axis = static_cast<std::int64_t>(at), .logarithm = logarithm};
    auto const behind = product(x, at + 1, x.size());
    if (!flattens || behind == 1) {
        t.emit(op, t.input(0));
        return;
    }
    op.axis = 1;
    auto const flat = t.as("flatten").emit(ops::reshape{{product(x, 0, at), x[at] * behind}}, t.input(0));
    t.output(0, t.as("unflatten").emit(ops::reshape{x}, t.emit(op, flat)));
}
} // namespace detail

/// BatchNormalization, InstanceNormalization, GroupNormalization, LayerNormalization and its relatives, LRN, LpNormalization, Softmax.
inline void add_normalization(operators& known) {
    known.add("", "BatchNormalization", detail::translate_batch_norm);
    known.add("", "InstanceNormalization", [](translation& t) { t.emit(ops::instance_norm{}, {t.input(0)}, {t.input(1), t.input(2)}); });
    known.add("", "GroupNormalization", detail::translate_group_norm);
    known.add("", "LayerNormalization", [](translation& t) { detail::translate_layer_norm(t, false); });
    for (auto const domain : {"", "com.microsoft"})
        known.add(domain, "SimplifiedLayerNormalization", [](translation& t) { detail::translate_layer_norm(t, true); });
    known.add("", "RMSNormalization", [](translation& t) { detail::translate_layer_norm(t, true); });
    known.add("com.microsoft", "SkipLayerNormalization", [](translation& t) { detail::translate_skip_norm(t, false); });
    known.add("com.microsoft", "SkipSimplifiedLayerNormalization", [](translation& t) { detail::translate_skip_norm(t, true); });
    known.add("", "LpNormalization", detail::translate_lp_norm);
    known.add("", "LRN", [](translation& t) { t.emit(ops::local_response_norm{.size = t.integer("size", 0)}, t.input(0)); });
    known.add("", "Softmax", [](translation& t) { detail::translate_softmax(t, false); });
    known.add("", "LogSoftmax", [](translation& t) { detail::translate_softmax(t, true); });
}

} // namespace parsearch::io::onnx
