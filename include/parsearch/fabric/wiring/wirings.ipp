#pragma once
// Several wirings for one demand, for a co-optimization to choose from.

#include <algorithm>

#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/wiring/bonded_links.hpp>
#include <parsearch/fabric/wiring/found_network.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<network> wirings::operator()(demand const& d) const {
    std::vector<network> out;
    auto const add_network = [&](network n) {
        auto const same = [&](network const& other) { return n.rings == other.rings && same_wiring(n, other); };
        if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(n));
    };
    auto const add = [&](finder_options const& o) { add_network(network_of(topology_finder(d, d.servers(), degree, o), link)); };
    add({});
    if (d.all_reduce_bytes() > 0) {
        add({.all_reduce_degree = degree});
        if (d.servers() <= 256 && degree <= 4) add({.steps = step_choice::exhaustive});
    }
    if (d.point_to_point_bytes() > 0) add({.pairs = pair_weight::bytes});
    if (degree > 2 && d.servers() > 2) add_network(with_rings(random_links(d.servers(), degree, seed, link), {.seed = seed}));
    add_network(bonded_links(d, degree, link));
    return out;
}

} // namespace parsearch::fabric
