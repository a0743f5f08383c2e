#pragma once
// Wires a fabric for its traffic: rings for all-reduces, links for point-to-point traffic, routes for the rest.

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>

namespace parsearch::fabric::detail {

/// The interfaces of each server for rings: the share of all-reduces in the bytes on the wire, to the nearest ring (two interfaces), at least
/// one ring where there is an all-reduce.
PARSEARCH_INLINE std::uint32_t all_reduce_share(demand const& d, std::uint32_t degree) {
    auto const rings = static_cast<double>(d.all_reduce_bytes()), pairs = static_cast<double>(d.point_to_point_bytes());
    if (d.all_reduce_bytes() == 0) return 0;
    if (d.point_to_point_bytes() == 0) return degree;
    auto const count = static_cast<std::uint32_t>(rings / (rings + pairs) * static_cast<double>(degree) / 2 + 0.5);
    return std::min(degree, 2 * std::max(count, 1u));
}

/// How many rings each group gets: the next one goes to the group whose members would each send most per ring with it, as long as all its
/// members have interfaces left (D'Hondt's apportionment). Ends where no group can have more.
PARSEARCH_INLINE std::vector<std::uint32_t> apportion_rings(demand const& d, std::uint32_t interfaces) {
    auto const& groups = d.groups();
    std::vector<std::uint32_t> left(d.servers(), interfaces), count(groups.size(), 0);
    std::vector<bool> open(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) open[g] = groups[g].bytes > 0;
    for (;;) {
        std::size_t best = groups.size();
        double most = 0;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (!open[g]) continue;
            auto const size = static_cast<double>(groups[g].members.size());
            auto const load = 2 * (size - 1) / size * static_cast<double>(groups[g].bytes) / (count[g] + 1);
            if (load > most) {
                most = load;
                best = g;
            }
        }
        if (best == groups.size()) return count;
        auto const& members = groups[best].members;
        auto const needs = ring_interfaces(members.size());
        open[best] = std::all_of(members.begin(), members.end(), [&](auto m) { return left[m] >= needs; });
        if (!open[best]) continue;
        ++count[best];
        for (auto const m : members) left[m] -= needs;
    }
}

PARSEARCH_INLINE void wire(link_graph& graph, group_ring& ring) {
    auto const g = ring.order.size();
    ring.links.assign(g, no_link);
    if (g == 2) {
        ring.links[0] = ring.links[1] = graph.add(ring.order[0], ring.order[1], link_purpose::ring);
        return;
    }
    for (std::size_t i = 0; i < g; ++i) ring.links[i] = graph.add(ring.order[i], ring.order[(i + 1) % g], link_purpose::ring);
}

PARSEARCH_INLINE std::vector<std::uint32_t> all_hops(std::vector<std::vector<std::uint32_t>> const& near) {
    std::vector<std::uint32_t> out;
    out.reserve(near.size() * near.size());
    for (std::uint32_t from = 0; from < near.size(); ++from) {
        auto const hops = hops_from(from, near);
        out.insert(out.end(), hops.begin(), hops.end());
    }
    return out;
}

/// Adds links for point-to-point traffic: a matching of the servers that have interfaces left, by the bytes of both directions, which are
/// then halved for the pairs matched; again, until nothing is matched.
PARSEARCH_INLINE void wire_pairs(link_graph& graph, demand const& d, finder_options const& o) {
    if (d.point_to_point_bytes() == 0) return;
    auto const n = d.servers();
    std::vector<std::int64_t> bytes(std::size_t{n} * n, 0), weights;
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b)
            if (a != b) bytes[std::size_t{a} * n + b] = d.between(a, b) + d.between(b, a);
    // Bytes times hops stay below 2^60: hops are at most 2^12. Only demands of hundreds of terabytes between two servers lose digits.
    while (*std::max_element(bytes.begin(), bytes.end()) >> 48 > 0)
        for (auto& b : bytes) b /= 2;
    for (bool any = true; any;) {
        any = false;
        weights = bytes;
        if (o.pairs == pair_weight::byte_hops) {
            auto const hops = all_hops(graph.neighbours());
            std::uint32_t most = 0; // servers that nothing joins yet are as far apart as any, and one hop more
            for (auto const h : hops)
                if (h != unreached) most = std::max(most, h);
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= hops[i] == unreached ? most + 1 : hops[i];
        }
        for (std::uint32_t a = 0; a < n; ++a)
            if (graph.free(a) == 0)
                for (std::uint32_t b = 0; b < n; ++b) weights[std::size_t{a} * n + b] = weights[std::size_t{b} * n + a] = 0;
        auto const mate = n <= o.exact_matching_up_to ? maximum_weight_matching(n, weights) : greedy_matching(n, weights);
        for (std::uint32_t a = 0; a < n; ++a) {
            auto const b = mate[a];
            if (b == unmatched || b < a) continue;
            any = true;
            graph.add(a, b, link_purpose::point_to_point);
            bytes[std::size_t{a} * n + b] /= 2;
            bytes[std::size_t{b} * n + a] /= 2;
        }
    }
}

