#pragma once
// Fat trees of servers and switches. Of single devices, as a cluster: topology/fat_tree.hpp.

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE network fat_tree(std::uint32_t servers, link_description const& link, std::optional<std::uint32_t> ports) {
    check_servers(servers, "fat tree");
    auto const places = [](std::uint32_t k) { return k * k * k / 4; };
    auto k = ports.value_or(2);
    while (!ports && places(k) < servers) k += 2;
    if (k < 2 || k > 64 || k % 2 != 0 || places(k) < servers)
        throw invalid_input("fat tree of k = ", k, " for ", servers, " servers: must be even, from 2 to 64, and k^3 / 4 at least the servers");
    auto const half = k / 2, edges = (servers + half - 1) / half, pods = (edges + half - 1) / half;
    auto const aggregations = edges > 1 ? pods * half : 0, cores = pods > 1 ? half * half : 0;
    auto const edge = servers, aggregation = edge + edges, core = aggregation + aggregations;
    network out{text("fat tree, k = ", k), servers, edges + aggregations + cores, {}, {}};
    for (std::uint32_t s = 0; s < servers; ++s) out.links.push_back({s, edge + s / half, link});
    if (edges > 1)
        for (std::uint32_t e = 0; e < edges; ++e)
            for (std::uint32_t a = 0; a < half; ++a) out.links.push_back({edge + e, aggregation + e / half * half + a, link});
    if (pods > 1)
        for (std::uint32_t a = 0; a < aggregations; ++a)
            for (std::uint32_t c = 0; c < half; ++c) out.links.push_back({aggregation + a, core + a % half * half + c, link});
    return detail::checked(std::move(out));
}

} // namespace parsearch::fabric
