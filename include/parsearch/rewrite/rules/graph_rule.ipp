#pragma once
// Rules that change graphs: anything that answers, for a graph, all the graphs that one application makes of it.

#include <parsearch/rewrite/rules/graph_rule.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE graph_rule substitution_rule(rule r, std::vector<bindings> choices) {
    check(r);
    auto name = r.name;
    return {std::move(name), [r = std::move(r), choices = std::move(choices)](parallel_graph const& g) {
                std::vector<rewritten> out;
                for (auto const& m : matcher(g).find(r))
                    for (auto const& c : choices)
                        if (auto after = substitute(g, r, m, c)) {
                            std::string what;
                            for (auto const n : m.node)
                                if (g[n]->kind == node_kind::compute) what += text(what.empty() ? "" : ", ", g[n]->name);
                            out.push_back({*std::move(after), std::move(what)});
                        }
                return out;
            }};
}

} // namespace parsearch::rewrite
