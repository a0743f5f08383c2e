#pragma once
/// The network between servers, as a value: servers, switches, links, and the rings in which servers all-reduce.

#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>

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

} // namespace parsearch::fabric
