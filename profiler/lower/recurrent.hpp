#pragma once
/// Recurrent units: whole layers, and one step of long short-term memory.

#include <cstdint>
#include <string_view>
#include <vector>

#include "shard.hpp"

namespace parsearch::profiler::detail {

[[nodiscard]] inline launches lower_recurrent(shard const& s) {
    auto const& op = s.op();
    recurrent r{.cell = op.kind == "lstm"  ? cell_kind::lstm
                        : op.kind == "gru" ? cell_kind::gru
                                           : cell_kind::rnn,
                .backward = s.backward(),
                .samples = s.extent("s"),
                .steps = s.extent("l"),
                .features = s.touched(op.inputs.at(0).axes.at(2)),
                .hidden = s.extent("o"),
                .bias = s.weight("input_bias") != nullptr,
                .type = op.inputs[0].type};
    return {r};
}

/// Two products of the whole of x and h with a part of the gates, and what is left element by element.
[[nodiscard]] inline launches lower_lstm_cell(shard const& s) {
    auto const& op = s.op();
    s.expect(op.inputs.size() == 3 && s.weight("input_weight") && s.weight("hidden_weight"), "must have x, h, c and two weights");
    constexpr std::int64_t gates = 4;
    auto const type = op.inputs[0].type;
    auto const samples = s.extent("s"), units = s.extent("o"), features = s.touched(op.inputs[0].axes[1]), hidden = s.touched(op.inputs[1].axes[1]);
    auto const states = samples * units;
    launches out;
    auto const each = [&](std::int64_t count) { return std::vector<stream>(static_cast<std::size_t>(count), stream{states, type}); };
    // The gates are arrays of their own: as many elements each as a state has.
    double const pointwise = 13 * static_cast<double>(states);
    if (!s.backward()) {
        out.emplace_back(matmul{.m = samples, .n = gates * units, .k = features, .transpose_b = true, .bias = true, .type = type});
        out.emplace_back(matmul{.m = samples, .n = gates * units, .k = hidden, .transpose_b = true, .bias = true, .type = type});
        // Reads both products' gates (one of them as one array four times as long), c; writes h, c, and keeps the gates.
        append_streaming(out, {{gates * states, type}, {gates * states, type}}, {{gates * states, type}}, 0);
        append_streaming(out, each(gates + 1), each(2), pointwise);
        return out;
    }
    append_streaming(out, each(gates + 4), each(gates + 1), 2 * pointwise); // gates, c, c', gradients of h' and c'; those of gates and c
    if (s.wants_input("x")) out.emplace_back(matmul{.m = samples, .n = features, .k = gates * units, .type = type});
    if (s.wants_input("h")) out.emplace_back(matmul{.m = samples, .n = hidden, .k = gates * units, .type = type});
    out.emplace_back(matmul{.m = gates * units, .n = features, .k = samples, .transpose_a = true, .type = type});
    out.emplace_back(matmul{.m = gates * units, .n = hidden, .k = samples, .transpose_a = true, .type = type});
    if (s.weight("input_bias")) append_reductions(out, {samples, gates * units}, {false, true}, type); // of both biases
    return out;
}

} // namespace parsearch::profiler::detail
