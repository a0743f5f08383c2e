#pragma once
// Dominators of a flow graph on the way from one vertex to another.

#include <algorithm>

#include <parsearch/graph/dominators.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE std::vector<std::uint32_t> dominators_between(std::size_t vertices, std::span<flow_edge const> edges, std::uint32_t entry,
                                                               std::uint32_t exit) {
    std::vector<std::vector<std::uint32_t>> next(vertices);
    for (auto const& [from, to] : edges) next[from].push_back(to);
    auto const unknown = static_cast<std::uint32_t>(vertices);
    std::vector<std::uint32_t> before(vertices, unknown); // on the way on which the search came
    std::vector<std::uint32_t> waiting{entry};
    before[entry] = entry;
    while (!waiting.empty() && before[exit] == unknown) {
        auto const v = waiting.back();
        waiting.pop_back();
        for (auto const n : next[v])
            if (before[n] == unknown) {
                before[n] = v;
                waiting.push_back(n);
            }
    }
    std::vector<std::uint32_t> out;
    if (entry == exit || before[exit] == unknown) return out;
    std::vector<std::uint32_t> path{exit};
    while (path.back() != entry) path.push_back(before[path.back()]);
    std::reverse(path.begin(), path.end());
    std::vector<std::size_t> place(vertices, path.size()); // on the path
    for (std::size_t i = 0; i < path.size(); ++i) place[path[i]] = i;
    std::vector<bool> seen(vertices, false);
    std::size_t furthest = 0; // of the path, to which ways around lead from what is before `i`
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        if (i > 0 && furthest == i) out.push_back(path[i]);
        waiting.assign(1, path[i]);
        while (!waiting.empty()) {
            auto const v = waiting.back();
            waiting.pop_back();
            for (auto const n : next[v]) {
                if (place[n] < path.size()) furthest = std::max(furthest, place[n]);
                else if (!seen[n]) {
                    seen[n] = true;
                    waiting.push_back(n);
                }
            }
        }
    }
    return out;
}

} // namespace parsearch::graph
