#pragma once
/// Some devices of a topology that are near each other.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::topology {

/// `count` of the `free` devices, ascending, which are free no more: of the nodes with the most free devices, the first ones, or the first run of
/// neighbours on nodes that have no more free devices together. At least so many must be free. Complexity: O(devices * count).
[[nodiscard]] std::vector<std::size_t> take_neighbours(dense_topology const& t, std::vector<bool>& free, std::size_t count);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/neighbours.ipp>
#endif
