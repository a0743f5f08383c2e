#pragma once
/// A parallel computation graph for people to read.

#include <cstddef>
#include <string>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/operator_split.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/parallel/parallel_tensor.hpp>

namespace parsearch::rewrite {

/// "o4 k2 copies2 3 micro-batches"; "whole" of what runs in one task at once.
[[nodiscard]] std::string to_string(operator_split const& s, ops::operation const& op);

/// A line per node in topological order: its number, what it is, the numbers of the nodes that it reads (with the slot behind a dot where it is not
/// 0), how its outputs are held. A line of results last. Throws `invalid_input` where the graph goes round in a cycle.
[[nodiscard]] std::string to_string(parallel_graph const& g);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/parallel_graph_text.ipp>
#endif
