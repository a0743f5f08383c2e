#pragma once
/// The network between servers, as a value: servers, switches, links, and the rings in which servers all-reduce.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::fabric {

/// A duplex link between two vertices of a network. Several may join the same two.
struct network_link {
    std::uint32_t a = 0, b = 0;
    link_description each{}; ///< one direction
    friend bool operator==(network_link const&, network_link const&) = default;
};

/// Vertices 0 to servers - 1 are servers, those after them switches. Servers pass on what is for others, as switches do.
struct network {
    std::string name{};
    std::uint32_t servers = 0, switches = 0;
    std::vector<network_link> links{};
    /// Orders of servers, each once, the last followed by the first; one direction each. Servers that are exactly those of some rings split their
    /// all-reduces evenly over these.
    std::vector<std::vector<std::uint32_t>> rings{};

    [[nodiscard]] std::uint32_t vertices() const noexcept { return servers + switches; }
    friend bool operator==(network const&, network const&) = default;
};

/// The most vertices of a network.
inline constexpr std::uint32_t max_vertices = 1 << 17;

/// Whether the links connect all vertices. Precondition: there is one, and they join vertices.
[[nodiscard]] inline bool connected(network const& n) {
    return std::ranges::count(hops_from(0, neighbours_of(n.vertices(), n.links)), unreached) == 0;
}

/// Checks a network, made by hand or by a function of this directory. Throws `invalid_input` naming the value and the rule that it breaks: at least
/// one server, at most `max_vertices` vertices; a link joins two different ones of them, its rate is positive and its latency not negative; links
/// connect all vertices; a ring has two servers or more, each once. Complexity: O(vertices + links + rings * servers log servers).
inline void validate(network const& n) {
    auto const place = [&] { return n.name.empty() ? std::string("network") : text("network ", n.name); };
    if (n.servers < 1 || n.servers > max_vertices || n.switches > max_vertices - n.servers)
        throw invalid_input(place(), " of ", n.servers, " servers and ", n.switches, " switches: must have a server, and at most ", max_vertices,
                            " of both together");
    for (std::size_t i = 0; i < n.links.size(); ++i) {
        auto const& l = n.links[i];
        if (l.a >= n.vertices() || l.b >= n.vertices() || l.a == l.b)
            throw invalid_input(place(), ", link ", i, " joins ", l.a, " and ", l.b, ": must join two different ones of ", n.vertices(), " vertices");
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

/// Refuses a number of servers that no network has.
inline void check_servers(std::uint64_t servers, char const* what) {
    if (servers < 1 || servers > max_vertices) throw invalid_input(what, " of ", servers, " servers: must be from 1 to ", max_vertices);
}

namespace detail {

/// `n` if it is valid.
[[nodiscard]] inline network checked(network n) {
    validate(n);
    return n;
}
} // namespace detail

} // namespace parsearch::fabric
