#pragma once
/// Regular topologies of single-device nodes: fully connected, torus, k-ary fat tree.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::topology {

/// Options of `fully_connected`. `link` is one direction of every link.
struct fully_connected_options {
    std::uint32_t devices = 0;
    device_spec device{};
    link_description link{};
};

/// Options of `torus`: devices per dimension, e.g. {4, 4} or {8, 8, 8}. `link` is one direction of a link between neighbours.
struct torus_options {
    std::vector<std::uint32_t> extents{};
    device_spec device{};
    link_description link{};
};

/// Options of `fat_tree`: `k` ports per switch, so k^3 / 4 devices. `link` is one direction of every link.
struct fat_tree_options {
    std::uint32_t k = 0;
    device_spec device{};
    link_description link{};
};

namespace detail {
/// Adds `count` devices, each a node.
inline std::vector<vertex> add_devices(cluster_builder& builder, std::uint64_t count, device_spec const& device) {
    if (count < 1 || count > cluster_builder::max_devices)
        throw invalid_input(count, " devices: must be from 1 to ", cluster_builder::max_devices);
    std::vector<vertex> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(builder.add_device(device, i));
    return out;
}
} // namespace detail

/// A direct link from every device to every other. Throws `invalid_input` on a bad count, device or link.
[[nodiscard]] inline cluster fully_connected(fully_connected_options const& o) {
    cluster_builder builder;
    auto const device = detail::add_devices(builder, o.devices, o.device);
    for (auto const a : device)
        for (auto const b : device)
            if (a != b) builder.add_link(a, b, o.link.rate, o.link.latency);
    return builder.build();
}

/// A torus: each device is linked both ways to its neighbours in every dimension (one neighbour in a dimension of two, none in one
/// of one). Device numbers are row major, the last dimension varies fastest. Routes go through the dimensions in order, the shorter way
/// around each, upwards where both are equal (dimension-ordered routing: W. Dally, C. Seitz, IEEE Trans. Computers C-36, 1987).
/// Throws `invalid_input` on no dimension, an extent of 0, more devices than a cluster holds, a bad device or link.
[[nodiscard]] inline cluster torus(torus_options const& o) {
    if (o.extents.empty()) throw invalid_input("torus of 0 dimensions: must have at least one");
    std::uint64_t count = 1;
    for (auto const extent : o.extents) {
        if (extent < 1 || extent > cluster_builder::max_devices)
            throw invalid_input("torus: extent ", extent, ": must be from 1 to ", cluster_builder::max_devices);
        if ((count *= extent) > cluster_builder::max_devices)
            throw invalid_input("torus: more than ", cluster_builder::max_devices, " devices: a cluster holds no more");
    }
    cluster_builder builder;
    auto const device = detail::add_devices(builder, count, o.device);
    std::size_t const dims = o.extents.size(), n = device.size();
    std::vector<std::size_t> step(dims, 1); ///< between the numbers of neighbours
    for (std::size_t k = dims; k-- > 1;) step[k - 1] = step[k] * o.extents[k];
    auto const coordinate = [&](std::size_t d, std::size_t k) { return d / step[k] % o.extents[k]; };
    auto const moved = [&](std::size_t d, std::size_t k, bool up) {
        std::size_t const extent = o.extents[k], at = coordinate(d, k);
        return d - at * step[k] + (at + (up ? 1 : extent - 1)) % extent * step[k];
    };
    // link[(d * dims + k) * 2 + up]: from d to its neighbour in dimension k.
    std::vector<std::uint32_t> link(n * dims * 2);
    for (std::size_t d = 0; d < n; ++d)
        for (std::size_t k = 0; k < dims; ++k) {
            if (o.extents[k] == 1) continue;
            auto* const pair = &link[(d * dims + k) * 2];
            pair[1] = builder.add_link(device[d], device[moved(d, k, true)], o.link.rate, o.link.latency);
            pair[0] = o.extents[k] == 2 ? pair[1] : builder.add_link(device[d], device[moved(d, k, false)], o.link.rate, o.link.latency);
        }
    std::vector<std::uint32_t> route;
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            if (a == b) continue;
            route.clear();
            std::size_t at = a;
            for (std::size_t k = 0; k < dims; ++k) {
                std::size_t const extent = o.extents[k], ahead = (coordinate(b, k) + extent - coordinate(a, k)) % extent;
                bool const up = ahead <= extent - ahead;
                for (std::size_t hop = up ? ahead : extent - ahead; hop > 0; --hop) {
                    route.push_back(link[(at * dims + k) * 2 + up]);
                    at = moved(at, k, up);
                }
            }
            builder.set_route(device[a], device[b], route);
        }
    return builder.build();
}

