#pragma once
// Splits a network into components, and a component at single variables into segments one after another.

#include <algorithm>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/search/additive/network_segments.hpp>

namespace parsearch::search::additive {

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> components(std::size_t variables, std::span<link const> links) {
    joined_sets sets(variables);
    for (auto const& [a, b] : links) sets.join(a, b);
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::size_t> number(variables);
    for (std::uint32_t v = 0; v < variables; ++v) {
        if (sets.root(v) == v) {
            number[v] = out.size();
            out.emplace_back();
        }
        out[number[sets.root(v)]].push_back(v);
    }
    return out;
}

PARSEARCH_INLINE std::vector<link> without_trees(std::size_t variables, std::span<link const> links) {
    std::vector<std::vector<std::uint32_t>> near(variables);
    for (auto const& [a, b] : links) {
        near[a].push_back(b);
        near[b].push_back(a);
    }
    std::vector<std::size_t> degree(variables);
    std::vector<std::uint32_t> leaves;
    std::vector<bool> gone(variables, false);
    for (std::uint32_t v = 0; v < variables; ++v)
        if ((degree[v] = near[v].size()) < 2) leaves.push_back(v);
    while (!leaves.empty()) {
        auto const v = leaves.back();
        leaves.pop_back();
        if (gone[v]) continue;
        gone[v] = true;
        for (auto const n : near[v])
            if (!gone[n] && --degree[n] == 1) leaves.push_back(n);
    }
    std::vector<link> out;
    for (auto const& l : links)
        if (!gone[l.first] && !gone[l.second]) out.push_back(l);
    return out;
}

PARSEARCH_INLINE std::vector<segment> split_at(std::span<std::uint32_t const> variables, std::span<link const> links,
                                               std::vector<std::uint32_t> const& cuts, std::size_t total) {
    constexpr auto none = segment::none;
    std::vector<std::uint32_t> place(total, none); // of each cut in the chain
    for (std::uint32_t i = 0; i < cuts.size(); ++i) place[cuts[i]] = i;
    joined_sets sets(total);
    for (auto const& [a, b] : links)
        if (place[a] == none && place[b] == none) sets.join(a, b);
    // Of each piece between cuts: the first and the last cut beside it.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> beside(total, {none, 0});
    bool chain = true;
    for (auto [a, b] : links) {
        if (place[a] != none && place[b] != none) {
            chain = chain && (place[a] + 1 == place[b] || place[b] + 1 == place[a]);
            continue;
        }
        if (place[b] != none) std::swap(a, b);
        if (place[a] == none) continue;
        auto& [first, last] = beside[sets.root(b)];
        first = first == none ? place[a] : std::min(first, place[a]);
        last = std::max(last, place[a]);
    }
    std::vector<segment> out(cuts.size() + 1);
    for (auto const v : variables) {
        if (place[v] != none) {
            out[place[v] + 1].variables.push_back(v);
            continue;
        }
        auto const [first, last] = beside[sets.root(v)];
        if (first == none) {
            chain = chain && cuts.empty();
            out[0].variables.push_back(v);
            continue;
        }
        chain = chain && last - first <= 1;
        // Beside one cut only: before the first cut where it comes first, else behind its cut.
        out[last == 0 && sets.root(v) < cuts[0] ? 0 : first + 1].variables.push_back(v);
    }
    if (!chain) return {segment{{variables.begin(), variables.end()}}};
    for (std::size_t i = 0; i < cuts.size(); ++i) out[i].exit = cuts[i];
    if (out.front().variables.empty()) out.erase(out.begin());
    return out;
}

} // namespace parsearch::search::additive
