#pragma once
/// Depth-first branch and bound on the bounds of mini-buckets.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/search/additive/bucket_elimination.hpp>

namespace parsearch::search::additive {

/// How a search of a tree ended.
enum class tree_end : std::uint8_t { complete, node_limit, stopped };

/// Chooses variables in the reverse order of `e`, cheapest values first, and prunes what cannot be below `upper`. The bound of a node is
/// what its choices cost plus the messages of all later buckets: exact where no bucket was split, so that only split buckets branch.
/// - `found(chosen)` is told each assignment that is reached and answers the new `upper`.
/// - `open(bound)` is told, now and then, a bound on everything that is not yet searched.
/// - `tolerance`: nodes this close below `upper` are pruned too; 0 where sums are exact.
/// Source: Kask, Dechter, A general scheme for automatic generation of search heuristics from specification dependencies, AIJ 2001.
/// Memory: O(sum of the variables' sizes).
template <class N>
tree_end branch_and_bound(elimination<N> const& e, std::span<std::uint32_t> chosen, N upper, N tolerance, std::uint64_t node_limit,
                          std::function<N(std::span<std::uint32_t const>)> const& found, std::function<void(N)> const& open,
                          std::function<bool()> const& stop) {
    struct level {
        std::vector<std::pair<N, std::uint32_t>> open; ///< bound and value, ascending
        std::size_t next = 0;
    };
    auto const& order = e.plan().order;
    std::size_t const depth = order.size();
    std::vector<level> levels(depth);
    std::vector<N> row;
    std::size_t at = 0; // the variable that is chosen at depth `at` is order[depth - 1 - at]
    auto const expand = [&](N bound) {
        auto& l = levels[at];
        std::size_t const position = depth - 1 - at;
        e.row_of(position, chosen, row);
        N const sent = e.sent_by(position, chosen);
        l.open.clear();
        l.next = 0;
        for (std::uint32_t k = 0; k < row.size(); ++k) {
            if (number<N>::is_infinite(row[k])) continue;
            N const f = std::max(bound, static_cast<N>(bound + (row[k] - sent)));
            if (f < upper - tolerance) l.open.emplace_back(f, k);
        }
        std::sort(l.open.begin(), l.open.end());
    };
    if (number<N>::is_infinite(e.constant())) return tree_end::complete;
    if (depth == 0) {
        found(chosen);
        return tree_end::complete;
    }
    expand(e.constant());
    for (std::uint64_t nodes = 1;;) {
        auto& l = levels[at];
        if (l.next == l.open.size() || !(l.open[l.next].first < upper - tolerance)) {
            if (at == 0) return tree_end::complete;
            --at;
            continue;
        }
        auto const [bound, value] = l.open[l.next++];
        chosen[order[depth - 1 - at]] = value;
        if (at + 1 == depth) {
            upper = std::min(upper, found(chosen));
            continue;
        }
        ++at;
        expand(bound);
        if (++nodes % 64 == 0 && stop()) return tree_end::stopped;
        if (nodes >= node_limit) return tree_end::node_limit;
        if (nodes % 4096 == 0) {
            N least = number<N>::infinity();
            for (std::size_t d = 0; d <= at; ++d)
                if (levels[d].next < levels[d].open.size()) least = std::min(least, levels[d].open[levels[d].next].first);
            open(std::min(least, upper));
        }
    }
}

} // namespace parsearch::search::additive
