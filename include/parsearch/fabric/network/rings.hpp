#pragma once
/// Rings through a group of servers, and what an all-reduce over them puts on each link.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::fabric {

/// Which steps make rings.
enum class step_set : std::uint8_t {
    coprime, ///< all that visit every member: phi(g) of them
    prime    ///< of these 1 and the primes: about g / ln g, for large groups
};

/// Whether steps `p` and `q` of a group of size `g` give the same ring but for its direction.
[[nodiscard]] constexpr bool same_ring(std::uint32_t p, std::uint32_t q, std::uint32_t g) noexcept { return p == q || p + q == g; }

/// The steps p, from 1 to g - 1, for which i -> i + p (mod g) visits each of `g` members once, ascending: gcd(p, g) = 1. Empty for
/// g below 2. Step g - p is step p backwards (`same_ring`); wired in both directions they are one ring.
/// Source: W. Wang et al., TopoOpt, NSDI 2023, TotientPerms. Complexity: O(g log g), with `prime` O(g sqrt g).
[[nodiscard]] std::vector<std::uint32_t> ring_steps(std::uint32_t g, step_set which = step_set::coprime);

/// The order in which the ring of `step` visits `members`, from the first of them. Throws `invalid_input` where it misses some.
[[nodiscard]] std::vector<std::uint32_t> ring_order(std::span<std::uint32_t const> members, std::uint32_t step);

/// Interfaces that a ring takes at each of its `g` members: two, or one where the two neighbours are the same.
[[nodiscard]] constexpr std::uint32_t ring_interfaces(std::size_t g) noexcept { return g < 2 ? 0 : g == 2 ? 1 : 2; }

/// `bytes` in `parts` whole numbers that differ by at most one, the larger ones first. Precondition: parts > 0, bytes >= 0.
[[nodiscard]] std::vector<byte_count> split_evenly(byte_count bytes, std::size_t parts);

/// What each of `g` members sends to the next in an all-reduce of `bytes` over one directed ring: [i] from position i to i + 1 (mod g).
/// The tensor is cut in g chunks (`split_evenly`). Position i passes on every chunk but i + 1 in the reduce-scatter and every chunk but
/// i + 2 in the all-gather: 2(g-1)/g * bytes up to rounding, 2(g-1) * bytes in all, exactly.
/// Source: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009.
[[nodiscard]] std::vector<byte_count> ring_traffic(byte_count bytes, std::size_t g);

/// What each position of a directed ring sends to the next in a collective that goes round once, all-reduces with `ring_traffic` twice: `part[i]`
/// bytes of the tensor are made, or stay, at position i. Position `root` sends a broadcast and receives a reduction. Precondition: of the kinds named
/// here.
[[nodiscard]] std::vector<byte_count> ring_sends(collective_kind kind, std::span<byte_count const> part, std::size_t root);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/rings.ipp>
#endif
