#pragma once
// A cluster of single devices, each linked with every other.

#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/fully_connected.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE cluster fully_connected(fully_connected_options const& o) {
    cluster_builder builder;
    auto const device = detail::add_devices(builder, o.devices, o.device);
    for (auto const a : device)
        for (auto const b : device)
            if (a != b) builder.add_link(a, b, o.link.rate, o.link.latency);
    return builder.build();
}

} // namespace parsearch::topology
