#pragma once
/// Normalization over neighbouring channels.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/kit/window.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// x[s, c, ...] -> y of the same shape: each element divided by a power of the sum of squares over `size` channels around it (Krizhevsky et al.,
/// NeurIPS 2012, 3.3). A shard of the channels reads a halo of neighbours. Backward needs x, y and the sums.
struct local_response_norm {
    static constexpr std::string_view kind = "local_response_norm";
    std::int64_t size = 5; ///< of them (size - 1) / 2 are in front
    /// Input: x of at least two axes.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/local_response_norm.ipp>
#endif
