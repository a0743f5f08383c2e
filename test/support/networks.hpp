#pragma once
/// Networks and servers for tests of fabrics.

#include <chrono>
#include <cstdint>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>
#include <parsearch/topology/device.hpp>

namespace support {

inline constexpr parsearch::link_description ten_gigabit{{10e9 / 8}, std::chrono::microseconds{1}};

/// Servers of V100, with interfaces of 10 Gb/s.
inline parsearch::fabric::server_options slow_servers(std::uint32_t gpus) {
    using std::chrono::microseconds;
    return {.gpus_per_server = gpus,
            .device = parsearch::topology::v100_sxm,
            .inside_link = {{50e9}, microseconds{1}},
            .host_link = {{16e9}, microseconds{1}},
            .interface = ten_gigabit};
}

/// How many wires each vertex of a network has.
inline std::vector<std::uint32_t> degrees(parsearch::fabric::network const& n) { return parsearch::fabric::degrees_of(n.vertices(), n.links); }

} // namespace support
