#pragma once
/// Weights that are only joined, cut or turned before they are used are held joined, cut or turned; for inference, all that is computed of weights is
/// held.

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace parsearch::rewrite {

/// `g` in which every operator that only moves elements of weights (a concat, split, transpose or view in one task), which nobody else reads, is
/// replaced by weights of the shapes it makes: what merging makes of weights costs nothing while the network runs. The new weights are named after
/// the old: "a|b" joined, "a[0]", "a[1]" cut, "a'" turned. Training is the same: gradients of moved elements are moved gradients.
/// For inference every operator in one task that reads nothing but weights, whoever else reads these, is replaced by what it makes of them once: a
/// kernel with its border, weights scaled by a batch normalization behind them. Other than those above, these weights are named after the operator.
/// What is a result stays computed, but for moved weights. Complexity: O(V log V + operators replaced (V + E)).
[[nodiscard]] parallel_graph fold_weights(parallel_graph g, purpose use = purpose::training);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/fold_weights.ipp>
#endif
