#pragma once
/// Networks of switches and of servers alone: ideal switch, racks, fully connected, torus, circulant. Fat trees: fat_tree_network.hpp; random ones:
/// random_regular.hpp.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/rings.hpp>

namespace parsearch::fabric {

// All functions throw `invalid_input` where their arguments break a rule that they name, or the network breaks one of `validate`. `link` is each
// direction of each link where nothing else is said.

/// One switch without limits of its own: each server has one link to it, two hops to every other.
[[nodiscard]] inline network ideal_switch(std::uint32_t servers, link_description const& link) {
    check_servers(servers, "ideal switch");
    network out{"ideal switch", servers, 1, {}, {}};
    for (std::uint32_t s = 0; s < servers; ++s) out.links.push_back({s, servers, link});
    return detail::checked(std::move(out));
}

/// Options of `oversubscribed`.
struct rack_options {
    std::uint32_t servers_per_rack = 0;
    double ratio = 1; ///< bytes per second that a rack's servers can send, to what it can send out of the rack; at least 1
};

/// Racks of servers, each with one switch; every rack switch has a link to each of ceil(servers_per_rack / ratio) spine switches, of such a rate that
/// those of a full rack have the rate of its servers' links (`link`) / ratio together. The last rack may hold fewer servers. One rack has no spine.
/// Switches: racks, then spines.
[[nodiscard]] inline network oversubscribed(std::uint32_t servers, link_description const& link, rack_options const& o) {
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

/// A link between every two servers.
[[nodiscard]] inline network fully_connected(std::uint32_t servers, link_description const& link) {
    if (servers < 1 || servers > 4096) throw invalid_input("fully connected network of ", servers, " servers: must be from 1 to 4096");
    network out{"fully connected", servers, 0, {}, {}};
    for (std::uint32_t a = 0; a < servers; ++a)
        for (auto b = a + 1; b < servers; ++b) out.links.push_back({a, b, link});
    return detail::checked(std::move(out));
}

/// A torus of servers, e.g. extents {4, 4} or {8, 8, 8}: each is linked with its neighbours in every dimension (one in a dimension of two, none in
/// one of one). Numbers are row major, the last dimension varies fastest. At least one dimension, extents from 1.
[[nodiscard]] inline network torus(std::span<std::uint32_t const> extents, link_description const& link) {
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
[[nodiscard]] inline network torus(std::initializer_list<std::uint32_t> extents, link_description const& link) {
    return torus(std::span<std::uint32_t const>(extents.begin(), extents.size()), link);
}

/// Servers joined with those `step` further on (modulo their number) for each step, from 1 to servers - 1; steps that repeat, or sum up to the
/// number of servers, give parallel links. With the rings of TotientPerms: for every step without a common factor with the number of servers both
/// directions of its ring through all (one, where these are two servers).
[[nodiscard]] inline network circulant(std::uint32_t servers, std::span<std::uint32_t const> steps, link_description const& link) {
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
[[nodiscard]] inline network circulant(std::uint32_t servers, std::initializer_list<std::uint32_t> steps, link_description const& link) {
    return circulant(servers, std::span<std::uint32_t const>(steps.begin(), steps.size()), link);
}

} // namespace parsearch::fabric
