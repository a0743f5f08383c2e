#pragma once
/// Graphs whose operators may run in copies and on partial sums.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::space {

/// `g` with dims for `o.copies` copies and `o.sums` partial sums (see `ops::dim_kind`) in its operators, where these options are above 1, so that
/// configurations say how often each is repeated, and any search decides it. Copies trade work for communication; partial sums that stay unreduced
/// are reduced later, once, where tensors may be smaller. Partial sums are of the inputs in which an operator is linear and that may come in partial
/// sums: all of a sum, the first such factor of a product. Operators that have such dims or no place for more, and graph inputs, keep the dims they
/// have. Throws `invalid_input` on options out of range. Complexity: linear. Source: Unger et al., Unity, OSDI 2022, section 3 (replica dims of
/// parallel tensors), copies and sums apart as in flexflow-train.
[[nodiscard]] graph::dense_graph with_replicas(graph::dense_graph g, space_options const& o);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/replicated_operators.ipp>
#endif
