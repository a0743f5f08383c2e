#pragma once
// Recurrent units: long short-term memory (one step, and a layer over a sequence), and layers of gated and plain units.

#include <parsearch/ops/lstm.hpp>

namespace parsearch::ops::detail {

/// Weights and flops of `steps` steps over `samples`; `o` is the dim of the hidden units. The gates are an axis of their own, so that a shard of
/// hidden units holds all gates of each. Two biases, as PyTorch and cuDNN have.
PARSEARCH_INLINE void add_recurrent_work(operation& op, recurrent_unit unit, std::string_view parameter, bool bias, dtype type, double samples,
                                         double steps, std::int64_t features, std::uint32_t o) {
    auto const hidden = op.dims[o].extent;
    double const units = samples * steps * static_cast<double>(hidden), gates = static_cast<double>(unit.gates);
    double const from_input = units * gates * static_cast<double>(features), from_hidden = units * gates * static_cast<double>(hidden);
    add_weight(op, parameter, "input_weight", type, {whole(unit.gates), along(op, o), whole(features)}, 2 * from_input);
    add_weight(op, parameter, "hidden_weight", type, {whole(unit.gates), along(op, o), whole(hidden)}, 2 * from_hidden);
    if (bias) {
        add_weight(op, parameter, "input_bias", type, {whole(unit.gates), along(op, o)}, gates * units);
        add_weight(op, parameter, "hidden_bias", type, {whole(unit.gates), along(op, o)}, gates * units);
    }
    op.multiply_adds = from_input + from_hidden;
    op.flops = 2 * op.multiply_adds + unit.pointwise * units;
    op.backward_flops = 2 * unit.pointwise * units;
    op.saved_bytes = gates * units * static_cast<double>(size_of(type)); // the gates
    op.inputs[0].saved = true;
    op.inputs[0].gradient_flops = 2 * from_input;
}

PARSEARCH_INLINE operation recurrent_layer(std::span<tensor const> inputs, std::string_view kind, recurrent_unit unit, std::int64_t hidden,
                                           std::string_view parameter, bool bias) {
    std::size_t const states = unit.cell ? 2 : 1;
    expect_inputs(inputs, 1, 1 + states);
    if (inputs.size() != 1 && inputs.size() != 1 + states)
        throw invalid_input(inputs.size(), " inputs: must have 1, or ", 1 + states, " with the initial states");
    expect_rank(inputs, 0, 3);
    expect_floating(inputs, 0, inputs.size() - 1);
    checked("hidden", hidden);
    auto const& x = inputs[0];
    operation op{.kind = std::string(kind), .work = work_class::recurrent};
    auto const s = add_dim(op, "s", x.extents[0], dim_kind::sample);
    auto const l = add_dim(op, "l", x.extents[1], dim_kind::fixed);
    auto const o = add_dim(op, "o", hidden, dim_kind::fixed);
    add_input(op, "x", x.type, {along(op, s), along(op, l), whole(x.extents[2])});
    auto const samples = static_cast<double>(x.extents[0]), steps = static_cast<double>(x.extents[1]);
    add_recurrent_work(op, unit, parameter, bias, x.type, samples, steps, x.extents[2], o);
    op.backward_flops += op.weights[1].gradient_flops; // the gradients of h between the steps
    double const states_kept = samples * steps * static_cast<double>(hidden) * static_cast<double>(size_of(x.type));
    if (unit.cell) op.saved_bytes += states_kept; // c of each step
    for (std::size_t i = 1; i < inputs.size(); ++i) {
        expect_rank(inputs, i, 2);
        expect_extent(inputs, i, 0, x.extents[0], "the samples of input 0");
        expect_extent(inputs, i, 1, hidden, "option hidden");
        add_input(op, i == 1 ? "h_0" : "c_0", x.type, {along(op, s), along(op, o)}).saved = true;
    }
    add_output(op, "y", x.type, {along(op, s), along(op, l), along(op, o)}).saved = true;
    add_output(op, "h_n", x.type, {along(op, s), along(op, o)});
    if (unit.cell) add_output(op, "c_n", x.type, {along(op, s), along(op, o)});
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation lstm_cell::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3);
    for (std::size_t i = 0; i < 3; ++i) kit::expect_rank(inputs, i, 2);
    kit::expect_floating(inputs, 0, 2);
    kit::checked("hidden", hidden);
    auto const samples = inputs[0].extents[0], features = inputs[0].extents[1];
    for (std::size_t i = 1; i < 3; ++i) {
        kit::expect_extent(inputs, i, 0, samples, "the samples of input 0");
        kit::expect_extent(inputs, i, 1, hidden, "option hidden");
    }
    auto const type = inputs[0].type;
    operation op{.kind = std::string(kind), .work = work_class::recurrent};
    auto const s = kit::add_dim(op, "s", samples, dim_kind::sample);
    auto const o = kit::add_dim(op, "o", hidden, dim_kind::parameter);
    kit::add_input(op, "x", type, {kit::along(op, s), kit::whole(features)});
    kit::add_input(op, "h", type, {kit::along(op, s), kit::whole(hidden)});
    kit::add_input(op, "c", type, {kit::along(op, s), kit::along(op, o)});
    detail::add_recurrent_work(op, detail::lstm_unit, parameter, true, type, static_cast<double>(samples), 1, features, o);
    op.inputs[1].saved = op.inputs[2].saved = true;
    op.inputs[1].gradient_flops = op.weights[1].gradient_flops;
    op.inputs[2].gradient_flops = static_cast<double>(samples) * static_cast<double>(hidden);
    kit::add_output(op, "h_next", type, {kit::along(op, s), kit::along(op, o)});
    kit::add_output(op, "c_next", type, {kit::along(op, s), kit::along(op, o)}).saved = true;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
