#pragma once
/// A fabric that `topology_finder` wired, as a network.

#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/wiring/topology_finder.hpp>

namespace parsearch::fabric {

/// The network of a found fabric: its links with their numbers, each direction like `link`; both directions of every ring all of whose hops have
/// links (one of a ring of two servers, whose directions are the same). Groups without such a ring have none.
[[nodiscard]] network network_of(found_topology const& t, link_description const& link);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/found_network.ipp>
#endif