/// Forgets the links that no longer join the hops of their ring, then the rings that have lost some where their group has a whole one; of
/// several that all have lost some the first stays.
PARSEARCH_INLINE void drop_broken(link_graph& graph, std::vector<group_ring>& rings) {
    auto const& links = graph.links();
    for (auto& ring : rings)
        for (auto& link : ring.links)
            if (link != no_link && links[link].purpose != link_purpose::ring) link = no_link;
    std::vector<group_ring> kept;
    for (std::size_t first = 0, last = 0; first < rings.size(); first = last) {
        while (last < rings.size() && rings[last].group == rings[first].group) ++last;
        auto const from = kept.size();
        for (auto i = first; i < last; ++i)
            if (rings[i].wired()) kept.push_back(rings[i]);
        if (kept.size() == from) kept.push_back(rings[first]);
    }
    for (std::uint32_t link = 0; link < links.size(); ++link)
        if (links[link].purpose == link_purpose::ring) graph.mark(link, link_purpose::joint);
    for (auto const& ring : kept)
        for (auto const link : ring.links)
            if (link != no_link) graph.mark(link, link_purpose::ring);
    rings = std::move(kept);
}

/// Throws `std::logic_error` where what was found breaks a promise of `topology_finder`.
PARSEARCH_INLINE void check_found(found_topology const& t, demand const& d) {
    std::vector<std::uint32_t> used(t.servers, 0);
    for (auto const& l : t.links) {
        if (l.a >= t.servers || l.b >= t.servers || l.a == l.b) throw std::logic_error(text("fabric: a link joins servers ", l.a, " and ", l.b));
        ++used[l.a];
        ++used[l.b];
    }
    for (std::uint32_t v = 0; v < t.servers; ++v)
        if (used[v] > t.degree) throw std::logic_error(text("fabric: server ", v, " has ", used[v], " links, more than ", t.degree, " interfaces"));
    std::vector<std::uint32_t> count(d.groups().size(), 0);
    for (auto const& ring : t.rings) {
        ++count[ring.group];
        auto sorted = ring.order;
        std::sort(sorted.begin(), sorted.end());
        if (sorted != d.groups()[ring.group].members) throw std::logic_error(text("fabric: a ring misses members of group ", ring.group));
        for (std::size_t i = 0; i < ring.links.size(); ++i) {
            if (ring.links[i] == no_link) continue;
            auto const& l = t.links[ring.links[i]];
            auto const from = ring.order[i], to = ring.order[(i + 1) % ring.order.size()];
            if (!(l.a == from && l.b == to) && !(l.a == to && l.b == from))
                throw std::logic_error(text("fabric: the link of a ring's hop from ", from, " to ", to, " joins ", l.a, " and ", l.b));
        }
    }
    for (std::size_t g = 0; g < count.size(); ++g)
        if (count[g] == 0) throw std::logic_error(text("fabric: no ring for group ", g));
}

} // namespace parsearch::fabric::detail

namespace parsearch::fabric {

PARSEARCH_INLINE found_topology topology_finder(demand const& d, std::uint32_t servers, std::uint32_t degree, finder_options const& o) {
    if (servers != d.servers()) throw invalid_input("topology for ", servers, " servers: the demand is that of ", d.servers());
    if (degree < 1 || degree > 64) throw invalid_input("topology of degree ", degree, ": must be from 1 to 64");
    if (degree == 1 && servers > 2) throw invalid_input("topology of degree 1 for ", servers, " servers: more than two servers need at least 2");
    if (o.all_reduce_degree && *o.all_reduce_degree > degree)
        throw invalid_input("topology: ", *o.all_reduce_degree, " interfaces for all-reduces: there are ", degree);

    auto const for_rings = o.all_reduce_degree ? *o.all_reduce_degree : detail::all_reduce_share(d, degree);
    auto const& groups = d.groups();
    link_graph graph(servers, degree);
    std::vector<group_ring> rings;
    auto const count = detail::apportion_rings(d, for_rings);
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
        auto const& members = groups[g].members;
        for (auto const step : detail::steps_of(static_cast<std::uint32_t>(members.size()), count[g], o)) {
            rings.push_back({g, step, ring_order(members, step), {}});
            detail::wire(graph, rings.back());
        }
        if (count[g] == 0) rings.push_back({g, 1, members, std::vector<std::uint32_t>(members.size(), no_link)});
    }
    detail::wire_pairs(graph, d, o);
    if (servers % 2 == 0 && circulant_steps(servers, graph.links()) && !graph.links().empty())
        while (graph.free(0) % 2 == 1 && graph.free(servers / 2) > 0)
            for (std::uint32_t v = 0; v < servers / 2; ++v) graph.add(v, v + servers / 2, link_purpose::joint);
    graph.connect();
    detail::drop_broken(graph, rings);
    graph.fill();

    auto links = graph.links();
    forwarding_table routes(servers, links);
    found_topology out{servers, degree, for_rings, std::move(links), std::move(rings), std::move(routes)};
    detail::check_found(out, d);
    return out;
}

} // namespace parsearch::fabric
