#pragma once
/// Softmax, and the cross entropy that follows it.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// Softmax along `axis`, or its logarithm (kind "log_softmax"). The axis is not divisible: its maximum and sum are no partial sums of the output.
struct softmax {
    static constexpr std::string_view kind = "softmax";
    std::int64_t axis = -1;
    bool logarithm = false;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// logits[s, ..., c], labels[s, ...] -> loss[s, ...], softmax included. The classes are not divisible. The logarithms of the
/// probabilities are kept for backward, of at least 32 bits: narrower logits are converted, and the gradient back, through memory, as frameworks do
/// that do not fuse it.
struct cross_entropy {
    static constexpr std::string_view kind = "cross_entropy";
    /// Inputs: logits of at least two axes, labels (i64 or i32).
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/softmax.ipp>
#endif
