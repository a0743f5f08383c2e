#pragma once
/// Attention: with its projections, and the scaled dot-product core alone.

#include <array>
#include <cstdint>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// `operation::variant` of attention where a query sees the keys up to its own position alone.
inline constexpr std::string_view causal_variant = "causal";

namespace detail {
/// Elementwise flops per score: scale, maximum, subtraction, exponential, sum, division; and per score in backward.
inline constexpr double score_forward = 6, score_backward = 5;

} // namespace detail

/// q[s, lq, e], k[s, lk, ek], v[s, lk, ev] -> y[s, lq, out], with the projections of queries, keys, values and output inside.
/// Heads are a parameter dim: splitting them splits all four projections, and leaves partial sums of y, since the output projection sums over
/// heads. With grouped heads (`kv_heads` below `heads`) the dim counts the key/value heads. Splitting lq replicates k and v; their projections
/// are counted once in all, as where every shard projects its part and the parts are gathered (as many bytes as reading k and v whole).
/// With a causal mask, flash kernels compute the scores up to the diagonal alone: half of them. `multiply_adds` counts all, as the literature does
/// (Narayanan et al., SC 2021, appendix). The recomputation of the scores in a flash backward pass (Dao et al., NeurIPS 2022) is not counted.
/// Without flash, scores and probabilities go through memory, and all are computed.
struct multi_head_attention {
    static constexpr std::string_view kind = "multi_head_attention";
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< 0: as many as heads
    std::int64_t head_size = 0; ///< 0: e / heads
    std::int64_t out = 0;       ///< 0: e
    bool causal = false;        ///< needs lq = lk
    bool bias = true;
    std::string parameter{};
    bool flash = true;       ///< keeps a statistic per row of scores for backward, else all probabilities
    double dropout = 0;      ///< probability that one of these is dropped
    bool cache = false;      ///< inference: keys and values are kept for later tokens, see `attention`
    std::int64_t cached = 0; ///< positions of which a cache has them already
    /// Weights: q_weight[heads * d, e], k_weight[kv * d, ek], v_weight[kv * d, ev], out_weight[out, heads * d] and a bias for each.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// How an operand of `attention` is laid out. l is lq of queries and results, lk of keys and values.
enum class attention_layout : std::uint8_t {
    packed,      ///< [s, l, heads * d]
    by_position, ///< [s, l, heads, d]
    by_head,     ///< [s, heads, l, d]
    transposed,  ///< [s, heads, d, l]
    length_first ///< [l, s, heads * d]
};
inline constexpr std::size_t attention_layouts = 5;
[[nodiscard]] constexpr std::string_view name_of(attention_layout l) noexcept {
    constexpr std::array<std::string_view, attention_layouts> names{"packed", "by_position", "by_head", "transposed", "length_first"};
    return names[static_cast<std::size_t>(l)];
}

[[nodiscard]] constexpr bool joins_heads(attention_layout l) noexcept { return l == attention_layout::packed || l == attention_layout::length_first; }

namespace detail {

/// Which axis of an operand in layout `l` holds what. `size` is the axis of a head's elements, of all heads where they are joined.
struct head_axis_numbers {
    std::size_t samples, length, size;
};
[[nodiscard]] constexpr head_axis_numbers axis_numbers(attention_layout l) noexcept {
    constexpr std::array<head_axis_numbers, attention_layouts> table{{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {0, 3, 2}, {1, 0, 2}}};
    return table[static_cast<std::size_t>(l)];
}

/// What an operand holds per head.
struct head_extents {
    std::int64_t samples, length, size;
};
/// Reads input `i`, which has `heads` heads in layout `l`.
[[nodiscard]] head_extents read_heads(std::span<tensor const> inputs, std::size_t i, attention_layout l, std::int64_t heads);

/// The axes of an operand in layout `l` of heads of `size` elements, `per_group` of them per value of dim `heads`.
[[nodiscard]] std::vector<axis> head_axes(operation const& op, attention_layout l, std::uint32_t samples, std::uint32_t length, std::uint32_t heads,
                                          std::int64_t per_group, std::int64_t size);
} // namespace detail

/// Scaled dot-product attention: q[s, lq, heads * d], k[s, lk, kv * d], v[s, lk, kv * dv] -> y[s, lq, heads * dv], or other layouts of these.
/// Further inputs are masks, each of which is added to the scores, or selects among them: their axes are those of [s, heads, lq, lk], from the
/// last, with extent 1 where they are repeated, or those of [s * heads, lq, lk]. A gradient flows to a mask that is computed from parameters.
/// Nothing is summed over heads here, so splitting them (an attribute dim: there are no weights) splits every operand. Work as in
/// `multi_head_attention`, and a flop per score for each mask.
///
/// With `cache` this is a pass of inference: keys and values of its tokens are kept, each beside the query of its token, and those of `cached`
/// earlier tokens are read. Its kind is "cached_attention": other kernels do it. `cached` is the dim "past", of kind reduction. Its parts give
/// partial sums of y (Flash-Decoding: T. Dao et al., 2023); the two statistics of each row by which these are weighed, 8 bytes of some hundred, are
/// not counted as sent. A prefill has all tokens of a prompt and nothing cached, a step of decoding has one token, and a chunk of a prefill has both.
struct attention {
    static constexpr std::string_view kind = "attention";
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;                 ///< 0: as many as heads
    bool causal = false;                       ///< needs lq = lk
    bool flash = true;                         ///< keeps a statistic per row of scores for backward, else all probabilities
    std::array<attention_layout, 4> layouts{}; ///< of q, k, v, y
    bool cache = false;                        ///< inference: keys and values are kept for later tokens; takes no mask
    std::int64_t cached = 0;                   ///< positions of which a cache has them already
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;

  private:
    /// The axes of mask `i`.
    static std::vector<axis> mask_axes(operation const& op, std::span<tensor const> inputs, std::size_t i, std::int64_t per_group);
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/attention.ipp>
#endif
