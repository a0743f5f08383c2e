#pragma once
/// Translators of the nodes that patterns are replaced by.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/mixture_of_experts.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/rotary.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// The layout of attention that has this number.
[[nodiscard]] inline ops::attention_layout layout_numbered(std::int64_t number) {
    if (number < 0 || number >= static_cast<std::int64_t>(ops::attention_layouts))
        throw invalid_input("layout ", number, " does not exist: must be between 0 and ", ops::attention_layouts - 1);
    return static_cast<ops::attention_layout>(number);
}

inline void translate_recognised_attention(translation& t) {
    ops::attention op{.heads = t.integer("heads", 0), .kv_heads = t.integer("kv_heads", 0), .causal = t.integer("causal", 0) != 0};
    auto const layouts = t.attribute("layouts", std::vector<std::int64_t>(op.layouts.size()));
    if (layouts.size() != op.layouts.size()) throw invalid_input("attribute layouts has ", layouts.size(), " numbers: must have ", op.layouts.size());
    for (std::size_t i = 0; i < layouts.size(); ++i) op.layouts[i] = layout_numbered(layouts[i]);
    t.emit(op, t.all_inputs());
}

inline void translate_recognised_rotary(translation& t) {
    t.emit(ops::rotary_embedding{.heads = t.integer("heads", 0),
                                 .layout = layout_numbered(t.integer("layout", 0)),
                                 .tables = layout_numbered(t.integer("tables", 2))},
           t.all_inputs());
}

/// Inputs x, then weight, then bias where there are any.
template <class Norm> void translate_recognised_norm(translation& t, Norm op) {
    auto weights = t.all_inputs();
    auto const x = weights.at(0);
    weights.erase(weights.begin());
    op.axes = t.integer("axes", 1);
    op.affine = !weights.empty();
    if constexpr (requires { op.bias; }) op.bias = weights.size() > 1;
    t.emit(op, {x}, weights);
}

/// Running mean and variance are buffers.
inline void translate_batch_norm_relu(translation& t) {
    t.ignore(3);
    t.ignore(4);
    t.emit(ops::batch_norm{.relu = true}, {t.input(0)}, {t.input(1), t.input(2)});
}

inline void translate_equal_split(translation& t) {
    auto const axis = ops::kit::axis_number("axis", t.integer("axis", 0), t.rank(0));
    auto const parts = static_cast<std::int64_t>(t.outputs());
    if (parts == 0 || t.extents(0)[axis] % parts)
        throw invalid_input("has ", parts, " outputs: must divide axis ", axis, " of input 0 of shape ", ops::to_string(t.shape(0)));
    t.emit(ops::split{.axis = static_cast<std::int64_t>(axis), .sizes = std::vector(t.outputs(), t.extents(0)[axis] / parts)}, t.input(0));
}
} // namespace detail

/// The nodes that `recognise` makes.
inline void add_recognised(operators& known) {
    using enum ops::function;
    constexpr std::string_view domain = "parsearch";
    constexpr std::pair<std::string_view, ops::function> functions[] = {{"Gelu", gelu}, {"Silu", silu}, {"Mish", mish}, {"HardSwish", hard_swish}};
    for (auto const& [type, f] : functions) known.add(domain, type, [f = f](translation& t) { t.emit(ops::unary{f}, t.input(0)); });
    known.add(domain, "Attention", detail::translate_recognised_attention);
    known.add(domain, "RotaryEmbedding", detail::translate_recognised_rotary);
    known.add(domain, "LayerNormalization", [](translation& t) { detail::translate_recognised_norm(t, ops::layer_norm{}); });
    known.add(domain, "RMSNormalization", [](translation& t) { detail::translate_recognised_norm(t, ops::rms_norm{}); });
    known.add(domain, "BatchNormalizationRelu", detail::translate_batch_norm_relu);
    known.add(domain, "Reshape",
              [](translation& t) { t.emit(ops::reshape{.shape = t.attribute("shape", std::vector<std::int64_t>{})}, t.input(0)); });
    known.add(domain, "Split", detail::translate_equal_split);
    known.add(domain, "TopKGate", [](translation& t) { t.emit(ops::top_k_gate{.k = t.integer("k", 1)}, t.input(0)); });
}

} // namespace parsearch::io::onnx
