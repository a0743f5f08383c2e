#pragma once
/// A k-ary fat tree of switches over single devices. Of servers: fabric/network/fat_tree_network.hpp.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::topology {

/// Options of `fat_tree`: `k` ports per switch, so k^3 / 4 devices. `link` is one direction of every link.
struct fat_tree_options {
    std::uint32_t k = 0;
    device_spec device{};
    link_description link{};
};

/// A k-ary fat tree (M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, k^2/4 core
/// switches, k/2 devices per edge switch. Device h of edge switch e of a pod is reached through aggregation switch h of its pod and
/// core switch (h, e), so that the messages to a pod's devices spread over all cores, the same in every run (the suffix tables
/// of the paper's section 3.3 do alike). Throws `invalid_input` on a `k` that is odd, below 2 or too large, a bad device or link.
[[nodiscard]] cluster fat_tree(fat_tree_options const& o);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/fat_tree.ipp>
#endif
