#pragma once
/// The network between servers, as a value: servers, switches, links, and the rings in which servers all-reduce.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::fabric {

/// A duplex link between two vertices of a network. Several may join the same two.
struct network_link {
    std::uint32_t a = 0, b = 0;
    link_description each{}; ///< one direction, of all wires
    std::uint32_t wires = 1; ///< bonded, each at an interface of its own at either end
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

/// One wire of a link.
[[nodiscard]] inline network_link one_wire_of(network_link l) {
    l.each.rate.bytes_per_second /= l.wires;
    l.each.reduction.bytes_per_second /= l.wires;
    l.wires = 1;
    return l;
}

/// `wires` wires like those of `l` between the same two, bonded: one link of their rates' sum.
[[nodiscard]] inline network_link bundle_of(network_link const& l, std::uint32_t wires) {
    auto out = one_wire_of(l);
    out.each.rate.bytes_per_second *= wires;
    out.each.reduction.bytes_per_second *= wires;
    out.wires = wires;
    return out;
}

/// The most vertices of a network.
inline constexpr std::uint32_t max_vertices = 1 << 17;

/// Whether the links connect all vertices. Precondition: there is one, and they join vertices.
[[nodiscard]] inline bool connected(network const& n) {
    return std::ranges::count(hops_from(0, neighbours_of(n.vertices(), n.links)), unreached) == 0;
}

/// Checks a network, made by hand or by a function of this directory. Throws `invalid_input` naming the value and the rule that it breaks: at least
/// one server, at most `max_vertices` vertices; a link joins two different ones of them, it has a wire, its rate is positive and its latency not
/// negative; links connect all vertices; a ring has two servers or more, each once. Complexity: O(vertices + links + rings * servers log servers).
void validate(network const& n);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/network.ipp>
#endif
