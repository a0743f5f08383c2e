#pragma once
/// Where a network is narrow, and the blocks that repeat between such places.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

/// What crosses each place: the sum of `weight(op, slot)` over the tensors made before it and read at or behind it. `order`: operators with work, in
/// topological order; place i is before the i-th of them. Complexity: linear in edges.
template <class Weight>
[[nodiscard]] std::vector<std::int64_t> crossing_sums(dense_graph const& g, std::span<std::uint32_t const> order, Weight const& weight) {
    std::vector<std::size_t> place(g.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<std::int64_t> out(order.size() + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::uint32_t slot = 0; slot < g.operations[order[i]].outputs.size(); ++slot) {
            auto last = i;
            for (auto const e : g.out(order[i]))
                if (g.edges[e].slot == slot) last = std::max(last, place[g.edges[e].consumer]);
            auto const amount = weight(order[i], slot);
            out[i + 1] += amount;
            out[last + 1] -= amount;
        }
    std::partial_sum(out.begin(), out.end(), out.begin());
    out.pop_back();
    return out;
}

/// Places that fewer tensors cross than those before and behind, as far as these differ. Ascending, from 1. Linear.
[[nodiscard]] std::vector<std::size_t> narrow_places(std::span<std::int64_t const> crossing);

/// Of the borders of a sequence of parts, those where a period begins or ends: `kinds[i]` says which parts are alike. Appends their numbers, each
/// plus `offset`, ascending. The period that covers the most parts in one run counts first; where nothing repeats, all borders do. Linear, times the
/// longest period (64).
void borders_of_periods(std::span<std::uint32_t const> kinds, std::size_t offset, std::vector<std::size_t>& out);

/// What lies between `places`, in numbers: alike where kinds and extents of the operators are. Linear.
[[nodiscard]] std::vector<std::uint32_t> kinds_between(dense_graph const& g, std::span<std::uint32_t const> order,
                                                       std::span<std::size_t const> places);

/// The places where blocks begin, ascending, without 0: the borders of the parts between narrow places that repeat in a period, such as attention and
/// perceptron; where nothing repeats, all narrow places. `narrow`: `narrow_places` of the numbers of tensors that cross. Complexity: linear in
/// operators, and in parts times the longest period (64).
[[nodiscard]] std::vector<std::size_t> block_places(dense_graph const& g, std::span<std::uint32_t const> order, std::span<std::size_t const> narrow);

/// Of each operator, the one of the lowest number that is at the same place of a block like its own (the feed-forward layer of every layer of a
/// network): itself where no block repeats it. Graph inputs are alone. Complexity: as `block_places`.
[[nodiscard]] std::vector<std::uint32_t> first_repeats(dense_graph const& g);

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/blocks.ipp>
#endif
