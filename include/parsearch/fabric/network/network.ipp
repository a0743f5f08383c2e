#pragma once
// The network between servers, as a value: servers, switches, links, and the rings in which servers all-reduce.

#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE void validate(network const& n) {
    auto const place = [&] { return n.name.empty() ? std::string("network") : text("network ", n.name); };
    if (n.servers < 1 || n.servers > max_vertices || n.switches > max_vertices - n.servers)
        throw invalid_input(place(), " of ", n.servers, " servers and ", n.switches, " switches: must have a server, and at most ", max_vertices,
                            " of both together");
    for (std::size_t i = 0; i < n.links.size(); ++i) {
        auto const& l = n.links[i];
        if (l.a >= n.vertices() || l.b >= n.vertices() || l.a == l.b)
            throw invalid_input(place(), ", link ", i, " joins ", l.a, " and ", l.b, ": must join two different ones of ", n.vertices(), " vertices");
        if (l.wires < 1) throw invalid_input(place(), ", link ", i, " of 0 wires: must have at least one");
        topology::validate(l.each, text(place(), ", link ", i));
    }
    auto const distance = hops_from(0, neighbours_of(n.vertices(), n.links));
    if (auto const lost = std::ranges::find(distance, unreached); lost != distance.end())
        throw invalid_input(place(), ": vertex ", lost - distance.begin(), " cannot be reached from server 0: links must connect all vertices");
    for (std::size_t i = 0; i < n.rings.size(); ++i) {
        if (n.rings[i].size() < 2) throw invalid_input(place(), ", ring ", i, " has ", n.rings[i].size(), " servers: must have at least two");
        auto sorted = n.rings[i];
        std::sort(sorted.begin(), sorted.end());
        if (sorted.back() >= n.servers)
            throw invalid_input(place(), ", ring ", i, " passes server ", sorted.back(), ": there are ", n.servers, " servers");
        if (auto const twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
            throw invalid_input(place(), ", ring ", i, " passes server ", *twice, " twice: each at most once");
    }
}

} // namespace parsearch::fabric
