#pragma once
// What the traffic of an iteration puts on the links of a network.

#include <map>

#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/fabric/servers/link_load.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE link_load load_of(network const& n, path_table const& routes, demand const& d) {
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

} // namespace parsearch::fabric
