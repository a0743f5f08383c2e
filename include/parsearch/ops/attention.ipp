#pragma once
// Attention: with its projections, and the scaled dot-product core alone.

#include <parsearch/ops/attention.hpp>

namespace parsearch::ops::detail {

/// What the scores of an attention of `rows` rows cost: a row is of one query and head.
struct score_cost {
    double computed;            ///< scores that are computed: with a causal mask, flash kernels leave out those above the diagonal
    double saved;               ///< bytes kept
    double memory = 0;          ///< bytes of intermediate results that forward moves
    double backward_memory = 0; ///< and backward
};

} // namespace parsearch::ops::detail

namespace parsearch::ops::detail {

/// The key/value heads where `kv_heads` may be 0. Throws unless they divide the heads.
PARSEARCH_INLINE std::int64_t kv_groups(std::int64_t heads, std::int64_t kv_heads) {
    checked("heads", heads);
    auto const groups = checked("kv_heads", kv_heads, 0) ? kv_heads : heads;
    if (heads % groups) throw invalid_input("option kv_heads is ", kv_heads, ": must divide option heads (", heads, ")");
    return groups;
}

/// Checks what both forms ask of q[s, lq, .], k[s, lk, .], v[s, lk, .].
PARSEARCH_INLINE void expect_attention_inputs(std::span<tensor const> inputs) {
    expect_inputs(inputs, 3);
    for (std::size_t i = 0; i < 3; ++i) expect_rank(inputs, i, 3);
    expect_floating(inputs, 0, 2);
    for (std::size_t i = 1; i < 3; ++i) expect_extent(inputs, i, 0, inputs[0].extents[0], "the samples of input 0");
    expect_extent(inputs, 2, 1, inputs[1].extents[1], "the length of input 1");
}

/// Checks the options of a cache of `length` keys and values for `queries`.
PARSEARCH_INLINE void expect_cache_options(bool cache, std::int64_t cached, std::int64_t queries, std::int64_t length) {
    if (checked("cached", cached, 0) && !cache) throw invalid_input("option cached is ", cached, ": must be 0 where option cache is false");
    if (cache && queries != length)
        throw invalid_input("option cache is true, with ", queries, " queries and ", length,
                            " new keys: must be as many, since a token has one of each");
}

/// Adds the dims s, lq, heads (in groups), lk, and past where some positions are cached.
PARSEARCH_INLINE void add_attention_dims(operation& op, std::int64_t samples, std::int64_t queries, std::int64_t groups, dim_kind kind,
                                         std::int64_t keys, std::int64_t cached) {
    add_dim(op, "s", samples, dim_kind::sample);
    add_dim(op, "lq", queries, dim_kind::attribute);
    add_dim(op, "heads", groups, kind);
    add_dim(op, "lk", keys, dim_kind::fixed);
    if (cached) add_dim(op, "past", cached, dim_kind::reduction);
}

/// Adds what a cache holds of keys and of values: what is cached, in the order of positions, and what this pass adds.
PARSEARCH_INLINE void add_cached(operation& op, dtype type, std::int64_t key_size, std::int64_t value_size) {
    for (std::uint32_t const length : {4U, 1U}) {
        if (length >= op.dims.size()) continue;
        std::string const when = length == 4 ? "past_" : "new_";
        add_cache(op, when + "k", type, {along(op, 0), along(op, 2), along(op, length), whole(key_size)});
        add_cache(op, when + "v", type, {along(op, 0), along(op, 2), along(op, length), whole(value_size)});
    }
}

/// Flash keeps a statistic (f32) of each row, and nothing goes through memory. Else a kernel each makes scores, probabilities (kept) and, with
/// dropout, a mask of bytes and what it leaves (both kept), and each reads what the one before wrote; backward has kernels for the gradients of these
/// in turn, the last of which two products read.
/// Each query sees all of the `cached` positions.
PARSEARCH_INLINE score_cost scores_of(double rows, double length, double cached, dtype type, bool causal, bool flash, bool dropout) noexcept {
    if (flash) return {rows * (cached + (causal ? (length + 1) / 2 : length)), rows * static_cast<double>(size_of(dtype::f32))};
    double const scores = rows * (cached + length), bytes = scores * static_cast<double>(size_of(type));
    if (dropout) return {scores, 2 * bytes + scores, 4 * bytes, 7 * bytes};
    return {scores, bytes, 3 * bytes, 6 * bytes};
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation multi_head_attention::infer(std::span<tensor const> inputs) const {
    detail::expect_attention_inputs(inputs);
    auto const& q = inputs[0];
    auto const type = q.type;
    auto const groups = detail::kv_groups(heads, kv_heads);
    auto const embedded = q.extents[2];
    if (!kit::checked("head_size", head_size, 0) && embedded % heads)
        throw invalid_input(kit::shown(inputs, 0), ": option heads is ", heads, ": must divide axis 2 where head_size is not given");
    auto const d = head_size ? head_size : embedded / heads;
    auto const wide = kit::checked_product("heads * head_size", heads, d);
    auto const results = kit::checked("out", out, 0) ? out : embedded;
    if (causal) kit::expect_extent(inputs, 1, 1, q.extents[1], "the length of input 0 (option causal)");
    if (!(dropout >= 0 && dropout < 1)) throw invalid_input("option dropout is ", dropout, ": must be at least 0 and below 1");
    detail::expect_cache_options(cache, cached, q.extents[1], inputs[1].extents[1]);

    operation op{.kind = cache ? text("cached_", kind) : std::string(kind), .work = work_class::attention};
    if (causal) op.variant = causal_variant;
    detail::add_attention_dims(op, q.extents[0], q.extents[1], groups, dim_kind::parameter, inputs[1].extents[1], cached);
    auto const queries = static_cast<double>(q.extents[0]) * static_cast<double>(q.extents[1]);
    auto const keys = static_cast<double>(q.extents[0]) * static_cast<double>(inputs[1].extents[1]);
    double const heads_rows = queries * static_cast<double>(heads), length = static_cast<double>(inputs[1].extents[1]);
    double const before = static_cast<double>(cached);

    // The projection of input i: rows of a weight along the heads.
    auto const project = [&](std::size_t i, std::string const& name, double rows, std::int64_t block) {
        auto const features = inputs[i].extents[2];
        double const products = rows * static_cast<double>(block * groups) * static_cast<double>(features);
        auto& in = kit::add_input(op, name, type, {kit::along(op, 0), i == 0 ? kit::along(op, 1) : kit::along(op, 3), kit::whole(features)});
        in.saved = true;
        in.gradient_flops = 2 * products;
        kit::add_weight(op, parameter, name + "_weight", type, {kit::along(op, 2, block), kit::whole(features)}, 2 * products);
        if (bias) kit::add_weight(op, parameter, name + "_bias", type, {kit::along(op, 2, block)}, rows * static_cast<double>(block * groups));
        op.multiply_adds += products;
    };
    project(0, "q", queries, heads / groups * d);
    project(1, "k", keys, d);
    project(2, "v", keys, d);
    double const joined = queries * static_cast<double>(wide) * static_cast<double>(results);
    kit::add_weight(op, parameter, "out_weight", type, {kit::whole(results), kit::along(op, 2, heads / groups * d)}, 2 * joined);
    if (bias) kit::add_weight(op, parameter, "out_bias", type, {kit::whole(results)}, queries * static_cast<double>(results));
    kit::add_output(op, "y", type, {kit::along(op, 0), kit::along(op, 1), kit::whole(results)});
    if (cache) detail::add_cached(op, type, d, d);

    auto const scores = detail::scores_of(heads_rows, length, before, type, causal, flash, dropout > 0);
    double const core = scores.computed * static_cast<double>(d); // multiply-adds of the scores, and of the context
    op.multiply_adds += joined;
    op.product_flops = 2 * op.multiply_adds;
    op.multiply_adds += 2 * heads_rows * (before + length) * static_cast<double>(d);
    op.flops = op.product_flops + 4 * core + detail::score_forward * scores.computed;
    if (bias) op.flops += queries * static_cast<double>(wide + results) + 2 * keys * static_cast<double>(groups * d);
    // Gradients of the context, and of scores, probabilities, projected keys and values.
    op.backward_product_flops = 2 * joined;
    op.backward_flops = op.backward_product_flops + 8 * core + detail::score_backward * scores.computed;
    // Between the products: projected queries and the context, projected keys and values. Forward reads each once. Backward reads the context
    // twice; it writes the gradient of the context and reads it, writes the other three and reads each for its input and its weight.
    double const rows = queries * static_cast<double>(wide) * static_cast<double>(size_of(type));
    double const memory = keys * static_cast<double>(groups * d) * static_cast<double>(size_of(type));
    op.saved_bytes = 2 * rows + 2 * memory + scores.saved;
    op.intermediate_bytes = 2 * rows + 2 * memory + scores.memory;
    op.backward_intermediate_bytes = 6 * rows + 6 * memory + scores.backward_memory;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops

namespace parsearch::ops::detail {

PARSEARCH_INLINE head_extents read_heads(std::span<tensor const> inputs, std::size_t i, attention_layout l, std::int64_t heads) {
    expect_rank(inputs, i, joins_heads(l) ? 3 : 4);
    auto const at = axis_numbers(l);
    auto const& e = inputs[i].extents;
    if (!joins_heads(l)) expect_extent(inputs, i, l == attention_layout::by_position ? 2 : 1, heads, "its heads");
    else if (e[2] % heads) throw invalid_input(shown(inputs, i), ": axis 2 must be a multiple of its ", heads, " heads");
    return {e[at.samples], e[at.length], joins_heads(l) ? e[2] / heads : e[at.size]};
}

PARSEARCH_INLINE std::vector<axis> head_axes(operation const& op, attention_layout l, std::uint32_t samples, std::uint32_t length,
                                             std::uint32_t heads, std::int64_t per_group, std::int64_t size) {
    auto const s = along(op, samples), at = along(op, length);
    auto const parted = along(op, heads, per_group), joined = along(op, heads, per_group * size);
    switch (l) {
    case attention_layout::packed: return {s, at, joined};
    case attention_layout::by_position: return {s, at, parted, whole(size)};
    case attention_layout::by_head: return {s, parted, at, whole(size)};
    case attention_layout::transposed: return {s, parted, whole(size), at};
    case attention_layout::length_first: break;
    }
    return {at, s, joined};
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation attention::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3, ~std::size_t{0});
    kit::expect_floating(inputs, 0, 2);
    auto const groups = detail::kv_groups(heads, kv_heads);
    auto const per_group = heads / groups;
    auto const q = detail::read_heads(inputs, 0, layouts[0], heads), k = detail::read_heads(inputs, 1, layouts[1], groups),
               v = detail::read_heads(inputs, 2, layouts[2], groups);
    auto const k_axes = detail::axis_numbers(layouts[1]), v_axes = detail::axis_numbers(layouts[2]);
    kit::expect_extent(inputs, 1, k_axes.samples, q.samples, "the samples of input 0");
    kit::expect_extent(inputs, 2, v_axes.samples, q.samples, "the samples of input 0");
    kit::expect_extent(inputs, 2, v_axes.length, k.length, "the length of input 1");
    if (joins_heads(layouts[1]))
        kit::expect_extent(inputs, 1, 2, kit::checked_product("kv_heads * head size", groups, q.size),
                           "the key/value heads times the head size of input 0");
    else kit::expect_extent(inputs, 1, k_axes.size, q.size, "the head size of input 0");
    if (causal) kit::expect_extent(inputs, 1, k_axes.length, q.length, "the length of input 0 (option causal)");
    (void)kit::checked_product("heads * value size", heads, v.size);
    detail::expect_cache_options(cache, cached, q.length, k.length);
    if (cache && inputs.size() > 3) throw invalid_input("option cache is true, with ", inputs.size() - 3, " masks: must have none");

    operation op{.kind = cache ? text("cached_", kind) : std::string(kind), .work = work_class::attention};
    if (causal) op.variant = causal_variant;
    detail::add_attention_dims(op, q.samples, q.length, groups, dim_kind::attribute, k.length, cached);
    double const rows = static_cast<double>(q.samples) * static_cast<double>(q.length) * static_cast<double>(heads);
    double const length = static_cast<double>(k.length), before = static_cast<double>(cached);
    auto const cost = detail::scores_of(rows, length, before, inputs[0].type, causal, flash, false);
    double const scores = cost.computed * static_cast<double>(q.size), context = cost.computed * static_cast<double>(v.size);
    auto const add_operand = [&](std::string name, std::size_t i, std::uint32_t along_length, std::int64_t heads_per_group, std::int64_t size,
                                 double gradient) {
        auto& in = kit::add_input(op, std::move(name), inputs[0].type, detail::head_axes(op, layouts[i], 0, along_length, 2, heads_per_group, size));
        in.saved = true;
        in.gradient_flops = gradient;
    };
    add_operand("q", 0, 1, per_group, q.size, 2 * scores);
    add_operand("k", 1, 3, 1, q.size, 2 * scores);
    add_operand("v", 2, 3, 1, v.size, 2 * context);
    for (std::size_t i = 3; i < inputs.size(); ++i) {
        auto& mask = kit::add_input(op, inputs.size() == 4 ? "mask" : text("mask", i - 3), inputs[i].type, mask_axes(op, inputs, i, per_group));
        mask.saved = flash; // the scores are computed again
        if (mask.differentiable) mask.gradient_flops = kit::elements(inputs[i]) < rows * length ? cost.computed : 0;
    }
    auto& y = kit::add_output(op, "y", inputs[0].type, detail::head_axes(op, layouts[3], 0, 1, 2, per_group, v.size));
    y.saved = flash; // a flash backward pass starts from the output
    if (cache) detail::add_cached(op, inputs[0].type, q.size, v.size);
    op.multiply_adds = rows * (before + length) * static_cast<double>(q.size + v.size);
    op.flops = 2 * (scores + context) + (detail::score_forward + static_cast<double>(inputs.size() - 3)) * cost.computed;
    op.backward_flops = 2 * context + detail::score_backward * cost.computed; // the gradient of the probabilities, and softmax
    op.saved_bytes = cost.saved;
    op.intermediate_bytes = cost.memory;
    op.backward_intermediate_bytes = cost.backward_memory;
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE std::vector<axis> attention::mask_axes(operation const& op, std::span<tensor const> inputs, std::size_t i, std::int64_t per_group) {
    auto const& e = inputs[i].extents;
    std::array<axis, 4> const scores{kit::along(op, 0), kit::along(op, 2, per_group), kit::along(op, 1), kit::along(op, 3)};
    kit::expect_rank(inputs, i, 0, 4);
    std::vector<axis> axes;
    for (std::size_t a = 0; a < e.size(); ++a) {
        auto const& full = scores[4 - e.size() + a];
        auto const joined = op.dims[0].extent * scores[1].extent;
        if (e[a] == full.extent) axes.push_back(full);
        else if (e[a] == 1) axes.push_back(kit::whole(1));
        else if (a == 0 && e.size() == 3 && e[a] == joined) axes.push_back(kit::along(op, 0, scores[1].extent));
        else
            throw invalid_input(kit::shown(inputs, i), ": axis ", a, " must have extent ", full.extent, " or 1: a mask is broadcast to the scores, [",
                                op.dims[0].extent, ',', scores[1].extent, ',', op.dims[1].extent, ',', op.dims[3].extent, ']');
    }
    return axes;
}

} // namespace parsearch::ops
