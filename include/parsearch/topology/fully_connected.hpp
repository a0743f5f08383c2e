#pragma once
/// A cluster of single devices, each linked with every other.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::topology {

/// Options of `fully_connected`. `link` is one direction of every link.
struct fully_connected_options {
    std::uint32_t devices = 0;
    device_spec device{};
    link_description link{};
};

/// A direct link from every device to every other. Throws `invalid_input` on a bad count, device or link.
[[nodiscard]] cluster fully_connected(fully_connected_options const& o);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/fully_connected.ipp>
#endif
