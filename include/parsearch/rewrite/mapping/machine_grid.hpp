#pragma once
/// The devices of a topology as a rectangle of nodes and devices of each, so that it can be cut.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::rewrite {

/// Cells of a machine: groups of neighbouring nodes by groups of neighbouring devices of each, all of one size, between which alone it is cut.
/// Machines whose nodes differ in size, or whose devices are not numbered node by node, are taken as one node.
class machine_grid {
  public:
    /// At most `cells` cells: as fine as that allows, nodes before the devices of a node. Throws `invalid_input` where `cells` is 0 or there is no
    /// device.
    explicit machine_grid(topology::dense_topology const& t, std::size_t cells);

    /// All cells: columns are called devices, as everywhere in a `resource_box`.
    [[nodiscard]] resource_box const& machine() const noexcept { return machine_; }
    /// The number of devices of the topology, and of each node.
    [[nodiscard]] std::int32_t devices() const noexcept { return devices_; }
    [[nodiscard]] std::int32_t per_node() const noexcept { return per_node_; }

    /// The devices of the cells of `box`, ascending. Precondition: the machine contains it.
    [[nodiscard]] std::vector<std::int32_t> devices_of(resource_box const& box) const;

    /// The smallest box of cells that holds all shards of `c`. Precondition: its shards are on devices of the topology. Complexity: O(shards).
    [[nodiscard]] resource_box footprint(space::configuration const& c) const noexcept;

  private:
    std::int32_t devices_, per_node_ = 1, nodes_of_cell_ = 1, devices_of_cell_ = 1;
    resource_box machine_{};
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/machine_grid.ipp>
#endif
