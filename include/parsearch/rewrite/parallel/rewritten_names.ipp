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
        auto const base = name.substr(0, name.find_last_of('~'));
        if (base.empty() || base == name || of_model.contains(name) || !taken.insert(base).second) continue;
        taken.erase(name);
        name = base;
    }
}

} // namespace parsearch::rewrite
