#pragma once
/// What the traffic of an iteration puts on the links of a network.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/rings.hpp>
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
[[nodiscard]] inline link_load load_of(network const& n, path_table const& routes, demand const& d) {
    if (d.servers() != n.servers || routes.servers() != n.servers)
        throw invalid_input("load of a demand of ", d.servers(), " servers on a fabric of ", n.servers, ", routes between ", routes.servers(),
                            ": must be the same");
    link_load out;
    out.all_reduce.assign(2 * n.links.size(), 0);
    out.point_to_point = out.all_reduce;
    out.demanded = d.all_reduce_bytes() + d.point_to_point_bytes();
    std::map<std::vector<std::uint32_t>, std::vector<std::vector<std::uint32_t> const*>> by_members;
    for (auto const& ring : n.rings) {
        auto members = ring;
        std::sort(members.begin(), members.end());
        by_members[std::move(members)].push_back(&ring);
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> turns; // rings so far that use a hop
    for (auto const& group : d.groups()) {
        auto const found = by_members.find(group.members);
        auto const over = found != by_members.end() ? found->second : std::vector<std::vector<std::uint32_t> const*>{&group.members};
        auto const parts = split_evenly(group.bytes, over.size());
        for (std::size_t r = 0; r < over.size(); ++r) {
            auto const& order = *over[r];
            auto const bytes = ring_traffic(parts[r], order.size());
            for (std::size_t i = 0; i < order.size(); ++i) {
                auto const from = order[i], to = order[(i + 1) % order.size()];
                if (routes.links().all_between(from, to).empty())
                    for (auto const l : routes.path(from, to, flow_between(from, to))) out.all_reduce[l] += bytes[i];
                else out.all_reduce[routes.links().between(from, to, turns[{from, to}]++)] += bytes[i];
            }
        }
    }
    for (std::uint32_t a = 0; a < n.servers; ++a)
        for (std::uint32_t b = 0; b < n.servers; ++b)
            if (a != b && d.between(a, b) > 0)
                for (auto const l : routes.path(a, b, flow_between(a, b))) out.point_to_point[l] += d.between(a, b);
    return out;
}

/// The same of a fabric that `topology_finder` wired, on its shortest routes.
[[nodiscard]] inline link_load load_of(found_topology const& t, demand const& d) {
    auto const n = network_of(t, {{1}, {}}); // loads are counts of bytes: no rate matters
    return load_of(n, path_table(n), d);
}

} // namespace parsearch::fabric
