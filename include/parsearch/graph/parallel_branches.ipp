#pragma once
// The branches of a graph: what can run beside each other.

#include <algorithm>
#include <tuple>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/graph/dominators.hpp>
#include <parsearch/graph/parallel_branches.hpp>

namespace parsearch::graph::detail {

/// The operators that all ways of gradients pass, in the order in which they pass them.
PARSEARCH_INLINE std::vector<std::uint32_t> operators_of_all_ways(dense_graph const& g) {
    auto const n = static_cast<std::uint32_t>(g.size());
    std::vector<flow_edge> ways;
    std::vector<bool> first(n, true), last(n, true);
    for (auto const& e : g.edges) {
        if (!g.trains[e.producer]) continue;
        ways.push_back({e.producer, e.consumer});
        first[e.consumer] = last[e.producer] = false;
    }
    for (std::uint32_t op = 0; op < n; ++op) {
        if (!g.trains[op]) continue;
        if (first[op]) ways.push_back({n, op});
        if (last[op]) ways.push_back({op, n + 1});
    }
    return dominators_between(n + std::size_t{2}, ways, n, n + 1);
}

} // namespace parsearch::graph::detail

namespace parsearch::graph {

PARSEARCH_INLINE std::vector<branch> parallel_branches(dense_graph const& g) {
    auto const n = static_cast<std::uint32_t>(g.size());
    auto const passed = detail::operators_of_all_ways(g);
    std::vector<bool> outside(n, false); // of all branches
    std::vector<std::uint32_t> segment(n, 0);
    for (std::uint32_t i = 0; i < passed.size(); ++i) {
        outside[passed[i]] = true;
        segment[passed[i]] = i + 1;
    }
    joined_sets sets(n);
    for (std::uint32_t op = 0; op < n; ++op)
        if (!outside[op] && !outside[g.sharing[op]]) sets.join(op, g.sharing[op]);
    for (auto i = g.order.rbegin(); i != g.order.rend(); ++i) { // readers first
        if (outside[*i]) continue;
        for (auto const number : g.out(*i)) {
            auto const reader = g.edges[number].consumer;
            if (!outside[reader]) sets.join(*i, reader);
            else if (!g.trains[*i]) outside[*i] = true;
            if (!g.trains[*i]) break;
        }
    }
    std::vector<branch> found(n, branch{.segment = n}); // at the root of each
    for (auto const op : g.order) {
        if (outside[op]) continue;
        for (auto const& e : g.in(op)) segment[op] = std::max(segment[op], segment[e.producer]);
        auto& mine = found[sets.root(op)];
        if (g.trains[op]) mine.segment = std::min(mine.segment, segment[op]);
        mine.operators.push_back(op);
        mine.flops += g.operations[op].flops;
        for (auto const& w : g.operations[op].weights) mine.bytes += ops::bytes_of(w);
    }
    std::vector<std::uint32_t> in_segment(passed.size() + 1, 0);
    for (auto const& b : found)
        if (b.segment < n && (b.flops > 0 || b.bytes > 0)) ++in_segment[b.segment];
    std::erase_if(found, [&](auto const& b) { return b.segment == n || (b.flops <= 0 && b.bytes <= 0) || in_segment[b.segment] < 2; });
    std::ranges::stable_sort(found, {}, [](auto const& b) { return std::tuple(b.segment, -b.flops, -b.bytes); });
    return found;
}

} // namespace parsearch::graph
