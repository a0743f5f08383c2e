#pragma once
/// Networks of switches and of servers alone: ideal switch, racks, fully connected, torus, circulant. Fat trees: fat_tree_network.hpp; random ones:
/// random_regular.hpp.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

// All functions throw `invalid_input` where their arguments break a rule that they name, or the network breaks one of `validate`. `link` is each
// direction of each link where nothing else is said.

/// One switch without limits of its own: each server has one link to it, two hops to every other.
[[nodiscard]] network ideal_switch(std::uint32_t servers, link_description const& link);

/// Options of `oversubscribed`.
struct rack_options {
    std::uint32_t servers_per_rack = 0;
    double ratio = 1; ///< bytes per second that a rack's servers can send, to what it can send out of the rack; at least 1
};

/// Racks of servers, each with one switch; every rack switch has a link to each of ceil(servers_per_rack / ratio) spine switches, of such a rate that
/// those of a full rack have the rate of its servers' links (`link`) / ratio together. The last rack may hold fewer servers. One rack has no spine.
/// Switches: racks, then spines.
[[nodiscard]] network oversubscribed(std::uint32_t servers, link_description const& link, rack_options const& o);

/// A link between every two servers.
[[nodiscard]] network fully_connected(std::uint32_t servers, link_description const& link);

/// A torus of servers, e.g. extents {4, 4} or {8, 8, 8}: each is linked with its neighbours in every dimension (one in a dimension of two, none in
/// one of one). Numbers are row major, the last dimension varies fastest. At least one dimension, extents from 1.
[[nodiscard]] network torus(std::span<std::uint32_t const> extents, link_description const& link);
[[nodiscard]] inline network torus(std::initializer_list<std::uint32_t> extents, link_description const& link) {
    return torus(std::span<std::uint32_t const>(extents.begin(), extents.size()), link);
}

/// Servers joined with those `step` further on (modulo their number) for each step, from 1 to servers - 1; steps that repeat, or sum up to the
/// number of servers, give parallel links. With the rings of TotientPerms: for every step without a common factor with the number of servers both
/// directions of its ring through all (one, where these are two servers).
[[nodiscard]] network circulant(std::uint32_t servers, std::span<std::uint32_t const> steps, link_description const& link);
[[nodiscard]] inline network circulant(std::uint32_t servers, std::initializer_list<std::uint32_t> steps, link_description const& link) {
    return circulant(servers, std::span<std::uint32_t const>(steps.begin(), steps.size()), link);
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/regular_networks.ipp>
#endif