/// A k-ary fat tree (M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, k^2/4 core
/// switches, k/2 devices per edge switch. Device h of edge switch e of a pod is reached through aggregation switch h of its pod and
/// core switch (h, e), so that the messages to a pod's devices spread over all cores, the same in every run (the suffix tables
/// of the paper's section 3.3 do alike). Throws `invalid_input` on a `k` that is odd, below 2 or too large, a bad device or link.
[[nodiscard]] inline cluster fat_tree(fat_tree_options const& o) {
    if (o.k < 2 || o.k % 2 != 0 || o.k > 32)
        throw invalid_input("fat tree of k = ", o.k, ": must be even, from 2 to 32 (", cluster_builder::max_devices, " devices)");
    std::uint32_t const half = o.k / 2, pods = o.k;
    cluster_builder builder;
    auto const device = detail::add_devices(builder, std::uint64_t{half} * half * pods, o.device);
    auto const add = [&](vertex a, vertex b) { return builder.add_duplex_link(a, b, o.link.rate, o.link.latency); };
    std::vector<vertex> cores;
    for (std::uint32_t c = 0; c < half * half; ++c) cores.push_back(builder.add_switch(text("core ", c)));
    std::vector<duplex> leaf(device.size()), middle(std::size_t{pods} * half * half), top(middle.size());
    for (std::uint32_t p = 0; p < pods; ++p) {
        std::vector<vertex> edges, aggregations;
        for (std::uint32_t i = 0; i < half; ++i) edges.push_back(builder.add_switch(text("edge ", p * half + i)));
        for (std::uint32_t i = 0; i < half; ++i) aggregations.push_back(builder.add_switch(text("aggregation ", p * half + i)));
        for (std::uint32_t e = 0; e < half; ++e)
            for (std::uint32_t h = 0; h < half; ++h) {
                auto const i = (p * half + e) * half + h;
                leaf[i] = add(device[i], edges[e]);
                middle[i] = add(edges[e], aggregations[h]);
            }
        for (std::uint32_t h = 0; h < half; ++h)
            for (std::uint32_t e = 0; e < half; ++e) top[(p * half + h) * half + e] = add(aggregations[h], cores[h * half + e]);
    }
    for (std::uint32_t a = 0; a < device.size(); ++a)
        for (std::uint32_t b = 0; b < device.size(); ++b) {
            if (a == b) continue;
            auto const edge_a = a / half, edge_b = b / half, pod_a = edge_a / half, pod_b = edge_b / half, h = b % half, e = edge_b % half;
            std::vector<std::uint32_t> route{leaf[a].forward};
            if (edge_a != edge_b) route.push_back(middle[edge_a * half + h].forward);
            if (pod_a != pod_b) {
                route.push_back(top[(pod_a * half + h) * half + e].forward);
                route.push_back(top[(pod_b * half + h) * half + e].backward);
            }
            if (edge_a != edge_b) route.push_back(middle[edge_b * half + h].backward);
            route.push_back(leaf[b].backward);
            builder.set_route(device[a], device[b], route);
        }
    return builder.build();
}

} // namespace parsearch::topology
