#pragma once
/// Wires a fabric for its traffic: rings for all-reduces, links for point-to-point traffic, routes for the rest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/fabric/paths/forwarding.hpp>
#include <parsearch/fabric/paths/ring_selection.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/fabric/wiring/link_graph.hpp>
#include <parsearch/fabric/wiring/matching.hpp>

namespace parsearch::fabric {

/// No link: a hop of a ring that the routes carry.
inline constexpr std::uint32_t no_link = std::numeric_limits<std::uint32_t>::max();

/// How the steps of a group's rings are chosen.
enum class step_choice : std::uint8_t {
    geometric, ///< `select_steps`
    exhaustive ///< `best_steps`, by diameter
};

/// What the matchings of servers maximise.
enum class pair_weight : std::uint8_t {
    byte_hops, ///< bytes times the hops that they take without the link: what it saves the other links, and 1 for servers already joined
    bytes      ///< bytes alone, as TopoOpt has it: among many equal pairs it does not see which are far apart
};

/// Options of `topology_finder`.
struct finder_options {
    /// Interfaces of each server for all-reduces; not set: in proportion to the bytes.
    std::optional<std::uint32_t> all_reduce_degree{};
    step_choice steps = step_choice::geometric;
    /// Which steps `geometric` chooses from.
    step_set candidates = step_set::coprime;
    pair_weight pairs = pair_weight::byte_hops;
    /// Matchings of more servers than this are greedy (at least half of the maximum weight), not exact.
    std::uint32_t exact_matching_up_to = 128;
};

/// A ring through a group: hop i leads from order[i] to the next, the last to the first.
struct group_ring {
    std::uint32_t group = 0; ///< its number in `demand::groups`
    std::uint32_t step = 0;
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> links; ///< of each hop, or `no_link`; one for both hops of a group of two
    /// Whether every hop has a link of its own.
    [[nodiscard]] bool wired() const { return std::find(links.begin(), links.end(), no_link) == links.end(); }
    friend bool operator==(group_ring const&, group_ring const&) = default;
};

/// A wired fabric.
struct found_topology {
    std::uint32_t servers = 0, degree = 0;
    std::uint32_t all_reduce_degree = 0; ///< the interfaces of each server that were set aside for rings
    std::vector<fabric_link> links;
    std::vector<group_ring> rings; ///< by group; at least one for each
    forwarding_table routes;
};

namespace detail {

/// The interfaces of each server for rings: the share of all-reduces in the bytes on the wire, to the nearest ring (two interfaces), at least
/// one ring where there is an all-reduce.
[[nodiscard]] inline std::uint32_t all_reduce_share(demand const& d, std::uint32_t degree) {
    auto const rings = static_cast<double>(d.all_reduce_bytes()), pairs = static_cast<double>(d.point_to_point_bytes());
    if (d.all_reduce_bytes() == 0) return 0;
    if (d.point_to_point_bytes() == 0) return degree;
    auto const count = static_cast<std::uint32_t>(rings / (rings + pairs) * static_cast<double>(degree) / 2 + 0.5);
    return std::min(degree, 2 * std::max(count, 1u));
}

/// How many rings each group gets: the next one goes to the group whose members would each send most per ring with it, as long as all its
/// members have interfaces left (D'Hondt's apportionment). Ends where no group can have more.
[[nodiscard]] inline std::vector<std::uint32_t> apportion_rings(demand const& d, std::uint32_t interfaces) {
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

/// Steps of `count` rings; more than there are different ones are wired again from the first.
[[nodiscard]] inline std::vector<std::uint32_t> steps_of(std::uint32_t g, std::uint32_t count, finder_options const& o) {
    auto out = o.steps == step_choice::geometric ? select_steps(g, count, o.candidates) : best_steps(g, count);
    for (std::size_t i = 0; out.size() < count; ++i) out.push_back(out[i]);
    return out;
}

/// Adds the links of a ring to the graph.
inline void wire(link_graph& graph, group_ring& ring) {
    auto const g = ring.order.size();
    ring.links.assign(g, no_link);
    if (g == 2) {
        ring.links[0] = ring.links[1] = graph.add(ring.order[0], ring.order[1], link_purpose::ring);
        return;
    }
    for (std::size_t i = 0; i < g; ++i) ring.links[i] = graph.add(ring.order[i], ring.order[(i + 1) % g], link_purpose::ring);
}

/// Hops between all pairs, row by row; `unreached` where there is no way. Complexity: O(n * (n + links)).
[[nodiscard]] inline std::vector<std::uint32_t> all_hops(std::vector<std::vector<std::uint32_t>> const& near) {
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
inline void wire_pairs(link_graph& graph, demand const& d, finder_options const& o) {
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
inline void drop_broken(link_graph& graph, std::vector<group_ring>& rings) {
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
inline void check_found(found_topology const& t, demand const& d) {
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

} // namespace detail

/// Wires `servers` servers of `degree` interfaces each for `d`, in four steps: (1) the interfaces are split between all-reduces and
/// point-to-point traffic in proportion to the bytes on the wire; (2) the groups get rings in proportion to what their members send, of steps
/// chosen to give short paths; (3) the other interfaces get maximum-weight matchings of the point-to-point traffic; (4) parts are connected and
/// free interfaces joined far apart (`link_graph`). An odd interface of every server of an even number goes to the server half way round where
/// that keeps the fabric a circulant. The links connect all servers, none has more than `degree`. Where a part had to be connected
/// by a link of a ring, or a group found no interfaces, a ring is not `wired`: its missing hops take the routes. Deterministic.
/// Throws `invalid_input` where `servers` is not that of the demand, the degree is not from 1 to 64, or is 1 with more than two servers, which no
/// links could connect; or the options break a rule. Source: W. Wang et al., TopoOpt, NSDI 2023, TopologyFinder.
/// Complexity: O(degree * servers^3) with exact matchings of random weights, else O(servers^2 * (degree + log servers)).
[[nodiscard]] inline found_topology topology_finder(demand const& d, std::uint32_t servers, std::uint32_t degree, finder_options const& o = {}) {
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
