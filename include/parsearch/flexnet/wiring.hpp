#pragma once
/// The network part of FlexNet's task graphs, from networks and topologies of ours.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::flexnet {

/// A file without work, and what it cannot say.
struct wiring {
    task_graph graph{};               ///< nodes, switches, bandwidths, connections, routes, rings and GPUs; the id of GPU g is g
    std::vector<std::uint32_t> gpu{}; ///< of each device of the topology, its number: node * gpus_per_node + its place on the node
    std::vector<std::string> losses{};
};

namespace detail {

[[nodiscard]] inline float bytes_per_ms(double bytes_per_second) { return static_cast<float>(bytes_per_second / 1000); }

/// The narrowest of the links from device `a` to device `b`, the first of equal ones.
[[nodiscard]] inline std::uint32_t narrowest(topology::dense_topology const& t, std::size_t a, std::size_t b) {
    auto const way = t.route(a, b);
    return *std::min_element(way.begin(), way.end(), [&](auto x, auto y) { return t.links[x].rate < t.links[y].rate; });
}

/// Nodes, GPUs, and what joins the GPUs of a node: one NVLink device for each ordered pair, as fast as the narrowest link between them.
[[nodiscard]] wiring nodes_of(topology::dense_topology const& t);
} // namespace detail

/// A star: each node has links to one switch, as many as there are links that bound what its devices send to other nodes, all of the least rate of
/// these, or of what each of them has of a link that they share, where all devices send alike to all other nodes. Says in `losses` what of `t` that
/// leaves out. Complexity: O(devices^2 * length of a route).
[[nodiscard]] wiring star_wiring(topology::dense_topology const& t);

/// Network `n`, of whose servers devices of `t` are the GPUs: `t` was read off `fabric::server_cluster(n, routes, ...)`. A route has the paths of the
/// flows between the devices of its two servers, each with its part of them. Parallel links become one connection. Throws `invalid_input` where the
/// rates of links are no multiples of the least, or `t` has other servers. Complexity: O(pairs of devices * hops).
[[nodiscard]] wiring wiring_of(fabric::network const& n, fabric::path_table const& ways, topology::dense_topology const& t);

} // namespace parsearch::flexnet

#ifndef PARSEARCH_COMPILED
#include <parsearch/flexnet/wiring.ipp>
#endif
