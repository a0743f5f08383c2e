#pragma once
/// Several wirings for one demand, for a co-optimization to choose from.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <parsearch/fabric/demand.hpp>
#include <parsearch/fabric/found_network.hpp>
#include <parsearch/fabric/network.hpp>
#include <parsearch/fabric/reconfigurable.hpp>
#include <parsearch/fabric/topology_finder.hpp>

namespace parsearch::fabric {

/// A finder that wires servers of `degree` interfaces for a demand in several ways: as `topology_finder` has it, by all steps instead of the geometric sequence, with
/// all interfaces for rings, and by bytes alone, as TopoOpt's code does. Each wiring comes once. Throws as `topology_finder`.
struct wirings {
    std::uint32_t degree = 0;
    link_description link{}; ///< one direction of every link

    [[nodiscard]] std::vector<network> operator()(demand const& d) const {
        std::vector<network> out;
        auto const add = [&](finder_options const& o) {
            auto n = network_of(topology_finder(d, d.servers(), degree, o), link);
            auto const same = [&](network const& other) { return n.rings == other.rings && same_wiring(n, other); };
            if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(n));
        };
        add({});
        if (d.all_reduce_bytes() > 0) {
            add({.all_reduce_degree = degree});
            if (d.servers() <= 256 && degree <= 4) add({.steps = step_choice::exhaustive});
        }
        if (d.point_to_point_bytes() > 0) add({.pairs = pair_weight::bytes});
        return out;
    }
};

} // namespace parsearch::fabric
