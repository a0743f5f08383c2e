#pragma once
/// Wirings in which several interfaces of two servers are one link.

#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/wiring/demand.hpp>

namespace parsearch::fabric {

/// Servers of `degree` interfaces like `link`, wired for few pairs that send much, as in a part of an iteration. Interfaces go to pairs one by one,
/// in proportion to their bytes (D'Hondt), the larger direction counting; a group all-reduces along the ring of its members in ascending order, both
/// ways. All interfaces of a pair are one link of their rates' sum, over which a message is spread, as a bundle of wires does. What is not connected
/// is joined in a circle, by interfaces that are free or taken from links that have several or lie on a circle; those left over join what is far
/// apart. Rings are those of groups whose neighbours all have links. Throws `invalid_input` where there are several servers and no interface, or more
/// than two servers and fewer than two. Complexity: O(servers^3 degree), and the members of groups.
[[nodiscard]] network bonded_links(demand const& d, std::uint32_t degree, link_description const& link);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/bonded_links.ipp>
#endif
