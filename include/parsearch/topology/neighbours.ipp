#pragma once
// Some devices of a topology that are near each other.

#include <algorithm>
#include <map>
#include <set>

#include <parsearch/topology/neighbours.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE std::vector<std::size_t> take_neighbours(dense_topology const& t, std::vector<bool>& free, std::size_t count) {
    std::map<std::uint32_t, std::size_t> on; // free devices by node
    for (std::size_t d = 0; d < t.size(); ++d) on[t.node[d]] += free[d];
    std::vector<std::size_t> out; // on the fullest nodes
    for (std::size_t d = 0; d < t.size(); ++d)
        if (free[d]) out.push_back(d);
    std::ranges::stable_sort(out, [&](auto a, auto b) { return std::pair(on[t.node[b]], t.node[a]) < std::pair(on[t.node[a]], t.node[b]); });
    out.resize(count);
    std::ranges::sort(out);
    std::set<std::uint32_t> nodes;
    for (auto const d : out) nodes.insert(t.node[d]);
    std::size_t least = 0; // free devices on the nodes taken
    for (auto const n : nodes) least += on[n];
    // A run is as good, where there is one.
    bool is_run = false;
    for (std::size_t first = 0; first + count <= t.size(); ++first) {
        std::size_t on_nodes = 0;
        bool whole = true;
        for (auto d = first; d < first + count; ++d) {
            whole = whole && free[d];
            if (d == first || t.node[d] != t.node[d - 1]) on_nodes += on[t.node[d]];
        }
        if (!whole || on_nodes > least || (on_nodes == least && is_run)) continue;
        is_run = true;
        least = on_nodes;
        for (std::size_t n = 0; n < count; ++n) out[n] = first + n;
    }
    for (auto const d : out) free[d] = false;
    return out;
}

} // namespace parsearch::topology
