#pragma once
/// A fabric that `topology_finder` wired, as a network.

#include <vector>

#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>

namespace parsearch::fabric {

/// The network of a found fabric: its links with their numbers, each direction like `link`; both directions of every ring all of whose hops have
/// links (one of a ring of two servers, whose directions are the same). Groups without such a ring have none.
[[nodiscard]] inline network network_of(found_topology const& t, link_description const& link) {
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
