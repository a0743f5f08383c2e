#pragma once
// Fabrics by name: "fabric:random_regular,servers=16,gpus_per_server=4,degree=4,interface=100Gbps".

#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/paths/ring_selection.hpp>
#include <parsearch/io/names/fabric_name.hpp>
#include <parsearch/topology/nodes.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::vector<std::uint32_t> even_extents(std::uint32_t n, std::uint32_t dimensions) {
    std::vector<std::uint32_t> out;
    for (; n > 1 && dimensions > 0; --dimensions) {
        auto const reaches = [&](std::uint64_t extent) { // extent^dimensions >= n
            std::uint64_t product = 1;
            for (std::uint32_t d = 0; d < dimensions && product < n; ++d) product *= extent;
            return product >= n;
        };
        std::uint32_t extent = 2;
        while (n % extent != 0 || !reaches(extent)) ++extent;
        out.push_back(extent);
        n /= extent;
    }
    if (out.empty()) out.push_back(1);
    std::sort(out.begin(), out.end());
    return out;
}

PARSEARCH_IO_INLINE fabric::network named_torus(fabric_options const& o, link_description const& interface) {
    if (o.extents.empty() && o.degree < 2 && o.servers > 1)
        throw invalid_input("degree is ", o.degree, ": must be at least 2, two interfaces for each dimension");
    fabric::check_servers(o.servers, "torus");
    auto out = fabric::torus(o.extents.empty() ? even_extents(o.servers, o.degree / 2) : o.extents, interface);
    if (out.servers != o.servers)
        throw invalid_input("extents are ", option_value<std::vector<std::uint32_t>>::print(o.extents), ", which are ", out.servers,
                            " servers: must be as many as servers, ", o.servers);
    return out;
}

PARSEARCH_IO_INLINE fabric::network named_circulant(fabric_options const& o, link_description const& interface) {
    if (!o.steps.empty()) return fabric::circulant(o.servers, o.steps, interface);
    // Two servers have one step, which takes one interface.
    if (o.servers > 2 && (o.degree < 2 || o.degree % 2 != 0))
        throw invalid_input("degree is ", o.degree, ": must be even and positive, two interfaces for each step; or say which steps");
    fabric::check_servers(o.servers, "circulant");
    return fabric::circulant(o.servers, o.servers > 1 ? fabric::select_steps(o.servers, std::max(o.degree / 2, 1u)) : std::vector<std::uint32_t>{},
                             interface);
}

PARSEARCH_IO_INLINE fabric::network named_random(fabric_options const& o, link_description const& interface) {
    if (std::uint64_t{o.servers} * o.degree % 2 != 0)
        throw invalid_input("servers are ", o.servers, " of degree ", o.degree,
                            ": servers * degree must be even, else an interface has no other end");
    auto out = fabric::random_regular(o.servers, o.degree, o.wiring_seed, interface);
    out.name = text("random regular, degree ", o.degree);
    return out;
}

/// Refuses a network of servers that takes more interfaces of one than it has.
PARSEARCH_IO_INLINE void check_interfaces(fabric::network const& n, std::uint32_t degree) {
    if (n.switches > 0) return;
    auto const used = fabric::degrees_of(n.servers, n.links);
    if (auto const most = *std::max_element(used.begin(), used.end()); most > degree)
        throw invalid_input("degree is ", degree, ": must be at least ", most, ", the interfaces that ", n.name, " takes of a server");
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE fabric::server_options servers_of(fabric_options const& o) {
    auto const* const device = find_device(o.device);
    if (!device) throw invalid_input("device is '", o.device, "': must be one of ", known_devices());
    if (o.gpus_per_server < 1) throw invalid_input("gpus_per_server is 0: must be at least 1");
    if (constexpr std::chrono::hours day{24}; o.latency > day)
        throw invalid_input("latency is ", std::chrono::duration_cast<std::chrono::seconds>(o.latency).count(), " s: must be at most a day");
    auto const node = topology::complete({.count = 2, .gpus_per_node = o.gpus_per_server, .device = *device});
    bool const pcie = node.intra == topology::intra_node::pcie;
    fabric::server_options out{
        .gpus_per_server = o.gpus_per_server,
        .device = *device,
        .inside = o.inside.value_or(node.intra == topology::intra_node::direct ? fabric::inside_server::direct : fabric::inside_server::one_switch),
        .inside_link = node.intra_link,
        .host_link = pcie ? node.intra_link : node.host_link,
        .interface = {o.interface, std::chrono::duration_cast<picoseconds>(o.latency)}};
    if (out.inside == fabric::inside_server::one_switch) out.inside_link.latency /= 2; // a node's is that from GPU to GPU
    return out;
}

PARSEARCH_IO_INLINE asked_fabric read_fabric(std::string_view given) {
    auto const asked = parse_settings(given);
    asked_fabric out{&find_fabric(asked.name), {}};
    auto const place = text("fabric ", asked.name);
    set_options(out.options, asked.settings, place);
    for (auto const& s : asked.settings) {
        if (!has_fabric_option(*out.entry, s.key)) throw invalid_input(place, ": option '", s.key, "' is one of other fabrics");
        if (s.key == "paths" && out.options.routing != fabric::routing::k_shortest)
            throw invalid_input(place, ": option 'paths' is given, but routing is ", name_of(out.options.routing), ": must be k_shortest");
    }
    if (!out.entry->make && out.options.routing == fabric::routing::coin_change)
        throw invalid_input(
            place,
            ": option 'routing' is coin_change: must be another, since not all wirings are circulants; shortest takes its paths where they are");
    return out;
}

PARSEARCH_IO_INLINE named_fabric make_fabric(std::string_view given) {
    auto const [entry, options] = read_fabric(given);
    if (!entry->make) throw invalid_input("fabric ", entry->name, ": is wired for a model, which is not known here: must be another");
    try {
        auto const servers = servers_of(options);
        fabric::check_devices(options.servers, servers);
        auto network = entry->make(options, servers.interface);
        detail::check_interfaces(network, options.degree);
        if (network.rings.empty()) network.rings = fabric::disjoint_rings(network);
        auto cluster = fabric::server_cluster(network, paths_of(options), servers);
        return {std::move(network), std::move(cluster)};
    } catch (invalid_input const& e) {
        throw invalid_input("fabric ", entry->name, ": ", e.what());
    }
}

} // namespace parsearch::io
