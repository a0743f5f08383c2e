#pragma once
/// Normalizations: layer, root mean square, batch.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// Flops per element, by the textbook formulas (with the affine part): forward, gradient of the input.
struct normalization_cost {
    double forward, backward;
    int statistics; ///< f32 values kept per group of elements that are normalised together
};
inline constexpr normalization_cost standardize{8, 11, 2}; ///< mean, difference, square, sum, scaling, weight, bias
inline constexpr normalization_cost root_mean_square{5, 8, 1};

/// Fills in the work: `groups` are normalised each on its own; the weights have the extents of dims `first`, ..., `first + count - 1`.
void add_normalization(operation& op, tensor const& x, normalization_cost cost, double groups, std::string_view parameter, bool weight, bool bias,
                       std::size_t first, std::size_t count);

/// Normalization over the last `axes` axes, which are fixed dims.
[[nodiscard]] operation trailing_normalization(std::span<tensor const> inputs, std::string_view kind, std::int64_t axes, normalization_cost cost,
                                               std::string_view parameter, bool weight, bool bias);
} // namespace detail

/// x[s, ...] -> y of the same shape, normalised over the last `axes` axes (not divisible).
struct layer_norm {
    static constexpr std::string_view kind = "layer_norm";
    std::int64_t axes = 1;
    bool affine = true; ///< has weight and bias, of the extents of these axes
    std::string parameter{};
    bool bias = true; ///< false: of these, weight alone
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        return detail::trailing_normalization(inputs, kind, axes, detail::standardize, parameter, affine, affine && bias);
    }
};

/// Like `layer_norm` without mean and bias (Zhang and Sennrich, NeurIPS 2019).
struct rms_norm {
    static constexpr std::string_view kind = "rms_norm";
    std::int64_t axes = 1;
    bool affine = true; ///< has weight, of the extents of these axes
    std::string parameter{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        return detail::trailing_normalization(inputs, kind, axes, detail::root_mean_square, parameter, affine, false);
    }
};

/// x[s, c, ...] -> y, each channel normalised over samples and the axes behind it. Splitting these would need statistics of the whole: they are
/// taken over each shard on its own, as data-parallel training does (Goyal et al., 2017, 2.3). Running means are buffers, not weights.
/// With `relu` the operation's kind is "batch_norm_relu": y is kept for backward, what is between the two is never written.
struct batch_norm {
    static constexpr std::string_view kind = "batch_norm";
    std::string parameter{};
    bool relu = false; ///< y = max(0, normalised x)
    /// Input: x of at least two axes. Weights: weight[c], bias[c].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/normalization.ipp>
#endif
