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
/// The links of `n` between servers: those that a patch panel can move.
[[nodiscard]] std::vector<std::size_t> server_links(network const& n);
/// Whether two rings go through the same servers in the same order, wherever they begin.
[[nodiscard]] bool same_cycle(std::vector<std::uint32_t> const& x, std::vector<std::uint32_t> const& y);
[[nodiscard]] inline std::vector<std::uint32_t> reversed(std::vector<std::uint32_t> const& order) { return {order.rbegin(), order.rend()}; }
} // namespace detail

/// `n` with the ends of two links between servers, drawn uniformly, exchanged: a - b and c - d become a - c and b - d, or a - d and b - c. Nothing
/// where that would change nothing, join a server to itself or disconnect the network. Rings stay as they are: where a hop has lost its link, it
/// takes the routes. Symmetric: the way back is as likely. Complexity: O(links).
template <RandomBits R> [[nodiscard]] std::optional<network> exchange_links(network const& n, R& rng) {
    auto const links = detail::server_links(n);
    if (links.size() < 2) return std::nullopt;
    auto const first = uniform_index(rng, links.size());
    auto second = uniform_index(rng, links.size() - 1);
    if (second >= first) ++second;
    bool const crosswise = uniform_index(rng, 2) == 0;
    auto out = n;
    auto& x = out.links[links[first]];
    auto& y = out.links[links[second]];
    std::swap(x.b, crosswise ? y.b : y.a);
    if (x.a == x.b || y.a == y.b) return std::nullopt;
    auto const joins = [](network_link const& l) { return std::minmax(l.a, l.b); };
    auto const &was = n.links[links[first]], &other = n.links[links[second]];
    if (joins(x) == joins(was) || joins(x) == joins(other)) return std::nullopt;
    if (!connected(out)) return std::nullopt;
    return out;
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
/// the ring that goes the other way, where there is one. Where all hops of the old ring have links of their own, these move to the hops of the new
/// one; else the links stay. Nothing where the servers have no other ring, the new one is the old one, or its links would disconnect the network.
/// Complexity: O(links * hops).
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
        if (l == n.links.size()) break;
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
