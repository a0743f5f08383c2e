#pragma once
/// Attention: with its projections, and the scaled dot-product core alone.

#include <parsearch/ops/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// Elementwise flops per score: scale, maximum, subtraction, exponential, sum, division; and per score in backward.
inline constexpr double score_forward = 6, score_backward = 5;

/// The key/value heads where `kv_heads` may be 0. Throws unless they divide the heads.
[[nodiscard]] inline std::int64_t kv_groups(std::int64_t heads, std::int64_t kv_heads) {
    checked("heads", heads);
    auto const groups = checked("kv_heads", kv_heads, 0) ? kv_heads : heads;
    if (heads % groups) throw invalid_input("option kv_heads is ", kv_heads, ": must divide option heads (", heads, ")");
    return groups;
}

/// Checks what both forms ask of q[s, lq, .], k[s, lk, .], v[s, lk, .].
inline void expect_attention_inputs(std::span<tensor const> inputs) {
    expect_inputs(inputs, 3);
    for (std::size_t i = 0; i < 3; ++i) expect_rank(inputs, i, 3);
    expect_floating(inputs, 0, 2);
    for (std::size_t i = 1; i < 3; ++i) expect_extent(inputs, i, 0, inputs[0].extents[0], "the samples of input 0");
    expect_extent(inputs, 2, 1, inputs[1].extents[1], "the length of input 1");
}

/// Adds the dims s, lq, heads (in groups), lk.
inline void add_attention_dims(operation& op, std::span<tensor const> inputs, std::int64_t groups, dim_kind kind) {
    add_dim(op, "s", inputs[0].extents[0], dim_kind::sample);
    add_dim(op, "lq", inputs[0].extents[1], dim_kind::attribute);
    add_dim(op, "heads", groups, kind);
    add_dim(op, "lk", inputs[1].extents[1], dim_kind::fixed);
}

/// Bytes kept beside operands: a statistic (f32) per row of scores, or all probabilities.
[[nodiscard]] inline double saved_scores(double rows, double length, dtype type, bool flash) noexcept {
    return flash ? rows * static_cast<double>(size_of(dtype::f32)) : rows * length * static_cast<double>(size_of(type));
}
} // namespace detail

/// q[s, lq, e], k[s, lk, ek], v[s, lk, ev] -> y[s, lq, out], with the projections of queries, keys, values and output inside.
/// Heads are a parameter dim: splitting them splits all four projections, and leaves partial sums of y, since the output projection sums over
/// heads. With grouped heads (`kv_heads` below `heads`) the dim counts the key/value heads. Splitting lq replicates k and v; their projections
/// are counted once in all, as where every shard projects its part and the parts are gathered (as many bytes as reading k and v whole).
/// A causal mask does not halve the flops: the literature counts scores whole (Narayanan et al., SC 2021, appendix). The recomputation of the
/// scores in a flash backward pass (Dao et al., NeurIPS 2022) is not counted, as in that formula.
struct multi_head_attention {
    static constexpr std::string_view kind = "multi_head_attention";
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< 0: as many as heads
    std::int64_t head_size = 0; ///< 0: e / heads
    std::int64_t out = 0;       ///< 0: e
    bool causal = false;        ///< needs lq = lk
    bool bias = true;
    std::string parameter{};
    bool flash = true; ///< keeps a statistic per row of scores for backward, else all probabilities
    /// Weights: q_weight[heads * d, e], k_weight[kv * d, ek], v_weight[kv * d, ev], out_weight[out, heads * d] and a bias for each.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_attention_inputs(inputs);
        auto const& q = inputs[0];
        auto const type = q.type;
        auto const groups = detail::kv_groups(heads, kv_heads);
        auto const embedded = q.extents[2];
        if (!detail::checked("head_size", head_size, 0) && embedded % heads)
            throw invalid_input(detail::shown(inputs, 0), ": option heads is ", heads, ": must divide axis 2 where head_size is not given");
        auto const d = head_size ? head_size : embedded / heads;
        auto const wide = detail::checked_product("heads * head_size", heads, d);
        auto const results = detail::checked("out", out, 0) ? out : embedded;
        if (causal) detail::expect_extent(inputs, 1, 1, q.extents[1], "the length of input 0 (option causal)");

        operation op{.kind = std::string(kind), .work = work_class::attention};
        detail::add_attention_dims(op, inputs, groups, dim_kind::parameter);
        auto const queries = static_cast<double>(q.extents[0]) * static_cast<double>(q.extents[1]);
        auto const keys = static_cast<double>(q.extents[0]) * static_cast<double>(inputs[1].extents[1]);
        double const heads_rows = queries * static_cast<double>(heads), length = static_cast<double>(inputs[1].extents[1]);

