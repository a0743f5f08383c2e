#pragma once
/// What the traffic of an iteration puts on the links of a network.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/fabric/wiring/found_network.hpp>

namespace parsearch::fabric {

/// Bytes on each direction of each link.
struct link_load {
    std::vector<byte_count> all_reduce, point_to_point; ///< by `link_direction`
    byte_count demanded = 0;                            ///< the bytes on the wire if every hop had a link of its own
    /// The bytes on a direction.
    [[nodiscard]] byte_count total(link_direction l) const { return all_reduce[l] + point_to_point[l]; }
    /// The most bytes on a direction.
    [[nodiscard]] byte_count busiest() const {
        byte_count out = 0;
        for (link_direction l = 0; l < all_reduce.size(); ++l) out = std::max(out, total(l));
        return out;
    }
    /// Bytes that links carry per byte demanded: 1 where nothing takes a detour (and where there is no traffic).
    [[nodiscard]] double bandwidth_tax() const {
        double carried = 0;
        for (link_direction l = 0; l < all_reduce.size(); ++l) carried += static_cast<double>(total(l));
        return demanded == 0 ? 1 : carried / static_cast<double>(demanded);
    }
};

/// The load of demand `d` on network `n`, of which `routes` was made. The bytes of an all-reduce are split evenly over the rings of the network whose
/// servers are exactly the group; where there is none, one ring passes the group in ascending order. Rings that share a hop take turns on
/// parallel links; hops without a link, and point-to-point bytes, take the paths of `routes`, each ordered pair of servers one flow.
/// Throws `invalid_input` where demand, network and routes are not of the same servers.
[[nodiscard]] link_load load_of(network const& n, path_table const& routes, demand const& d);

/// The same of a fabric that `topology_finder` wired, on its shortest routes.
[[nodiscard]] inline link_load load_of(found_topology const& t, demand const& d) {
    auto const n = network_of(t, {{1}, {}}); // loads are counts of bytes: no rate matters
    return load_of(n, path_table(n), d);
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/link_load.ipp>
#endif
