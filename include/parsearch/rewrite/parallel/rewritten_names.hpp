#pragma once
/// Names of operators after rewriting.

#include <string>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::rewrite {

/// Gives operators of `g`, which rewriting made of `model`, back the names of the model: what is put in the place of an operator of its own name is
/// numbered, "a~2", "a~2|b", while that is still there. Numbers go where the name without them is free. Names that the model has stay, and distinct
/// names stay distinct. Complexity: O(n log n).
void keep_names(graph::dense_graph& g, graph::dense_graph const& model);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/rewritten_names.ipp>
#endif
