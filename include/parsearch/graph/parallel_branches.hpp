#pragma once
/// The branches of a graph: what can run beside each other.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

/// Operators that neither read what those of another branch make nor share weights with them.
struct branch {
    std::uint32_t segment = 0;              ///< how many operators that all ways pass lie before it, or before the first of those that share weights
    std::vector<std::uint32_t> operators{}; ///< in topological order
    flop_count flops = 0;                   ///< forward
    byte_count bytes = 0;                   ///< of weights; those that several operators share count once for each
};

/// The branches of `g`, where a segment has two or more: by segment, then flops, then bytes, both descending, then number. Ways lead from
/// operators with weights: what no weights are before, such as labels, belongs to the branch of its first reader. Complexity: O(V + E + V log V).
[[nodiscard]] std::vector<branch> parallel_branches(dense_graph const& g);

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/parallel_branches.ipp>
#endif
