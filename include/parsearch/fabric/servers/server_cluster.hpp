#pragma once
/// A network as a cluster: servers of several GPUs, each with one network device that its interfaces are on.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/fabric/wiring/found_network.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::fabric {

/// How the GPUs of a server are joined.
enum class inside_server : std::uint8_t {
    direct,     ///< a link for every ordered pair of GPUs
    one_switch, ///< a link up and one down between each GPU and one switch; each with the latency given, so two of them from GPU to GPU
    merged      ///< all GPUs of a server are one device: `merged_device`
};
[[nodiscard]] constexpr std::string_view name_of(inside_server i) noexcept {
    return i == inside_server::direct ? "direct" : i == inside_server::one_switch ? "one_switch" : "merged";
}

/// Servers of `server_cluster`. Every link is one direction.
struct server_options {
    std::uint32_t gpus_per_server = 1;
    topology::device_spec device{};
    inside_server inside = inside_server::direct;
    link_description inside_link{}; ///< unused with one GPU, or merged ones
    link_description
        host_link{}; ///< between each GPU and the network device of its server; merged GPUs have that of all of them, at their rates' sum
    link_description interface {
    }; ///< the links of a `found_topology`: the rate of an interface, the latency of a hop. Those of a network say their own
};

/// `count` GPUs as one device: their peak rates, memory, and rates to memory and host together, the launch overhead of one, the kind "4 x a100_sxm".
/// Work runs on it as if split over all of them without loss. One GPU stays what it is. Throws `invalid_input` on no GPUs or more memory than a byte
/// count holds.
[[nodiscard]] topology::device_spec merged_device(topology::device_spec d, std::uint32_t count);

/// Throws `invalid_input` where a cluster cannot hold the devices of so many servers.
inline void check_devices(std::uint32_t servers, server_options const& o) {
    auto const most = topology::cluster_builder::max_group;
    if (o.gpus_per_server < 1 || std::uint64_t{servers} * (o.inside == inside_server::merged ? 1 : o.gpus_per_server) > most)
        throw invalid_input(servers, " servers of ", o.gpus_per_server, " GPUs: a cluster holds from 1 to ", most, " devices");
}

/// The cluster of network `n`, whose flows take the paths of `routes`, made of `n`. With k devices per server (`gpus_per_server`, merged 1), device
/// s * k + g is GPU g of server s, its node is s. Messages between servers pass the sender's host link, the links of their flow's path (by way of
/// network devices of servers, not their GPUs, and of switches) and the receiver's host link; those inside a server stay on its own
/// links. A flow is an ordered pair of devices. Links 0 to 2 * n.links.size() - 1 are the directions of the network's links (`link_direction`: 2l
/// and 2l + 1 of link l); its rings are the cluster's.
/// Throws `invalid_input` on no GPUs, more than a cluster holds, routes of other servers, links or devices that break the rules of
/// `cluster_builder`. Complexity: O(pairs of devices * hops).
[[nodiscard]] topology::cluster server_cluster(network const& n, path_table const& routes, server_options const& o);

/// The same, with routes made for it. Throws as `path_table` too.
[[nodiscard]] inline topology::cluster server_cluster(network const& n, routing_options const& routes, server_options const& o) {
    check_devices(n.servers, o);
    return server_cluster(n, path_table(n, routes), o);
}

/// The cluster of a found fabric on its shortest routes, with the links that `server_options::interface` says.
[[nodiscard]] inline topology::cluster server_cluster(found_topology const& t, server_options const& o) {
    return server_cluster(network_of(t, o.interface), routing_options{}, o);
}

/// The direction of the network's link that a link of its cluster is (`link_direction`); none for host links and those inside servers.
[[nodiscard]] inline std::optional<link_direction> network_direction(network const& n, std::uint32_t cluster_link) {
    if (cluster_link >= 2 * n.links.size()) return std::nullopt;
    return cluster_link;
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/server_cluster.ipp>
#endif
