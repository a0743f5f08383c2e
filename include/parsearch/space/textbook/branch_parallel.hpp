#pragma once
/// Branches of a network on different devices.

#include <cstddef>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// The branches of `g` (`graph::parallel_branches`) side by side, each split by samples over a group of `group` neighbours: the group with the least
/// work of the segment so far, the largest branches first. What all ways pass is split by samples over the first `rest` devices. So towers of a
/// network all-reduce their weights within their group alone, as Unity places those of CANDLE Uno (Unger et al., OSDI 2022).
/// Throws `invalid_input` where `group` does not divide `devices`, or `rest` is not from 1 to `devices`.
[[nodiscard]] flat_strategy branch_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t group, std::size_t rest,
                                            bool uneven = false);

/// Whether a fifth of all work, or of the bytes of all weights, is in branches of one segment beside the largest there.
[[nodiscard]] bool has_large_branches(graph::dense_graph const& g);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/branch_parallel.ipp>
#endif
