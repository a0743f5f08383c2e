#pragma once
/// Moves in the space of networks: small changes of the wiring between servers that keep every server's number of interfaces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/rings.hpp>

namespace parsearch::fabric {

namespace detail {
/// The link of each wire of `n` between servers: those that a patch panel can move.
[[nodiscard]] std::vector<std::size_t> links_of_wires(network const& n);
/// `n` with the ends of a wire of one link and a wire of another exchanged: see `exchange_wires`.
[[nodiscard]] std::optional<network> with_exchanged(network const& n, std::size_t first, std::size_t second, bool crosswise);
/// Whether two rings go through the same servers in the same order, wherever they begin.
[[nodiscard]] bool same_cycle(std::vector<std::uint32_t> const& x, std::vector<std::uint32_t> const& y);
[[nodiscard]] inline std::vector<std::uint32_t> reversed(std::vector<std::uint32_t> const& order) { return {order.rbegin(), order.rend()}; }
} // namespace detail

/// `n` with the ends of two wires between servers, drawn uniformly, exchanged: a - b and c - d become a - c and b - d, or a - d and b - c. A wire
/// that comes between servers that have a link of such wires is bonded with it. Nothing where that would change nothing, join a server to itself,
/// disconnect the network, or the wires are of different rates. Rings stay as they are: where a hop has lost its link, it takes the routes.
/// Symmetric: the way back is as likely, wire by wire. Complexity: O(links + wires).
template <RandomBits R> [[nodiscard]] std::optional<network> exchange_wires(network const& n, R& rng) {
    auto const links = detail::links_of_wires(n);
    if (links.size() < 2) return std::nullopt;
    auto const first = uniform_index(rng, links.size());
    auto second = uniform_index(rng, links.size() - 1);
    if (second >= first) ++second;
    bool const crosswise = uniform_index(rng, 2) == 0;
    return detail::with_exchanged(n, links[first], links[second], crosswise);
}

/// `n` with two servers, drawn uniformly, in each other's place: links and rings of either become those of the other. All rings keep their links.
/// Nothing where there is one server. Complexity: O(links + rings * servers).
template <RandomBits R> [[nodiscard]] std::optional<network> swap_servers(network const& n, R& rng) {
    if (n.servers < 2) return std::nullopt;
    auto const first = static_cast<std::uint32_t>(uniform_index(rng, n.servers));
    auto second = static_cast<std::uint32_t>(uniform_index(rng, n.servers - std::uint64_t{1}));
    if (second >= first) ++second;
    auto out = n;
    auto const swapped = [&](std::uint32_t v) { return v == first ? second : v == second ? first : v; };
    for (auto& l : out.links) {
        l.a = swapped(l.a);
        l.b = swapped(l.b);
    }
    for (auto& ring : out.rings)
        for (auto& server : ring) server = swapped(server);
    return out;
}

/// `n` with one of its rings, drawn uniformly, replaced by the ring of another step through the same servers (`ring_steps`), drawn uniformly; so is
/// the ring that goes the other way, where there is one. Where all hops of the old ring have links of their own, of one rate, these move to the
/// hops of the new one; else the links stay. Nothing where the servers have no other ring, the new one is the old one, or its links would disconnect
/// the network. Complexity: O(links * hops).
template <RandomBits R> [[nodiscard]] std::optional<network> replace_ring(network const& n, R& rng) {
    if (n.rings.empty()) return std::nullopt;
    auto const number = uniform_index(rng, n.rings.size());
    auto const& old = n.rings[number];
    auto members = old;
    std::sort(members.begin(), members.end());
    auto steps = ring_steps(static_cast<std::uint32_t>(members.size()));
    std::erase_if(steps, [&](std::uint32_t p) { return 2 * p > members.size(); }); // the others are these backwards
    if (steps.size() < 2) return std::nullopt;
    auto const order = ring_order(members, steps[uniform_index(rng, steps.size())]);
    if (detail::same_cycle(order, old) || detail::same_cycle(order, detail::reversed(old))) return std::nullopt;

    auto out = n;
    std::vector<std::size_t> hops;
    std::vector<bool> taken(n.links.size(), false);
    for (std::size_t i = 0; i < old.size(); ++i) {
        auto const from = old[i], to = old[(i + 1) % old.size()];
        std::size_t l = 0;
        while (l < n.links.size() && (taken[l] || std::minmax(n.links[l].a, n.links[l].b) != std::minmax(from, to))) ++l;
        if (l == n.links.size() || n.links[l].each != n.links[hops.empty() ? l : hops.front()].each) break;
        taken[l] = true;
        hops.push_back(l);
    }
    for (std::size_t i = 0; hops.size() == old.size() && i < hops.size(); ++i) {
        out.links[hops[i]].a = order[i];
        out.links[hops[i]].b = order[(i + 1) % order.size()];
    }
    auto const backwards = detail::reversed(old);
    for (auto& ring : out.rings)
        if (detail::same_cycle(ring, backwards)) {
            ring = detail::reversed(order);
            break;
        }
    out.rings[number] = order;
    if (!connected(out)) return std::nullopt;
    return out;
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/rewire_moves.ipp>
#endif
