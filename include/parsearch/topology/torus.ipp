#pragma once
// A torus of single devices.

#include <parsearch/core/error.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/torus.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE cluster torus(torus_options const& o) {
    if (o.extents.empty()) throw invalid_input("torus of 0 dimensions: must have at least one");
    std::uint64_t count = 1;
    for (auto const extent : o.extents) {
        if (extent < 1 || extent > cluster_builder::max_group)
            throw invalid_input("torus: extent ", extent, ": must be from 1 to ", cluster_builder::max_group);
        if ((count *= extent) > cluster_builder::max_group)
            throw invalid_input("torus: more than ", cluster_builder::max_group, " devices: a cluster holds no more");
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

} // namespace parsearch::topology
