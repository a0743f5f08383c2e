#pragma once
// A network as a cluster: servers of several GPUs, each with one network device that its interfaces are on.

#include <limits>

#include <parsearch/fabric/servers/server_cluster.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE topology::device_spec merged_device(topology::device_spec d, std::uint32_t count) {
    constexpr auto most = std::numeric_limits<byte_count>::max();
    if (count < 1) throw invalid_input("merged device of ", count, ' ', d.kind, ": must be at least one");
    if (count == 1) return d;
    if (d.memory != most) {
        if (d.memory > most / count) throw invalid_input("merged device of ", count, ' ', d.kind, ": more memory than ", most, " bytes");
        d.memory *= count;
    }
    d.kind = text(count, " x ", d.kind);
    for (auto* const rates : {&d.contraction, &d.elementwise})
        for (auto* const rate : {&rates->f64, &rates->f32, &rates->tf32, &rates->f16, &rates->bf16, &rates->i8}) *rate *= count;
    d.memory_rate.bytes_per_second *= count;
    d.host_rate.bytes_per_second *= count;
    return d;
}

PARSEARCH_INLINE topology::cluster server_cluster(network const& n, path_table const& routes, server_options const& o) {
    using topology::cluster_builder, topology::duplex, topology::vertex;
    check_devices(n.servers, o);
    if (routes.servers() != n.servers)
        throw invalid_input("cluster of ", n.servers, " servers, routes between ", routes.servers(), ": must be the same");
    bool const merged = o.inside == inside_server::merged;
    auto const k = merged ? 1 : o.gpus_per_server;
    auto const device = merged ? merged_device(o.device, o.gpus_per_server) : o.device;
    bandwidth const host_rate{o.host_link.rate.bytes_per_second * (merged ? o.gpus_per_server : 1)};
    cluster_builder builder;
    std::vector<vertex> gpu, at; // at: the network's vertices
    for (std::uint32_t s = 0; s < n.servers; ++s) {
        for (std::uint32_t g = 0; g < k; ++g) gpu.push_back(builder.add_device(device, s));
        at.push_back(builder.add_switch(text("server ", s, " network")));
    }
    for (std::uint32_t s = 0; s < n.switches; ++s) at.push_back(builder.add_switch(text("switch ", s)));
    for (auto const& l : n.links) builder.add_duplex_link(at[l.a], at[l.b], l.each.rate, l.each.latency);
    std::vector<duplex> host;
    if (n.servers > 1)
        for (std::size_t d = 0; d < gpu.size(); ++d) host.push_back(builder.add_duplex_link(gpu[d], at[d / k], host_rate, o.host_link.latency));
    for (std::uint32_t s = 0; s < n.servers && k > 1; ++s) {
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
    std::vector<link_direction> path;
    for (std::uint32_t from = 0; from < gpu.size(); ++from)
        for (std::uint32_t to = 0; to < gpu.size(); ++to) {
            if (from / k == to / k) continue;
            path.assign(1, host[from].forward);
            routes.append_path(from / k, to / k, flow_between(from, to), path);
            path.push_back(host[to].backward);
            builder.set_route(gpu[from], gpu[to], path);
        }
    for (auto const& ring : n.rings) builder.add_ring(ring);
    return builder.build();
}

} // namespace parsearch::fabric
