#pragma once
/// Fat trees of servers and switches. Of single devices, as a cluster: topology/fat_tree.hpp.

#include <cstdint>
#include <optional>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// A k-ary fat tree (M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k/2
/// servers per edge switch. `k` not set: the smallest even that holds the servers. These fill the places in order; edge switches and pods
/// without servers are left out, with one pod the cores too, and with one edge switch all others: what remains is not blocking either.
/// Switches: edges, then aggregations, then cores. `k`: even, from 2 to 64, with at least as many places, k^3 / 4, as servers.
[[nodiscard]] inline network fat_tree(std::uint32_t servers, link_description const& link, std::optional<std::uint32_t> ports = {}) {
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
