#pragma once
/// A set of graphs.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

namespace parsearch::rewrite::detail {

/// Graphs that were seen: told apart exactly.
class seen_graphs {
  public:
    /// True where `g` is new.
    bool add(parallel_graph const& g);

  private:
    std::unordered_map<std::uint64_t, std::vector<parallel_graph>> graphs_;
};

} // namespace parsearch::rewrite::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/seen_graphs.ipp>
#endif
