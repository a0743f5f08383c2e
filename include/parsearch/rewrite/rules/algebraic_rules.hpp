#pragma once
/// The library's own algebraic rules, for graphs whose operators are not split yet: fusing, merging, cutting and reordering operators.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>
#include <parsearch/rewrite/rules/rewriting_site.hpp>

namespace parsearch::rewrite {

namespace detail {

/// The operators of `members` as one, whose outputs are cut into theirs.
void merge(std::vector<rewritten>& out, rewriting_site const& site, std::vector<std::uint32_t> const& members);

} // namespace detail

/// The library's own algebraic rules: fuse, merge, hoist, sink, cancel, join_sums, factor, enlarge; for inference fold_batch_norm too. They apply to
/// operators in one task; each application has been checked to keep values and gradients (see `operation_algebra.hpp`).
[[nodiscard]] std::vector<graph_rule> algebraic_rules(purpose use = purpose::training);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/algebraic_rules.ipp>
#endif
