#pragma once
// The networks with which `co_optimize` should begin.

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/cooptimize/usual_starts.hpp>
#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/network_price.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<start_fabric> usual_starts(std::uint32_t servers, std::uint32_t degree, link_description const& interface,
                                                        std::uint64_t seed) {
    if (degree < 1) throw invalid_input("usual starts: degree is 0: a server must have an interface at least");
    std::vector<start_fabric> out{{ideal_switch(servers, {{degree * interface.rate.bytes_per_second}, interface.latency}), false}};
    if (degree < 2 || servers < 3) return out;
    auto const direct = random_links(servers, degree, seed, interface);
    out.push_back({with_rings(direct, {.seed = seed})});
    link_description up{{}, interface.latency};
    try {
        up.rate = fat_tree_rate_of_similar_price(direct);
    } catch (invalid_input const&) { // the list has no price at the rate of an interface, or none as high or low
        return out;
    }
    out.push_back({fat_tree(servers, up)});
    return out;
}

} // namespace parsearch::fabric
