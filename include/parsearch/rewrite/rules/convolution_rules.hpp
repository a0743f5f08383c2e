#pragma once
/// Rules of convolutions: a larger kernel, so that siblings merge; for inference, the batch normalization behind one in its weights.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>
#include <parsearch/rewrite/rules/rewriting_site.hpp>

namespace parsearch::rewrite::detail {

/// A convolution and the kernel that it is to have.
using kernel_change = std::pair<std::uint32_t, std::vector<std::int64_t>>;

/// Changes `h`, a copy of `site`'s graph: `changes` to some of `siblings`. The others behind the first that changes are made anew too, since siblings
/// merge in the order of their numbers, and what is behind them may ask for that.
void enlarge(parallel_graph& h, rewriting_site const& site, std::vector<std::uint32_t> const& siblings, std::vector<kernel_change> const& changes);

/// Convolutions that read one tensor and would merge but for their kernels: with the larger extent of the two along each axis. The larger kernel is
/// the old one, padded with zeros by an operator, so that training is the same too; for inference it folds (`fold_weights`).
[[nodiscard]] std::vector<rewritten> enlarge_everywhere(parallel_graph const& g);

/// A convolution or linear layer and the batch normalization behind it, for inference, as one whose weights are scaled: with
/// weight'[o, ...] = weight[o, ...] * scale[o] and bias'[o] = bias[o] * scale[o] + offset[o], which operators compute and `fold_weights` folds.
[[nodiscard]] std::vector<rewritten> fold_batch_norm_everywhere(parallel_graph const& g);

} // namespace parsearch::rewrite::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/convolution_rules.ipp>
#endif
