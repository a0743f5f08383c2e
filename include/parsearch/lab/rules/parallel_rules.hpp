#pragma once
/// Rules of parallel operators: degrees of parallelism as substitutions, for any operator that has an iteration space.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/operator_split.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>

namespace parsearch::rewrite {

/// Options of `parallel_rules`.
struct parallel_rule_options {
    std::vector<std::int32_t>
        degrees{};                   ///< those by which "split" splits, each at least 2, ascending; none: all that are legal up to `largest_degree`
    std::int32_t largest_degree = 8; ///< at least 2; does not count where there are `degrees`
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(parallel_rule_options const& o);

/// The rules by which degrees of parallelism come, go and move (Unger et al., Unity, OSDI 2022, section 4.2), for every operator: what an operator's
/// operands and outputs are partitioned into, copied or left unsummed follows from its iteration space (`operator_split.hpp`).
/// - split: an operator in one part along a dim, in several; its operands are partitioned and replicated for it, its outputs combined and reduced.
/// - unsplit: the converse.
/// - combine_behind, partition_before: a combine in front of an operator moves behind it, a partition behind it moves in front.
/// - reduce_behind: a reduce in front of an operator that is linear in what is reduced moves behind it; reduce_before: the converse.
/// - replicate_before: a replicate behind an operator moves in front, so that it runs in copies; replicate_behind: the converse.
/// - simplify: the reshardings between two operators become fewer; what cancels is gone.
/// All but split leave between the operator and its neighbours the fewest reshardings that do. Each keeps values and gradients as far as splits do: a
/// batch normalization that is split along what it normalises over takes its statistics of each part (see `ops::batch_norm`). What no parallel tensor
/// can hold is left out, and so are equal graphs. Complexity: O(V + E) per graph that is made, but for comparing equal ones. Throws `invalid_input`
/// on options out of range.
[[nodiscard]] std::vector<graph_rule> parallel_rules(parallel_rule_options options = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/rules/parallel_rules.ipp>
#endif
