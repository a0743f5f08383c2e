#pragma once
/// Names of operators after rewriting.

#include <set>
#include <string>

#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::rewrite {

/// Gives operators of `g`, which rewriting made of `model`, back the names of the model: what is put in the place of an operator of its own name is
/// numbered, "a~2", while that is still there. Names that the model has stay, and distinct names stay distinct. Complexity: O(n log n).
inline void keep_names(graph::dense_graph& g, graph::dense_graph const& model) {
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
