#pragma once
/// Layers on different devices of a node.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// Layers on different devices of a node, samples split over the nodes: each set of operators that shares parameters, and each
/// other operator with weights, takes the next device of the node in turn; operators without weights follow their first input.
/// Source: Wu et al., Google's neural machine translation system, 2016, section 3.2 (layers over the GPUs of a replica).
/// `per_node` devices of a node are consecutive. Throws `invalid_input` where it does not divide `devices`.
[[nodiscard]] flat_strategy operation_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t per_node, bool uneven = false);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/operation_parallel.ipp>
#endif
