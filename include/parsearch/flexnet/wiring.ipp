#pragma once
// The network part of FlexNet's task graphs, from networks and topologies of ours.

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <parsearch/core/error.hpp>
#include <parsearch/flexnet/wiring.hpp>

namespace parsearch::flexnet::detail {

PARSEARCH_INLINE wiring nodes_of(topology::dense_topology const& t) {
    wiring out;
    auto& g = out.graph;
    std::vector<std::uint32_t> place;
    std::map<std::uint32_t, std::uint32_t> on_node;
    for (auto const node : t.node) place.push_back(on_node[node]++);
    g.nodes = static_cast<std::uint32_t>(on_node.size());
    for (auto const& [node, count] : on_node) g.gpus_per_node = std::max(g.gpus_per_node, count);
    for (std::uint32_t d = 0; d < t.size(); ++d) {
        out.gpu.push_back(t.node[d] * g.gpus_per_node + place[d]);
        g.devices.push_back({device_type::gpu, out.gpu[d], t.node[d], out.gpu[d], 0});
    }
    auto const all = std::uint64_t{g.nodes} * g.gpus_per_node;
    auto id = all;
    double slowest = std::numeric_limits<double>::infinity();
    std::vector<bool> used(t.links.size(), false);
    bool shared = false;
    for (std::uint32_t a = 0; a < t.size(); ++a)
        for (std::uint32_t b = 0; b < t.size(); ++b) {
            if (a == b || t.node[a] != t.node[b]) continue;
            auto const rate = t.links[narrowest(t, a, b)].rate.bytes_per_second / 1000;
            slowest = std::min(slowest, rate);
            auto const whole = std::max<std::int64_t>(1, std::llround(std::min(rate, 1e18)));
            g.devices.push_back({device_type::nvlink, id++, t.node[a], out.gpu[a] * all + out.gpu[b], static_cast<std::uint64_t>(whole)});
            for (auto const l : t.route(a, b)) {
                shared = shared || used[l];
                used[l] = true;
            }
        }
    if (slowest < std::numeric_limits<double>::infinity()) g.gpu_bytes_per_ms = static_cast<float>(slowest);
    if (shared) out.losses.emplace_back("links that several pairs of devices of a node share are one link for each pair");
    return out;
}

} // namespace parsearch::flexnet::detail

namespace parsearch::flexnet {

PARSEARCH_INLINE wiring star_wiring(topology::dense_topology const& t) {
    auto out = detail::nodes_of(t);
    auto& g = out.graph;
    if (!t.rings.empty()) out.losses.emplace_back("rings of nodes are left out: an ideal switch needs none");
    if (g.nodes == 1) return out;
    std::vector<std::set<std::uint32_t>> bounds(g.nodes);
    std::vector<std::map<std::uint32_t, std::size_t>> leaving(g.nodes); // how many pairs of devices pass each link on their way out of a node
    std::vector<std::size_t> pairs(g.nodes, 0);
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::size_t a = 0; a < t.size(); ++a)
        for (std::size_t b = 0; b < t.size(); ++b) {
            if (t.node[a] == t.node[b]) continue;
            auto const l = detail::narrowest(t, a, b);
            bounds[t.node[a]].insert(l);
            least = std::min(least, t.links[l].rate.bytes_per_second);
            most = std::max(most, t.links[l].rate.bytes_per_second);
            ++pairs[t.node[a]];
            for (auto const passed : t.route(a, b)) ++leaving[t.node[a]][passed];
        }
    if (most > least)
        out.losses.push_back(text("links between nodes have from ", least, " to ", most, " bytes per second: all are written as the least"));
    // What a node sends alike to all others passes links that these share, too.
    auto const all = least;
    for (std::uint32_t n = 0; n < g.nodes; ++n)
        for (auto const& [l, passing] : leaving[n])
            least =
                std::min(least, t.links[l].rate.bytes_per_second * static_cast<double>(pairs[n]) / static_cast<double>(passing * bounds[n].size()));
    if (least < all * (1 - 1e-9))
        out.losses.push_back(text("links of ", all, " bytes per second share others on their way out of a node: all are written as ", least));
    else least = all;
    out.losses.emplace_back("the network between nodes is written as one ideal switch");
    g.switches = 1;
    g.link_bytes_per_ms = detail::bytes_per_ms(least);
    for (std::uint32_t n = 0; n < g.nodes; ++n) g.connections.push_back({g.nodes, n, static_cast<std::uint32_t>(bounds[n].size())});
    for (std::uint32_t a = 0; a < g.nodes; ++a)
        for (std::uint32_t b = 0; b < g.nodes; ++b) {
            g.routes.push_back({a, b, {}});
            if (a != b) g.routes.back().paths.push_back({{a, g.nodes, b}, 1});
        }
    return out;
}

} // namespace parsearch::flexnet

