#pragma once
/// The networks with which `co_optimize` should begin.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// Networks for `co_options::starts`, of servers that have `degree` interfaces like `interface` each:
/// - an ideal switch of as much bandwidth, not final: strategies found there are made for no wiring
/// - a random regular network with rings (`random_links` of `seed`)
/// - where the price list has its rate, a fat tree that costs as much (`fat_tree_rate_of_similar_price`): no wiring helps where all send to all, or
///   where interfaces are cheap
///
/// The ideal switch alone of two servers, or where servers have one interface. Throws `invalid_input` on a link that breaks the rules, or no
/// servers.
[[nodiscard]] std::vector<start_fabric> usual_starts(std::uint32_t servers, std::uint32_t degree, link_description const& interface,
                                                     std::uint64_t seed = 0);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/cooptimize/usual_starts.ipp>
#endif
