#pragma once
/// Context parallelism: positions of sequences split among devices.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// Of each operator, the dim that numbers positions of sequences: that of an attention's queries, and attribute dims that run along the same axis of
/// a tensor. Complexity: linear in edges and their axes.
[[nodiscard]] std::vector<std::optional<std::uint32_t>> position_dims(graph::dense_graph const& g);

/// Into how many parts the sequences of `g` may be split: the greatest common divisor of the lengths of its attentions' queries. 1 where there are
/// none, or more than a tenth of the flops of matrix products and attention have no positions (those of a mixture's experts, of recurrent layers).
[[nodiscard]] std::int64_t positions_of(graph::dense_graph const& g);

/// Over how many neighbours the heads of attentions may be split beside tensor parallelism: the greatest common divisor of their (key/value) heads. 1
/// where there are none, or projections are inside.
[[nodiscard]] std::int64_t splittable_heads(graph::dense_graph const& g);

/// `tensor_parallel` of degree `tensor` among neighbours, positions of sequences over `context` groups of these, samples over the rest. An attention
/// needs all keys and values of its sequences. Its queries are split, so that keys and values are gathered (Dubey et al., The Llama 3 herd of models,
/// 2024, section 3.3.2; Liu et al., Ring Attention, 2023, moves as many bytes). Or its heads are split over `heads` of the `context` neighbours, so
/// that queries, keys, values and results change hands by all-to-all, and queries over the rest (all by heads: Jacobs et al., DeepSpeed Ulysses,
/// 2023; both: Fang and Zhao, USP, 2024). An attention with its projections inside, or whose (key/value) heads are no multiple of `heads`, splits its
/// queries alone. What has no positions, or not as many as parts, is as in `tensor_parallel` over all devices. Throws `invalid_input` where
/// `tensor * context` does not divide `devices`, or `heads` not `context`, or both heads and `tensor` are above 1: it splits heads, too.
[[nodiscard]] flat_strategy context_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t context, std::size_t tensor = 1,
                                             std::size_t heads = 1, bool uneven = false);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/context_parallel.ipp>
#endif
