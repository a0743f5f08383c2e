#pragma once
// What becomes of a rule on a graph: where it matches, how many graphs it makes, and why not where it does not.

#include <set>
#include <unordered_set>

#include <parsearch/rewrite/rules/applications.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE applications applications_of(parallel_graph const& g, rule const& r, std::span<bindings const> choices) {
    applications out;
    matcher const in(g);
    std::set<std::vector<std::uint32_t>> places;
    std::unordered_set<std::uint64_t> seen{g.hash()}; // the graphs themselves would take gigabytes on a large model
    bindings const bound{};
    for (auto const& m : in.find(r)) {
        auto nodes = m.node;
        std::ranges::sort(nodes);
        places.insert(std::move(nodes));
        bool const open = std::ranges::any_of(r.parameters, [&](auto const& p) { return !m.variables.contains(p); });
        for (auto const& choice : open ? choices : std::span(&bound, 1))
            if (auto const after = substitute(g, r, m, choice)) {
                ++out.made;
                out.graphs += seen.insert(after->hash()).second;
            } else {
                ++out.refused[after.why()];
            }
    }
    out.places = places.size();
    if (places.empty()) out.why_not = in.why_not(r);
    return out;
}

} // namespace parsearch::rewrite