namespace parsearch::flexnet::detail {

/// The step of a ring through its members in ascending order; 0 where it has no constant one.
PARSEARCH_INLINE std::uint32_t step_of(std::vector<std::uint32_t> const& ring) {
    auto members = ring;
    std::sort(members.begin(), members.end());
    auto const place = [&](std::size_t i) {
        return static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), ring[i % ring.size()]) - members.begin());
    };
    auto const g = ring.size(), step = (place(1) + g - place(0)) % g;
    for (std::size_t i = 1; i < g; ++i)
        if ((place(i) + step) % g != place(i + 1)) return 0;
    return static_cast<std::uint32_t>(step);
}

PARSEARCH_INLINE void add_rings(fabric::network const& n, wiring& out) {
    auto& g = out.graph;
    if (g.gpus_per_node > 1 && !n.rings.empty()) {
        out.losses.emplace_back("rings of servers are left out: the format has rings of GPUs, and servers have several (merged servers have one)");
        return;
    }
    std::map<std::uint64_t, group_rings> by_size;
    for (std::size_t r = 0; r < n.rings.size(); ++r) {
        auto const step = step_of(n.rings[r]);
        if (step == 0) {
            out.losses.push_back(text("ring ", r, " of servers is left out: it has no constant step through its members"));
            continue;
        }
        auto& rings = by_size[n.rings[r].size()];
        rings.size = n.rings[r].size();
        rings.jumps.push_back({static_cast<std::int32_t>(step)});
    }
    for (auto& [size, rings] : by_size) {
        std::set<std::vector<std::uint32_t>> groups;
        for (auto ring : n.rings) {
            std::sort(ring.begin(), ring.end());
            if (ring.size() == size) groups.insert(std::move(ring));
        }
        if (groups.size() == 1) {
            g.rings.push_back(std::move(rings));
            continue;
        }
        std::sort(rings.jumps.begin(), rings.jumps.end());
        rings.jumps.erase(std::unique(rings.jumps.begin(), rings.jumps.end()), rings.jumps.end());
        out.losses.push_back(text("rings of ", size, " servers are of ", groups.size(), " groups: the format has the same for all groups of a size"));
        g.rings.push_back(std::move(rings));
    }
}

} // namespace parsearch::flexnet::detail

namespace parsearch::flexnet {

PARSEARCH_INLINE wiring wiring_of(fabric::network const& n, fabric::path_table const& ways, topology::dense_topology const& t) {
    auto out = detail::nodes_of(t);
    auto& g = out.graph;
    if (g.nodes != n.servers || ways.servers() != n.servers)
        throw invalid_input("FlexNet task graph of ", g.nodes, " nodes on a network of ", n.servers, " servers, routes between ", ways.servers(),
                            ": must be the same");
    g.switches = n.switches;
    double least = std::numeric_limits<double>::infinity();
    for (auto const& l : n.links) least = std::min(least, l.each.rate.bytes_per_second);
    if (!n.links.empty()) g.link_bytes_per_ms = detail::bytes_per_ms(least);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> joined; // larger vertex first
    for (std::size_t i = 0; i < n.links.size(); ++i) {
        auto const& l = n.links[i];
        auto const times = l.each.rate.bytes_per_second / least;
        auto const whole = std::round(times);
        if (std::abs(times - whole) > 1e-6 * times || whole > 1e6)
            throw invalid_input("link ", i, " of the network has ", l.each.rate.bytes_per_second, " bytes per second, another ", least,
                                ": FlexNet's links have one rate, so all must be multiples of the least, at most a million times");
        joined[{std::max(l.a, l.b), std::min(l.a, l.b)}] += static_cast<std::uint32_t>(whole);
    }
    for (auto const& [ends, links] : joined) g.connections.push_back({ends.first, ends.second, links});
    std::vector<std::vector<std::uint32_t>> devices_of(g.nodes);
    for (std::uint32_t d = 0; d < t.size(); ++d) devices_of[t.node[d]].push_back(d);
    std::vector<fabric::link_direction> way;
    for (std::uint32_t a = 0; a < g.nodes; ++a)
        for (std::uint32_t b = 0; b < g.nodes; ++b) {
            auto& r = g.routes.emplace_back(vertex_route{a, b, {}});
            if (a == b) continue;
            std::map<std::vector<std::uint32_t>, std::uint32_t> flows;
            for (auto const from : devices_of[a])
                for (auto const to : devices_of[b]) {
                    way.clear();
                    ways.append_path(a, b, fabric::flow_between(from, to), way);
                    std::vector<std::uint32_t> vertices{a};
                    for (auto const l : way) vertices.push_back(l % 2 == 0 ? n.links[l / 2].b : n.links[l / 2].a);
                    ++flows[std::move(vertices)];
                }
            auto const all = static_cast<float>(devices_of[a].size() * devices_of[b].size());
            for (auto const& [vertices, count] : flows) r.paths.push_back({vertices, static_cast<float>(count) / all});
        }
    detail::add_rings(n, out);
    return out;
}

} // namespace parsearch::flexnet
