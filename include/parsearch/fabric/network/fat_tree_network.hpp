#pragma once
/// Fat trees of servers and switches. Of single devices, as a cluster: topology/fat_tree.hpp.

#include <cstdint>
#include <optional>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// A k-ary fat tree (M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k/2
/// servers per edge switch. `k` not set: the smallest even that holds the servers. These fill the places in order; edge switches and pods
/// without servers are left out, with one pod the cores too, and with one edge switch all others: what remains is not blocking either.
/// Switches: edges, then aggregations, then cores. `k`: even, from 2 to 64, with at least as many places, k^3 / 4, as servers.
[[nodiscard]] network fat_tree(std::uint32_t servers, link_description const& link, std::optional<std::uint32_t> ports = {});

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/fat_tree_network.ipp>
#endif
