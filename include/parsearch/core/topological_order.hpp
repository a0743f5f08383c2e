#pragma once
/// Kahn's algorithm (A. Kahn, CACM 5, 1962), with ties decided: smallest number first among what is ready.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// Calls `visit(v)` for the vertices 0, 1, ... of a graph such that each comes after those with an edge to it; of those that may be next the
/// smallest. `waits[v]` is the number of edges to `v`, counted down to 0 for what is visited: it stays above for a vertex on a cycle or behind one.
/// `each_next(v, f)` calls `f` for the end of each edge from `v`, as often as there are edges. Complexity: O((V + E) log V).
template <class Count, class Next, class Visit> void visit_topologically(std::span<Count> waits, Next const& each_next, Visit const& visit) {
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t v = 0; v < waits.size(); ++v)
        if (waits[v] == 0) ready.push(v);
    while (!ready.empty()) {
        auto const v = ready.top();
        ready.pop();
        visit(v);
        each_next(v, [&](std::size_t next) {
            if (--waits[next] == 0) ready.push(static_cast<std::uint32_t>(next));
        });
    }
}

} // namespace parsearch
