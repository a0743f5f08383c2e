#pragma once
/// A set of graphs.

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace parsearch::rewrite::detail {

/// Graphs that were seen: told apart exactly.
class seen_graphs {
  public:
    /// True where `g` is new.
    bool add(parallel_graph const& g) {
        auto& same = graphs_[g.hash()];
        if (std::ranges::find(same, g) != same.end()) return false;
        same.push_back(g);
        return true;
    }

  private:
    std::unordered_map<std::uint64_t, std::vector<parallel_graph>> graphs_;
};

} // namespace parsearch::rewrite::detail
