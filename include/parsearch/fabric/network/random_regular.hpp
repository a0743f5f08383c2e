#pragma once
/// Random regular networks of servers.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// A random network of `servers` servers with `degree` links each, no two of them between the same servers, that connects them all; where servers *
/// degree is odd one server, a random one, has one less. The same for the same seed on every platform.
/// Such graphs have short paths and much capacity across any cut (A. Singla et al., Jellyfish, NSDI 2012). Drawn by exchanging the ends
/// of two random links, again and again, starting from a circulant: 20 attempts per link, which in the limit makes all such graphs equally
/// likely (C. Cooper, M. Dyer, C. Greenhill, Combinatorics, Probability and Computing 16, 2007), then until it is connected.
/// Throws `invalid_input` where there is none: unless 0 < degree < servers, a degree of 1 has two servers, or one server has degree 0; and on a link
/// that breaks the rules. Complexity: O(servers * degree), for a degree of 2 times sqrt(servers).
[[nodiscard]] network random_regular(std::uint32_t servers, std::uint32_t degree, std::uint64_t seed, link_description const& link);

/// The same with any degree: where it is that of the servers or more, all pairs are joined, as often as interfaces reach, and those left as above, or
/// where one is left with the server half way round. Throws `invalid_input` as above but for that.
[[nodiscard]] network random_links(std::uint32_t servers, std::uint32_t degree, std::uint64_t seed, link_description const& link);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/random_regular.ipp>
#endif
