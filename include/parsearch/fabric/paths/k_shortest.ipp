#pragma once
// The k shortest loopless paths between two vertices.

#include <parsearch/fabric/paths/k_shortest.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE bool k_shortest_paths::search(std::uint32_t to) {
    std::fill(distance_.begin(), distance_.end(), unreached);
    queue_.assign(1, to);
    distance_[to] = 0;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
        auto const v = queue_[i];
        if (first_[v]) { // all vertices of lower levels, and the others of this one that have been queued before, are known
            reached_ = distance_[v];
            return true;
        }
        for (auto const w : near_[v])
            if (distance_[w] == unreached && !blocked_[w]) {
                distance_[w] = distance_[v] + 1;
                queue_.push_back(w);
            }
    }
    return false;
}

} // namespace parsearch::fabric
