#pragma once
/// A cluster of single devices, each linked with every other.

#include <cstdint>

#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::topology {

/// Options of `fully_connected`. `link` is one direction of every link.
struct fully_connected_options {
    std::uint32_t devices = 0;
    device_spec device{};
    link_description link{};
};

/// A direct link from every device to every other. Throws `invalid_input` on a bad count, device or link.
[[nodiscard]] inline cluster fully_connected(fully_connected_options const& o) {
    cluster_builder builder;
    auto const device = detail::add_devices(builder, o.devices, o.device);
    for (auto const a : device)
        for (auto const b : device)
            if (a != b) builder.add_link(a, b, o.link.rate, o.link.latency);
    return builder.build();
}

} // namespace parsearch::topology
