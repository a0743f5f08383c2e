#pragma once
/// Translators of mixtures of experts that a file has as one operator.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/mixture_of_experts.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>

namespace parsearch::io::onnx {

namespace detail {

/// The parameters of one layer of all experts: [experts, out, in] or [experts, in, out], and a bias [experts, out].
struct expert_layer {
    argument weight;
    std::optional<argument> bias{};
};

[[nodiscard]] inline ops::function expert_activation(std::string_view name) {
    using enum ops::function;
    constexpr std::pair<std::string_view, ops::function> known[] = {
        {"relu", relu}, {"gelu", gelu},  {"gelu_new", gelu}, {"gelu_pytorch_tanh", gelu}, {"quick_gelu", gelu},
        {"silu", silu}, {"swish", silu}, {"swiglu", silu},   {"identity", identity}};
    for (auto const& [n, f] : known)
        if (n == name) return f;
    throw invalid_input("activation '", name, "' of experts is unknown: must be relu, gelu, silu, swiglu or identity");
}

/// Which axis of a layer's weight the inputs index: the last where both fit.
[[nodiscard]] inline std::size_t axis_of_inputs(ops::tensor const& w, std::int64_t in) {
    if (w.extents.size() != 3 || (w.extents[1] != in && w.extents[2] != in))
        throw invalid_input("experts have a weight of shape ", ops::to_string(w), ": must be [experts, outputs, ", in, "] or [experts, ", in,
                            ", outputs]");
    return w.extents[2] == in ? 2 : 1;
}

/// Half of a layer whose outputs are two: parameters of their own.
[[nodiscard]] inline expert_layer half_of(translation const& t, expert_layer l, std::int64_t in, std::string_view name) {
    auto const halve = [&](argument& a, std::size_t axis) {
        auto& extent = a.shape.extents.at(axis);
        if (!t.is_parameter(a) || extent % 2)
            throw invalid_input("experts with gates have a tensor of shape ", ops::to_string(a.shape), ": must be a parameter, axis ", axis, " even");
        a.part = name;
        extent /= 2;
    };
    halve(l.weight, 3 - axis_of_inputs(l.weight.shape, in));
    if (l.bias) halve(*l.bias, 1);
    return l;
}

/// x[samples, experts, slots, in] through a layer of each expert.
[[nodiscard]] inline argument through(translation& t, std::string const& name, argument const& x, expert_layer const& l) {
    auto const& w = l.weight.shape.extents;
    auto const by_input = axis_of_inputs(l.weight.shape, x.shape.extents[3]) == 1;
    auto const out = w[by_input ? 2 : 1];
    argument const y = t.as(name).emit(ops::einsum{.equation = by_input ? "sech,eho->seco" : "sech,eoh->seco", .weight = w}, {x}, {l.weight});
    if (!l.bias) return y;
    return t.as(name + ".add").emit(ops::add{}, y, t.reshaped(*l.bias, {w[0], 1, out}));
}

/// Tokens by sample, [samples, tokens, hidden].
[[nodiscard]] inline argument tokens_by_sample(translation& t, std::size_t i) {
    auto const a = t.input(i);
    auto const& e = a.shape.extents;
    if (e.size() == 3) return a;
    if (e.size() != 2) throw invalid_input("input ", i, " of shape ", ops::to_string(a.shape), ": must have two axes or three");
    t.note("tokens are not told by sample: all are taken for those of one");
    return t.reshaped(a, {1, e[0], e[1]});
}

/// A mixture of experts: tokens in slots of their experts, up(x) (or activation(gate(x)) * up(x)), down, and their sum by the gates. Every token has
/// its `k` experts, and experts are used evenly.
inline void emit_experts(translation& t, argument const& x, argument gates, std::int64_t k, ops::function activation,
                         std::optional<expert_layer> gate, expert_layer const& up, expert_layer const& down) {
    auto const& e = x.shape.extents;
    if (gates.shape.extents.empty()) throw invalid_input("gates of shape ", ops::to_string(gates.shape), ": must be [tokens, experts]");
    gates = t.reshaped(gates, {e[0], e[1], gates.shape.extents.back()});
    argument const dispatched = t.as("dispatch").emit(ops::moe_dispatch{.experts_per_token = k, .capacity_factor = 1}, x, gates);
    // A view where tokens arrive: what several operators read is moved for each of them.
    argument const slots = t.as("slots").emit(ops::reshape{.shape = dispatched.shape.extents}, dispatched);
    auto y = through(t, "up", slots, up);
    if (gate) {
        argument const open = t.as("activation").emit(ops::unary{activation}, through(t, "gate", slots, *gate));
        y = t.as("multiply").emit(ops::multiply{}, open, y);
    } else y = t.as("activation").emit(ops::unary{activation}, y);
    argument const sum = t.as("combine").emit(ops::moe_combine{}, through(t, "down", y, down), gates);
    t.output(0, t.reshaped(sum, t.extents(0)));
}

/// x [tokens, hidden] or [samples, tokens, hidden], gates [tokens, experts] (0 where a token has not the expert), the first layer (the halves of its
/// outputs are gate and up, where there is a gate), the last, and their biases.
inline void translate_experts(translation& t) {
    auto const x = tokens_by_sample(t, 0);
    auto const hidden = x.shape.extents.back();
    expert_layer first{t.input(2)}, last{t.input(3)};
    if (t.has_input(4)) first.bias = t.input(4);
    if (t.has_input(5)) last.bias = t.input(5);
    auto const activation = expert_activation(t.word("activation", "silu"));
    auto const k = t.integer("k", 1);
    if (t.integer("gated", 1) == 0) emit_experts(t, x, t.input(1), k, activation, std::nullopt, first, last);
    else emit_experts(t, x, t.input(1), k, activation, half_of(t, first, hidden, "gate"), half_of(t, first, hidden, "up"), last);
}

/// com.microsoft.MoE: x, the router's scores [tokens, experts], and weight and bias of three layers, of which the last is up where there is a gate
/// beside it. https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
inline void translate_moe(translation& t) {
    auto const x = tokens_by_sample(t, 0);
    auto const hidden = x.shape.extents.back();
    auto const layer = [&](std::size_t i) {
        expert_layer l{t.input(i)};
        if (t.has_input(i + 1)) l.bias = t.input(i + 1);
        return l;
    };
    auto const k = t.integer("k", 1);
    argument const probabilities = t.as("softmax").emit(ops::softmax{}, t.input(1));
    argument const gates = t.as("top_k").emit(ops::top_k_gate{.k = k}, probabilities);
    auto const activation = expert_activation(t.word("activation_type", "relu"));
    auto const first = layer(2), down = layer(4);
    if (t.has_input(6)) emit_experts(t, x, gates, k, activation, first, layer(6), down);
    else if (t.integer("swiglu_fusion", 0) != 0)
        emit_experts(t, x, gates, k, activation, half_of(t, first, hidden, "gate"), half_of(t, first, hidden, "up"), down);
    else emit_experts(t, x, gates, k, activation, std::nullopt, first, down);
}
} // namespace detail

/// MoE of com.microsoft, and the experts that examples/export writes.
inline void add_experts(operators& known) {
    known.add("com.microsoft", "MoE", detail::translate_moe);
    known.add("parsearch", "Experts", detail::translate_experts);
}

} // namespace parsearch::io::onnx
