#pragma once
/// Several wirings for one demand, for a co-optimization to choose from.

#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/wiring/demand.hpp>

namespace parsearch::fabric {

/// A finder that wires servers of `degree` interfaces for a demand in several ways: as `topology_finder` has it, by all steps instead of the
/// geometric sequence, with all interfaces for rings, by bytes alone, as TopoOpt's code does, at random (`random_links`, with the rings that
/// `disjoint_rings` finds): ways between any two servers are shortest there, and with `bonded_links`. Each wiring comes once. Throws as
/// `topology_finder`.
struct wirings {
    std::uint32_t degree = 0;
    link_description link{}; ///< one direction of every link
    std::uint64_t seed = 0;  ///< of the random network

    [[nodiscard]] std::vector<network> operator()(demand const& d) const;
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/wirings.ipp>
#endif