        // The projection of input i: rows of a weight along the heads.
        auto const project = [&](std::size_t i, std::string const& name, double rows, std::int64_t block) {
            auto const features = inputs[i].extents[2];
            double const products = rows * static_cast<double>(block * groups) * static_cast<double>(features);
            auto& in = detail::add_input(op, name, type,
                                         {detail::along(op, 0), i == 0 ? detail::along(op, 1) : detail::along(op, 3), detail::whole(features)});
            in.saved = true;
            in.gradient_flops = 2 * products;
            detail::add_weight(op, parameter, name + "_weight", type, {detail::along(op, 2, block), detail::whole(features)}, 2 * products);
            if (bias) detail::add_weight(op, parameter, name + "_bias", type, {detail::along(op, 2, block)}, rows * static_cast<double>(block * groups));
            op.multiply_adds += products;
        };
        project(0, "q", queries, heads / groups * d);
        project(1, "k", keys, d);
        project(2, "v", keys, d);
        double const joined = queries * static_cast<double>(wide) * static_cast<double>(results);
        detail::add_weight(op, parameter, "out_weight", type, {detail::whole(results), detail::along(op, 2, heads / groups * d)}, 2 * joined);
        if (bias) detail::add_weight(op, parameter, "out_bias", type, {detail::whole(results)}, queries * static_cast<double>(results));
        detail::add_output(op, "y", type, {detail::along(op, 0), detail::along(op, 1), detail::whole(results)});

        double const core = heads_rows * length * static_cast<double>(d); // multiply-adds of the scores, and of the context
        op.multiply_adds += joined + 2 * core;
        op.flops = 2 * op.multiply_adds + detail::score_forward * heads_rows * length;
        if (bias)
            op.flops += queries * static_cast<double>(wide + results) + 2 * keys * static_cast<double>(groups * d);
        // Gradients of the context, and of scores, probabilities, projected keys and values.
        op.backward_flops = 2 * joined + 8 * core + detail::score_backward * heads_rows * length;
        // Projected queries, context, projected keys and values.
        op.saved_bytes = (2 * queries * static_cast<double>(wide) + 2 * keys * static_cast<double>(groups * d)) * static_cast<double>(size_of(type)) +
                         detail::saved_scores(heads_rows, length, type, flash);
        return detail::finished(std::move(op));
    }
};

/// Scaled dot-product attention: q[s, lq, heads * d], k[s, lk, kv * d], v[s, lk, kv * dv] -> y[s, lq, heads * dv]. Nothing is summed over
/// heads here, so splitting them (an attribute dim: there are no weights) splits every operand. Flops as in `multi_head_attention`.
struct attention {
    static constexpr std::string_view kind = "attention";
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0; ///< 0: as many as heads
    bool causal = false;       ///< needs lq = lk
    bool flash = true;         ///< keeps a statistic per row of scores for backward, else all probabilities
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        detail::expect_attention_inputs(inputs);
        auto const groups = detail::kv_groups(heads, kv_heads);
        auto const per_group = heads / groups;
        auto const& q = inputs[0].extents;
        for (std::size_t i = 0; i < 3; ++i)
            if (auto const parts = i ? groups : heads; inputs[i].extents[2] % parts)
                throw invalid_input(detail::shown(inputs, i), ": axis 2 must be a multiple of its ", parts, " heads");
        auto const d = q[2] / heads, dv = inputs[2].extents[2] / groups;
        detail::expect_extent(inputs, 1, 2, detail::checked_product("kv_heads * head size", groups, d), "the key/value heads times the head size of input 0");
        if (causal) detail::expect_extent(inputs, 1, 1, q[1], "the length of input 0 (option causal)");
        auto const results = detail::checked_product("heads * value size", heads, dv);

        operation op{.kind = std::string(kind), .work = work_class::attention};
        detail::add_attention_dims(op, inputs, groups, dim_kind::attribute);
        double const rows = static_cast<double>(q[0]) * static_cast<double>(q[1]) * static_cast<double>(heads);
        double const length = static_cast<double>(inputs[1].extents[1]);
        double const scores = rows * length * static_cast<double>(d), context = rows * length * static_cast<double>(dv);
        auto const add_operand = [&](std::string name, std::uint32_t along_length, std::int64_t block, double gradient) {
            auto& in = detail::add_input(op, std::move(name), inputs[0].type,
                                         {detail::along(op, 0), detail::along(op, along_length), detail::along(op, 2, block)});
            in.saved = true;
            in.gradient_flops = gradient;
        };
        add_operand("q", 1, per_group * d, 2 * scores);
        add_operand("k", 3, d, 2 * scores);
        add_operand("v", 3, dv, 2 * context);
        auto& y = detail::add_output(op, "y", inputs[0].type, {detail::along(op, 0), detail::along(op, 1), detail::along(op, 2, results / groups)});
        y.saved = flash; // a flash backward pass starts from the output
        op.multiply_adds = scores + context;
        op.flops = 2 * op.multiply_adds + detail::score_forward * rows * length;
        op.backward_flops = 2 * context + detail::score_backward * rows * length; // the gradient of the probabilities, and softmax
        op.saved_bytes = detail::saved_scores(rows, length, inputs[0].type, flash);
        return detail::finished(std::move(op));
    }
};

} // namespace parsearch::ops
