#pragma once
/// Operators that compute the same: the blocks of a deep network, the steps of an unrolled layer.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::space {

/// Of each operator, the first of those that are of the same kind, dims, flops and operands: itself where it is that. Complexity: operators, times
/// the different ones among them.
[[nodiscard]] std::vector<std::uint32_t> first_alike(graph::dense_graph const& g);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/alike_operators.ipp>
#endif
