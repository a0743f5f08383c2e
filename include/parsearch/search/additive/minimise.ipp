#pragma once
// Minimises an additive cost given in tables: what `dominator_dp` does between reading them and telling.

#include <parsearch/graph/dominators.hpp>
#include <parsearch/search/additive/minimise.hpp>

namespace parsearch::search::additive::detail {

PARSEARCH_INLINE std::vector<std::uint32_t> cuts_of(std::size_t variables, std::vector<link> const& links) {
    if (links.empty()) return {};
    std::vector<bool> first(variables, false), last(variables, false);
    for (auto const& [a, b] : links) first[a] = last[b] = true;
    auto const entry = static_cast<std::uint32_t>(variables), exit = entry + 1;
    std::vector<graph::flow_edge> edges(links.begin(), links.end());
    for (std::uint32_t v = 0; v < variables; ++v) {
        if (first[v] && !last[v]) edges.emplace_back(entry, v);
        if (last[v] && !first[v]) edges.emplace_back(v, exit);
    }
    return graph::dominators_between(variables + 2, edges, entry, exit);
}

} // namespace parsearch::search::additive::detail
