#pragma once
/// A torus of single devices.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::topology {

/// Options of `torus`: devices per dimension, e.g. {4, 4} or {8, 8, 8}. `link` is one direction of a link between neighbours.
struct torus_options {
    std::vector<std::uint32_t> extents{};
    device_spec device{};
    link_description link{};
};

/// A torus: each device is linked both ways to its neighbours in every dimension (one neighbour in a dimension of two, none in one
/// of one). Device numbers are row major, the last dimension varies fastest. Routes go through the dimensions in order, the shorter way
/// around each, upwards where both are equal (dimension-ordered routing: W. Dally, C. Seitz, IEEE Trans. Computers C-36, 1987).
/// Throws `invalid_input` on no dimension, an extent of 0, more devices than a cluster holds, a bad device or link.
[[nodiscard]] cluster torus(torus_options const& o);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/torus.ipp>
#endif
