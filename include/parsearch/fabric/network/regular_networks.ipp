#pragma once
// Networks of switches and of servers alone: ideal switch, racks, fully connected, torus, circulant. Fat trees: fat_tree_network.hpp; random ones:

#include <cmath>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/network/rings.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE network ideal_switch(std::uint32_t servers, link_description const& link) {
    check_servers(servers, "ideal switch");
    network out{"ideal switch", servers, 1, {}, {}};
    for (std::uint32_t s = 0; s < servers; ++s) out.links.push_back({s, servers, link});
    return detail::checked(std::move(out));
}

PARSEARCH_INLINE network oversubscribed(std::uint32_t servers, link_description const& link, rack_options const& o) {
    check_servers(servers, "racks");
    if (o.servers_per_rack < 1 || o.servers_per_rack > max_vertices)
        throw invalid_input("racks of ", o.servers_per_rack, " servers: must be from 1 to ", max_vertices);
    if (!(o.ratio >= 1 && o.ratio <= 1e6)) throw invalid_input("racks oversubscribed ", o.ratio, " times: must be from 1 to 1e6");
    auto const racks = (servers + o.servers_per_rack - 1) / o.servers_per_rack;
    auto const spines = racks > 1 ? static_cast<std::uint32_t>(std::ceil(o.servers_per_rack / o.ratio)) : 0;
    network out{text("racks of ", o.servers_per_rack, ", ", o.ratio, " : 1"), servers, racks + spines, {}, {}};
    for (std::uint32_t s = 0; s < servers; ++s) out.links.push_back({s, servers + s / o.servers_per_rack, link});
    auto up = link;
    up.rate.bytes_per_second *= o.servers_per_rack / (o.ratio * spines);
    for (std::uint32_t r = 0; r < racks; ++r)
        for (std::uint32_t s = 0; s < spines; ++s) out.links.push_back({servers + r, servers + racks + s, up});
    return detail::checked(std::move(out));
}

PARSEARCH_INLINE network fully_connected(std::uint32_t servers, link_description const& link) {
    if (servers < 1 || servers > 4096) throw invalid_input("fully connected network of ", servers, " servers: must be from 1 to 4096");
    network out{"fully connected", servers, 0, {}, {}};
    for (std::uint32_t a = 0; a < servers; ++a)
        for (auto b = a + 1; b < servers; ++b) out.links.push_back({a, b, link});
    return detail::checked(std::move(out));
}

PARSEARCH_INLINE network torus(std::span<std::uint32_t const> extents, link_description const& link) {
    if (extents.empty()) throw invalid_input("torus of 0 dimensions: must have at least one");
    std::uint64_t servers = 1;
    for (auto const extent : extents) {
        if (extent < 1 || extent > max_vertices) throw invalid_input("torus of extent ", extent, ": must be from 1 to ", max_vertices);
        check_servers(servers *= extent, "torus");
    }
    network out{"torus", static_cast<std::uint32_t>(servers), 0, {}, {}};
    for (std::size_t i = 0; i < extents.size(); ++i) out.name += text(i == 0 ? " " : " x ", extents[i]);
    auto step = out.servers; // between the numbers of neighbours
    for (auto const extent : extents) {
        auto const row = step;
        step /= extent;
        for (std::uint32_t s = 0; s < out.servers; ++s) {
            auto const at = s % row / step;
            if (extent > 1 && (at + 1 < extent || extent > 2)) out.links.push_back({s, at + 1 < extent ? s + step : s - at * step, link});
        }
    }
    return detail::checked(std::move(out));
}

PARSEARCH_INLINE network circulant(std::uint32_t servers, std::span<std::uint32_t const> steps, link_description const& link) {
    check_servers(servers, "circulant network");
    network out{"circulant", servers, 0, {}, {}};
    for (std::size_t i = 0; i < steps.size(); ++i) out.name += text(i == 0 ? ", steps " : ", ", steps[i]);
    std::vector<std::uint32_t> all(servers);
    std::iota(all.begin(), all.end(), 0u);
    for (auto const step : steps) {
        if (step < 1 || step >= servers)
            throw invalid_input("circulant network of ", servers, " servers: a step of ", step, ": must be from 1 to ", servers - 1);
        for (std::uint32_t s = 0; s < (2 * step == servers ? step : servers); ++s) out.links.push_back({s, (s + step) % servers, link});
        if (std::gcd(step, servers) != 1) continue;
        out.rings.push_back(ring_order(all, step));
        if (servers > 2) out.rings.push_back(ring_order(all, servers - step));
    }
    return detail::checked(std::move(out));
}

} // namespace parsearch::fabric
