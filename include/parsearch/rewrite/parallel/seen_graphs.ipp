#pragma once
// A set of graphs.

#include <algorithm>

#include <parsearch/rewrite/parallel/seen_graphs.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE bool seen_graphs::add(parallel_graph const& g) {
    auto& same = graphs_[g.hash()];
    if (std::ranges::find(same, g) != same.end()) return false;
    same.push_back(g);
    return true;
}

} // namespace parsearch::rewrite::detail
