#pragma once
// A k-ary fat tree of switches over single devices. Of servers: fabric/network/fat_tree_network.hpp.

#include <parsearch/core/error.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/fat_tree.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE cluster fat_tree(fat_tree_options const& o) {
    if (o.k < 2 || o.k % 2 != 0 || o.k > 32)
        throw invalid_input("fat tree of k = ", o.k, ": must be even, from 2 to 32 (", cluster_builder::max_group, " devices)");
    std::uint32_t const half = o.k / 2, pods = o.k;
    cluster_builder builder;
    auto const device = detail::add_devices(builder, std::uint64_t{half} * half * pods, o.device);
    auto const add = [&](vertex a, vertex b) { return builder.add_duplex_link(a, b, o.link.rate, o.link.latency); };
    std::vector<vertex> cores;
    for (std::uint32_t c = 0; c < half * half; ++c) cores.push_back(builder.add_switch(text("core ", c)));
    std::vector<duplex> leaf(device.size()), middle(std::size_t{pods} * half * half), top(middle.size());
    for (std::uint32_t p = 0; p < pods; ++p) {
        std::vector<vertex> edges, aggregations;
        for (std::uint32_t i = 0; i < half; ++i) edges.push_back(builder.add_switch(text("edge ", p * half + i)));
        for (std::uint32_t i = 0; i < half; ++i) aggregations.push_back(builder.add_switch(text("aggregation ", p * half + i)));
        for (std::uint32_t e = 0; e < half; ++e)
            for (std::uint32_t h = 0; h < half; ++h) {
                auto const i = (p * half + e) * half + h;
                leaf[i] = add(device[i], edges[e]);
                middle[i] = add(edges[e], aggregations[h]);
            }
        for (std::uint32_t h = 0; h < half; ++h)
            for (std::uint32_t e = 0; e < half; ++e) top[(p * half + h) * half + e] = add(aggregations[h], cores[h * half + e]);
    }
    for (std::uint32_t a = 0; a < device.size(); ++a)
        for (std::uint32_t b = 0; b < device.size(); ++b) {
            if (a == b) continue;
            auto const edge_a = a / half, edge_b = b / half, pod_a = edge_a / half, pod_b = edge_b / half, h = b % half, e = edge_b % half;
            std::vector<std::uint32_t> route{leaf[a].forward};
            if (edge_a != edge_b) route.push_back(middle[edge_a * half + h].forward);
            if (pod_a != pod_b) {
                route.push_back(top[(pod_a * half + h) * half + e].forward);
                route.push_back(top[(pod_b * half + h) * half + e].backward);
            }
            if (edge_a != edge_b) route.push_back(middle[edge_b * half + h].backward);
            route.push_back(leaf[b].backward);
            builder.set_route(device[a], device[b], route);
        }
    return builder.build();
}

} // namespace parsearch::topology
