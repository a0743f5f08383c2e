#pragma once
/// Recurrent units: long short-term memory (one step, and a layer over a sequence), and layers of gated and plain units.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// A kind of recurrent unit: matrices of each of its two weights, and elementwise flops per hidden unit and step.
struct recurrent_unit {
    std::int64_t gates;
    double pointwise;
    bool cell; ///< has a cell state beside the hidden one
};
/// Four gate functions and their bias additions, three products, an addition and a tanh.
inline constexpr recurrent_unit lstm_unit{4, 13, true};

/// A layer of `unit`s: x[s, l, e], and the states that it begins with where these are no zeros -> y[s, l, hidden] and the last states. Only samples
/// are divisible.
[[nodiscard]] operation recurrent_layer(std::span<tensor const> inputs, std::string_view kind, recurrent_unit unit, std::int64_t hidden,
                                        std::string_view parameter, bool bias);
} // namespace detail

/// One step: x[s, e], h[s, hidden], c[s, hidden] -> h'[s, hidden], c'[s, hidden]. The hidden units are a parameter dim: each shard
/// reads all of x and h, and its own part of c.
struct lstm_cell {
    static constexpr std::string_view kind = "lstm_cell";
    std::int64_t hidden = 0;
    std::string parameter{};
    /// Weights: input_weight[4, hidden, e], hidden_weight[4, hidden, hidden], input_bias[4, hidden], hidden_bias[4, hidden].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// A layer: x[s, l, e] -> y[s, l, hidden], h_n[s, hidden], c_n[s, hidden], from a state of zeros, or from h_0 and c_0[s, hidden]. Only samples are
/// divisible: steps follow each other, and hidden units that were split would exchange h in every step, inside the operator. Unroll
/// `lstm_cell` for that.
struct lstm {
    static constexpr std::string_view kind = "lstm";
    std::int64_t hidden = 0;
    std::string parameter{};
    bool bias = true;
    /// Inputs: x, or x, h_0 and c_0. Weights: as those of `lstm_cell`.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        return detail::recurrent_layer(inputs, kind, detail::lstm_unit, hidden, parameter, bias);
    }
};

/// A layer of gated recurrent units (Cho et al., EMNLP 2014): x[s, l, e] -> y[s, l, hidden], h_n[s, hidden], likewise.
struct gru {
    static constexpr std::string_view kind = "gru";
    std::int64_t hidden = 0;
    std::string parameter{};
    bool bias = true;
    /// Inputs: x, or x and h_0. Weights: input_weight[3, hidden, e], hidden_weight[3, hidden, hidden], input_bias[3, hidden], hidden_bias[3, hidden].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        return detail::recurrent_layer(inputs, kind, {3, 13, false}, hidden, parameter, bias);
    }
};

/// A layer of plain recurrent units (Elman, 1990), likewise, with one matrix in each weight.
struct rnn {
    static constexpr std::string_view kind = "rnn";
    std::int64_t hidden = 0;
    std::string parameter{};
    bool bias = true;
    /// Inputs: x, or x and h_0.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        return detail::recurrent_layer(inputs, kind, {1, 4, false}, hidden, parameter, bias);
    }
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/lstm.ipp>
#endif
