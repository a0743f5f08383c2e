#pragma once
// A fabric that `topology_finder` wired, as a network.

#include <parsearch/fabric/wiring/found_network.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE network network_of(found_topology const& t, link_description const& link) {
    network out{"found", t.servers, 0, {}, {}};
    for (auto const& l : t.links) out.links.push_back({l.a, l.b, link});
    for (auto const& ring : t.rings) {
        if (!ring.wired()) continue;
        out.rings.push_back(ring.order);
        if (ring.order.size() > 2) out.rings.emplace_back(ring.order.rbegin(), ring.order.rend());
    }
    return out;
}

} // namespace parsearch::fabric
