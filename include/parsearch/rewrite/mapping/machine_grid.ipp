#pragma once
// The devices of a topology as a rectangle of nodes and devices of each, so that it can be cut.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/mapping/machine_grid.hpp>
#include <parsearch/space/layout.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE machine_grid::machine_grid(topology::dense_topology const& t, std::size_t cells) : devices_(static_cast<std::int32_t>(t.size())) {
    if (cells < 1) throw invalid_input("machine grid: 0 cells: must be at least 1");
    if (t.size() == 0) throw invalid_input("machine grid: a topology without devices");
    auto const regular = topology::devices_per_node(t);
    per_node_ = regular == 0 ? devices_ : static_cast<std::int32_t>(regular);
    auto const nodes = devices_ / per_node_;
    machine_.nodes = space::largest_divisor(nodes, static_cast<std::int64_t>(cells));
    machine_.devices = space::largest_divisor(per_node_, static_cast<std::int64_t>(cells) / machine_.nodes);
    nodes_of_cell_ = nodes / machine_.nodes;
    devices_of_cell_ = per_node_ / machine_.devices;
}

PARSEARCH_INLINE std::vector<std::int32_t> machine_grid::devices_of(resource_box const& box) const {
    std::vector<std::int32_t> out;
    for (std::int32_t n = box.first_node * nodes_of_cell_; n < (box.first_node + box.nodes) * nodes_of_cell_; ++n)
        for (std::int32_t d = box.first_device * devices_of_cell_; d < (box.first_device + box.devices) * devices_of_cell_; ++d)
            out.push_back(n * per_node_ + d);
    return out;
}

PARSEARCH_INLINE resource_box machine_grid::footprint(space::configuration const& c) const noexcept {
    std::int32_t low_node = machine_.nodes, high_node = 0, low_device = machine_.devices, high_device = 0;
    for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) {
        auto const at = c.device(n);
        auto const node = at / per_node_ / nodes_of_cell_, device = at % per_node_ / devices_of_cell_;
        low_node = std::min(low_node, node);
        high_node = std::max(high_node, node);
        low_device = std::min(low_device, device);
        high_device = std::max(high_device, device);
    }
    return {.first_node = low_node, .nodes = high_node - low_node + 1, .first_device = low_device, .devices = high_device - low_device + 1};
}

} // namespace parsearch::rewrite
