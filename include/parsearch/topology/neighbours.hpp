#pragma once
/// Some devices of a topology that are near each other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::topology {

/// `count` of the `free` devices, ascending, which are free no more: the first run of neighbours on nodes that have the fewest free devices together;
/// where there is none, those of the nodes with the most free devices. At least so many must be free. Complexity: O(devices * count).
[[nodiscard]] inline std::vector<std::size_t> take_neighbours(dense_topology const& t, std::vector<bool>& free, std::size_t count) {
    std::map<std::uint32_t, std::size_t> on; // free devices by node
    for (std::size_t d = 0; d < t.size(); ++d) on[t.node[d]] += free[d];
    std::vector<std::size_t> out;
    std::pair<std::size_t, std::size_t> best{std::numeric_limits<std::size_t>::max(), 0}; // free devices on its nodes, first device
    for (std::size_t first = 0; first + count <= t.size(); ++first) {
        std::size_t on_nodes = 0;
        bool whole = true;
        for (auto d = first; d < first + count; ++d) {
            whole = whole && free[d];
            if (d == first || t.node[d] != t.node[d - 1]) on_nodes += on[t.node[d]];
        }
        if (whole) best = std::min(best, std::pair(on_nodes, first));
    }
    if (best.first != std::numeric_limits<std::size_t>::max()) {
        for (std::size_t n = 0; n < count; ++n) out.push_back(best.second + n);
    } else {
        for (std::size_t d = 0; d < t.size(); ++d)
            if (free[d]) out.push_back(d);
        std::ranges::stable_sort(out, std::greater<>{}, [&](auto d) { return on[t.node[d]]; });
        out.resize(count);
        std::ranges::sort(out);
    }
    for (auto const d : out) free[d] = false;
    return out;
}

} // namespace parsearch::topology
