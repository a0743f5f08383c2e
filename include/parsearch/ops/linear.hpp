#pragma once
/// Linear (fully connected) layers and matrix products.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// y[s, ..., o] = x[s, ..., k] w[o, k] + b[o]. Axis 0 is the sample axis, axes between are attributes, o is a parameter dim and
/// splits the weights, k a reduction dim: splitting it leaves partial sums of y. Each gradient costs what forward costs.
struct linear {
    static constexpr std::string_view kind = "linear";
    std::int64_t out = 0;
    bool bias = true;
    std::string parameter{}; ///< operators with the same non-empty name share their weights
    /// Input: x of at least two axes. Weights: weight[out, k], bias[out].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// y[b..., m, n] = a[b..., m, k] x b[b..., k, n], of equal outer axes. `transpose_a`: a is [b..., k, m]; `transpose_b`: b is [b..., n, k].
/// The first axis of y is the sample axis, the others are attributes (neither operand is a weight), k is a reduction dim.
struct batched_matmul {
    static constexpr std::string_view kind = "batched_matmul";
    bool transpose_a = false;
    bool transpose_b = false;
    /// Inputs: a and b, of the same number of axes (at least two).
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/linear.ipp>
#endif
