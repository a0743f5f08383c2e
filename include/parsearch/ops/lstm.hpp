#pragma once
/// Long short-term memory: one step, and a layer over a sequence.

#include <parsearch/ops/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// Elementwise flops per hidden unit of one step: four gate functions and their bias additions, three products, an addition and a tanh.
inline constexpr double lstm_pointwise = 13;

/// Weights and flops of `steps` LSTM steps over `samples`; `o` is the dim of the hidden units. The four gates are an axis of their own, so that a
/// shard of hidden units holds all four of each. Two biases, as PyTorch and cuDNN have.
inline void add_lstm_work(operation& op, std::string_view parameter, dtype type, double samples, double steps, std::int64_t features, std::uint32_t o) {
    auto const hidden = op.dims[o].extent;
    double const units = samples * steps * static_cast<double>(hidden);
    double const from_input = units * 4 * static_cast<double>(features), from_hidden = units * 4 * static_cast<double>(hidden);
    add_weight(op, parameter, "input_weight", type, {whole(4), along(op, o), whole(features)}, 2 * from_input);
    add_weight(op, parameter, "hidden_weight", type, {whole(4), along(op, o), whole(hidden)}, 2 * from_hidden);
    add_weight(op, parameter, "input_bias", type, {whole(4), along(op, o)}, 4 * units);
    add_weight(op, parameter, "hidden_bias", type, {whole(4), along(op, o)}, 4 * units);
    op.multiply_adds = from_input + from_hidden;
    op.flops = 2 * op.multiply_adds + lstm_pointwise * units;
    op.backward_flops = 2 * lstm_pointwise * units;
    op.saved_bytes = 4 * units * static_cast<double>(size_of(type)); // the gates
    op.inputs[0].saved = true;
    op.inputs[0].gradient_flops = 2 * from_input;
}
} // namespace detail

/// One step: x[s, e], h[s, hidden], c[s, hidden] -> h'[s, hidden], c'[s, hidden]. The hidden units are a parameter dim: each shard
/// reads all of x and h, and its own part of c.
struct lstm_cell {
    static constexpr std::string_view kind = "lstm_cell";
    std::int64_t hidden = 0;
    std::string parameter{};
    /// Weights: input_weight[4, hidden, e], hidden_weight[4, hidden, hidden], input_bias[4, hidden], hidden_bias[4, hidden].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 3);
        for (std::size_t i = 0; i < 3; ++i) detail::expect_rank(inputs, i, 2);
        detail::expect_floating(inputs, 0, 2);
        detail::checked("hidden", hidden);
        auto const samples = inputs[0].extents[0], features = inputs[0].extents[1];
        for (std::size_t i = 1; i < 3; ++i) {
            detail::expect_extent(inputs, i, 0, samples, "the samples of input 0");
            detail::expect_extent(inputs, i, 1, hidden, "option hidden");
        }
        auto const type = inputs[0].type;
        operation op{.kind = std::string(kind), .work = work_class::recurrent};
        auto const s = detail::add_dim(op, "s", samples, dim_kind::sample);
        auto const o = detail::add_dim(op, "o", hidden, dim_kind::parameter);
        detail::add_input(op, "x", type, {detail::along(op, s), detail::whole(features)});
        detail::add_input(op, "h", type, {detail::along(op, s), detail::whole(hidden)});
        detail::add_input(op, "c", type, {detail::along(op, s), detail::along(op, o)});
        detail::add_lstm_work(op, parameter, type, static_cast<double>(samples), 1, features, o);
        op.inputs[1].saved = op.inputs[2].saved = true;
        op.inputs[1].gradient_flops = op.weights[1].gradient_flops;
        op.inputs[2].gradient_flops = static_cast<double>(samples) * static_cast<double>(hidden);
        detail::add_output(op, "h_next", type, {detail::along(op, s), detail::along(op, o)});
        detail::add_output(op, "c_next", type, {detail::along(op, s), detail::along(op, o)}).saved = true;
        return detail::finished(std::move(op));
    }
};

/// A layer: x[s, l, e] -> y[s, l, hidden], h_n[s, hidden], c_n[s, hidden], from a state of zeros. Only samples are divisible: steps follow each
/// other, and hidden units that were split would exchange h in every step, inside the operator. Unroll `lstm_cell` for that.
struct lstm {
    static constexpr std::string_view kind = "lstm";
    std::int64_t hidden = 0;
    std::string parameter{};
    /// Weights: as those of `lstm_cell`.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_inputs(inputs, 1);
        detail::expect_rank(inputs, 0, 3);
        detail::expect_floating(inputs, 0, 0);
        detail::checked("hidden", hidden);
        auto const& x = inputs[0];
        operation op{.kind = std::string(kind), .work = work_class::recurrent};
        auto const s = detail::add_dim(op, "s", x.extents[0], dim_kind::sample);
        auto const l = detail::add_dim(op, "l", x.extents[1], dim_kind::fixed);
        auto const o = detail::add_dim(op, "o", hidden, dim_kind::fixed);
        detail::add_input(op, "x", x.type, {detail::along(op, s), detail::along(op, l), detail::whole(x.extents[2])});
        auto const samples = static_cast<double>(x.extents[0]), steps = static_cast<double>(x.extents[1]);
        detail::add_lstm_work(op, parameter, x.type, samples, steps, x.extents[2], o);
        op.backward_flops += op.weights[1].gradient_flops; // the gradients of h between the steps
        op.saved_bytes += samples * steps * static_cast<double>(hidden) * static_cast<double>(size_of(x.type)); // c of each step
        detail::add_output(op, "y", x.type, {detail::along(op, s), detail::along(op, l), detail::along(op, o)}).saved = true;
        detail::add_output(op, "h_n", x.type, {detail::along(op, s), detail::along(op, o)});
        detail::add_output(op, "c_n", x.type, {detail::along(op, s), detail::along(op, o)});
        return detail::finished(std::move(op));
    }
};

} // namespace parsearch::ops
