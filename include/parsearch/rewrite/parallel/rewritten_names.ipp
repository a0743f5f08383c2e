#pragma once
// Names of operators after rewriting.

#include <set>

#include <parsearch/rewrite/parallel/rewritten_names.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void keep_names(graph::dense_graph& g, graph::dense_graph const& model) {
    std::set<std::string> const of_model(model.names.begin(), model.names.end());
    std::set<std::string> taken(g.names.begin(), g.names.end());
    for (auto const op : g.order) {
        auto& name = g.names[op];
        if (of_model.contains(name)) continue;
        auto best = name; // the shortest name that is free: what was replaced several times is "a~2~2"
        for (auto shorter = name; !shorter.empty();) {
            if (shorter != name && !taken.contains(shorter)) best = shorter;
            auto const number = shorter.find_last_of('~');
            shorter.resize(number == std::string::npos ? 0 : number);
        }
        taken.erase(name);
        taken.insert(best);
        name = best;
    }
}

} // namespace parsearch::rewrite
