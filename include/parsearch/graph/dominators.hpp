#pragma once
/// Dominators of a flow graph on the way from one vertex to another.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::graph {

/// An edge of a flow graph: from, to.
using flow_edge = std::pair<std::uint32_t, std::uint32_t>;

/// The vertices that every path from `entry` to `exit` passes, without these two, in the order in which paths pass them. Empty where
/// no path leads from `entry` to `exit`. Precondition: the ends of all edges, `entry` and `exit` are below `vertices`.
/// They all lie on any one path; a vertex of that path is a dominator where no path bypasses it. Two searches, without the tree of all dominators
/// (Lengauer, Tarjan, TOPLAS 1979), of which one branch is asked for. Complexity: O(V + E).
[[nodiscard]] std::vector<std::uint32_t> dominators_between(std::size_t vertices, std::span<flow_edge const> edges, std::uint32_t entry,
                                                            std::uint32_t exit);

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/dominators.ipp>
#endif
