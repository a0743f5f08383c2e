#pragma once
/// Normalizations: layer, root mean square, batch.

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
inline void add_normalization(operation& op, tensor const& x, normalization_cost cost, double groups, std::string_view parameter, bool weight,
                              bool bias, std::size_t first, std::size_t count) {
    double const n = elements(x);
    op.work = work_class::normalization;
    op.flops = cost.forward * n;
    op.saved_bytes = cost.statistics * groups * static_cast<double>(size_of(dtype::f32));
    auto& in = add_input(op, "x", x.type, along_dims(op, 0, x.extents.size()));
    in.saved = true;
    in.gradient_flops = cost.backward * n;
    if (weight) add_weight(op, parameter, "weight", x.type, along_dims(op, first, count), 2 * n);
    if (bias) add_weight(op, parameter, "bias", x.type, along_dims(op, first, count), n);
    add_output(op, "y", x.type, along_dims(op, 0, x.extents.size()));
}

/// Normalization over the last `axes` axes, which are fixed dims.
[[nodiscard]] inline operation trailing_normalization(std::span<tensor const> inputs, std::string_view kind, std::int64_t axes,
                                                      normalization_cost cost, std::string_view parameter, bool weight, bool bias) {
    expect_inputs(inputs, 1);
    expect_least_rank(inputs, 0, 2);
    expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (axes < 1 || axes >= static_cast<std::int64_t>(rank))
        throw invalid_input("option axes is ", axes, ": must be between 1 and ", rank - 1, " for ", shown(inputs, 0));
    auto const first = rank - static_cast<std::size_t>(axes);
    operation op{.kind = std::string(kind)};
    double groups = 1;
    for (std::size_t i = 0; i < rank; ++i) {
        add_dim(op, axis_name(i, rank), x.extents[i], i < first ? axis_kind(i) : dim_kind::fixed);
        if (i < first) groups *= static_cast<double>(x.extents[i]);
    }
    add_normalization(op, x, cost, groups, parameter, weight, bias, first, rank - first);
    return finished(std::move(op));
}
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
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        kit::expect_least_rank(inputs, 0, 2);
        kit::expect_floating(inputs, 0, 0);
        auto const& x = inputs[0];
        auto const rank = x.extents.size();
        operation op{.kind = relu ? text(kind, "_relu") : std::string(kind)};
        for (std::size_t i = 0; i < rank; ++i)
            kit::add_dim(op,
                         i == 1                ? "c"
                         : i == 2 && rank == 3 ? "l"
                                               : kit::axis_name(i, rank),
                         x.extents[i], i == 1 ? dim_kind::parameter : kit::axis_kind(i));
        detail::add_normalization(op, x, detail::standardize, static_cast<double>(x.extents[1]), parameter, true, true, 1, 1);
        if (relu) {
            op.flops += kit::elements(x);
            op.inputs[0].gradient_flops += kit::elements(x);
            op.outputs[0].saved = true;
        }
        return kit::finished(std::move(op));
    }
};

} // namespace parsearch::ops
