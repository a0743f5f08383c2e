#pragma once
/// Totals of an operator graph: parameters, multiply-adds, flops of a forward pass and of a training step.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::models {

struct summary {
    std::size_t operators = 0;     ///< without graph inputs
    std::int64_t parameters = 0;   ///< elements of all weights; a shared tensor counts once
    byte_count cache = 0;          ///< of all samples, kept from one iteration of inference to the next
    flop_count multiply_adds = 0;  ///< of the contractions of a forward pass
    flop_count forward_flops = 0;  ///< of a forward pass
    flop_count training_flops = 0; ///< of forward and backward; nothing is recomputed, the optimizer's step not counted
};

/// Flops of the backward pass of operator `op`: 0 where no gradient flows through it.
[[nodiscard]] flop_count backward_flops(graph::dense_graph const& g, std::size_t op);

/// Complexity: linear in operators, operands and edges.
[[nodiscard]] summary summarize(graph::dense_graph const& g);

/// The same for any operator graph that `graph::read_graph` accepts.
template <OperatorGraph G> [[nodiscard]] summary summarize(G const& g) { return summarize(graph::read_graph(g).graph); }

} // namespace parsearch::models

#ifndef PARSEARCH_COMPILED
#include <parsearch/models/summary.ipp>
#endif
