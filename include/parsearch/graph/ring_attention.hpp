#pragma once
/// Attention that passes keys and values on in a ring.

#include <cstddef>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::graph {

/// `g` whose attentions pass keys and values on where three shards or more of a sequence's queries hold a part of them each: a shard computes with
/// the part that it has while the next is on its way (Liu et al., Ring Attention with blockwise transformers, ICLR 2024). Where heads are whole it
/// keeps its own part alone, so that backward passes them on again (`ops::ring_parts`). Others gather all of them first, and keep them (Dubey et al.,
/// The Llama 3 herd of models, 2024, section 3.3.2). The kernel of a part takes its share of the whole's time. Not with pairwise movement, see
/// `sim::make_workload`. Complexity: O(operators + edges).
[[nodiscard]] operator_graph with_ring_attention(operator_graph const& g);

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/ring_attention.ipp>
#endif
