#pragma once
// Parallel branches on a box: the least time and communication, given the views of what they communicate with.

#include <parsearch/rewrite/mapping/branches.hpp>

namespace parsearch::rewrite::mapping {

PARSEARCH_INLINE void prune(frontier& ways, time rest, time limit) {
    std::sort(ways.begin(), ways.end(), [](way const& a, way const& b) { return std::pair(a.inside, a.outside) < std::pair(b.inside, b.outside); });
    std::size_t kept = 0;
    for (auto const& w : ways)
        if ((kept == 0 || w.outside < ways[kept - 1].outside) && plus(plus(w.inside, w.outside), rest) < limit) ways[kept++] = w;
    ways.resize(kept);
}

} // namespace parsearch::rewrite::mapping
