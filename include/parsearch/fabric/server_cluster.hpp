#pragma once
/// A fabric as a cluster: servers of several GPUs, each with one network device that its interfaces are on.

#include <cstdint>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/link_load.hpp>
#include <parsearch/fabric/topology_finder.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::fabric {

/// How the GPUs of a server are joined.
enum class inside_server : std::uint8_t {
    direct,    ///< a link for every ordered pair of GPUs
    one_switch ///< a link up and one down between each GPU and one switch; each with the latency given, so two of them from GPU to GPU
};

/// Servers of `server_cluster`. Every link is one direction.
struct server_options {
    std::uint32_t gpus_per_server = 1;
    topology::device_spec device{};
    inside_server inside = inside_server::direct;
    link_description inside_link{}; ///< unused with one GPU
    link_description host_link{};   ///< between each GPU and the network device of its server
    link_description interface{};   ///< of a link between two servers: the rate of an interface, the latency of a hop
};

/// The cluster of a fabric: device s * gpus_per_server + g is GPU g of server s, its node is s. Messages between servers pass the sender's host
/// link, the links of the fabric's route (through the network devices of other servers, not their GPUs) and the receiver's host
/// link; those inside a server stay on its own links. Link 2l and 2l + 1 are the two directions of the fabric's link l (`link_direction`).
/// Throws `invalid_input` on no GPUs, more than a cluster holds, links or devices that break the rules of `cluster_builder`.
/// Complexity: O(pairs of devices * hops).
[[nodiscard]] inline topology::cluster server_cluster(found_topology const& t, server_options const& o) {
    using topology::cluster_builder, topology::duplex, topology::vertex;
    if (o.gpus_per_server < 1 || std::uint64_t{t.servers} * o.gpus_per_server > cluster_builder::max_devices)
        throw invalid_input(t.servers, " servers of ", o.gpus_per_server, " GPUs: a cluster holds from 1 to ", cluster_builder::max_devices);
    auto const k = o.gpus_per_server;
    cluster_builder builder;
    std::vector<vertex> gpu, network;
    for (std::uint32_t s = 0; s < t.servers; ++s) {
        for (std::uint32_t g = 0; g < k; ++g) gpu.push_back(builder.add_device(o.device, s));
        network.push_back(builder.add_switch(text("server ", s, " network")));
    }
    for (auto const& l : t.links) builder.add_duplex_link(network[l.a], network[l.b], o.interface.rate, o.interface.latency);
    std::vector<duplex> host;
    if (t.servers > 1)
        for (std::size_t d = 0; d < gpu.size(); ++d)
            host.push_back(builder.add_duplex_link(gpu[d], network[d / k], o.host_link.rate, o.host_link.latency));
    for (std::uint32_t s = 0; s < t.servers && k > 1; ++s) {
        auto const* const own = &gpu[std::size_t{s} * k];
        if (o.inside == inside_server::direct) {
            for (std::uint32_t g = 0; g < k; ++g)
                for (std::uint32_t h = 0; h < k; ++h)
                    if (g != h) builder.set_route(own[g], own[h], {builder.add_link(own[g], own[h], o.inside_link.rate, o.inside_link.latency)});
            continue;
        }
        auto const middle = builder.add_switch(text("server ", s, " switch"));
        std::vector<duplex> up;
        for (std::uint32_t g = 0; g < k; ++g) up.push_back(builder.add_duplex_link(own[g], middle, o.inside_link.rate, o.inside_link.latency));
        for (std::uint32_t g = 0; g < k; ++g)
            for (std::uint32_t h = 0; h < k; ++h)
                if (g != h) builder.set_route(own[g], own[h], {up[g].forward, up[h].backward});
    }
    link_index const index(t.servers, t.links);
    for (std::uint32_t a = 0; a < t.servers; ++a)
        for (std::uint32_t b = 0; b < t.servers; ++b) {
            if (a == b) continue;
            auto path = index.route(t.routes, a, b);
            path.insert(path.begin(), 0);
            path.push_back(0);
            for (std::uint32_t g = 0; g < k; ++g)
                for (std::uint32_t h = 0; h < k; ++h) {
                    auto const from = a * k + g, to = b * k + h;
                    path.front() = host[from].forward;
                    path.back() = host[to].backward;
                    builder.set_route(gpu[from], gpu[to], path);
                }
        }
    return builder.build();
}

} // namespace parsearch::fabric
