#pragma once
// A rectangle of a machine: neighbouring nodes, and of each the same neighbouring devices.

#include <limits>

#include <parsearch/rewrite/mapping/resource_box.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(resource_box const& b, std::string_view where) {
    if (b.nodes < 1) throw invalid_input(where, ": a box of ", b.nodes, " nodes: must be at least 1");
    if (b.devices < 1) throw invalid_input(where, ": a box of ", b.devices, " devices per node: must be at least 1");
    if (b.first_node < 0) throw invalid_input(where, ": a box from node ", b.first_node, ": must be at least 0");
    if (b.first_device < 0) throw invalid_input(where, ": a box from device ", b.first_device, ": must be at least 0");
    auto const last_node = std::int64_t{b.first_node} + b.nodes, last_device = std::int64_t{b.first_device} + b.devices;
    if (last_node > std::numeric_limits<std::int32_t>::max() / last_device)
        throw invalid_input(where, ": a box up to node ", last_node - 1, " and device ", last_device - 1, ": must be fewer than 2^31 devices");
}

} // namespace parsearch::rewrite
