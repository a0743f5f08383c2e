#pragma once
/// Chooses the rings of a group so that together they give short paths.

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/rings.hpp>

namespace parsearch::fabric {

/// How long the paths of a circulant graph are.
struct path_lengths {
    std::uint32_t diameter = 0;   ///< hops of the longest shortest path
    std::uint64_t total_hops = 0; ///< from one vertex to all others
    std::uint32_t vertices = 1;
    [[nodiscard]] double mean_hops() const noexcept { return vertices < 2 ? 0 : static_cast<double>(total_hops) / static_cast<double>(vertices - 1); }
    friend bool operator==(path_lengths const&, path_lengths const&) = default;
};

/// Fewest jumps from 0 to each vertex of the circulant graph of `n` vertices and these steps, each in both directions (taken mod n);
/// `unreached` where there is no way. Complexity: O(n * steps).
[[nodiscard]] std::vector<std::uint32_t> circulant_distances(std::uint32_t n, std::span<std::uint32_t const> steps);

/// Diameter and mean hops of that graph. Throws `invalid_input` where it is not connected.
[[nodiscard]] path_lengths circulant_paths(std::uint32_t n, std::span<std::uint32_t const> steps);

namespace detail {
/// Whether p^m < n^i, exactly.
[[nodiscard]] bool power_below(std::uint32_t p, std::uint32_t m, std::uint32_t n, std::uint32_t i);
} // namespace detail

/// `count` ring steps for a group of size `g`, close to the geometric sequence 1, x, x^2, ... of ratio x = g^(1/count): step i is the
/// smallest that is not below x^i and gives a ring not chosen yet, or where there is none the largest below. No two are `same_ring`;
/// with fewer different rings than `count`, all of them. In order of choice. The comparison with x^i is exact (p^count with g^i).
/// Source: W. Wang et al., TopoOpt, NSDI 2023, SelectPermutations; that the sequence is rounded up was found from the jumps that its
/// code chooses (docs/fabric.md).
[[nodiscard]] std::vector<std::uint32_t> select_steps(std::uint32_t g, std::uint32_t count, step_set which = step_set::coprime);

/// What makes steps better.
enum class path_objective : std::uint8_t {
    diameter, ///< the smallest diameter, then the fewest mean hops
    mean_hops ///< the fewest mean hops, then the smallest diameter
};

/// The best `count` ring steps for a group of size `g`, by trying all sets; among equals the lexicographically first. One step is 1: dividing
/// all by one of them changes no path length. Throws `invalid_input` where there are more than `max_sets` sets to try.
/// Complexity: O(g * count) for each of the C(phi(g)/2 - 1, count - 1) sets.
[[nodiscard]] std::vector<std::uint32_t> best_steps(std::uint32_t g, std::uint32_t count, path_objective objective = path_objective::diameter,
                                                    std::uint64_t max_sets = 1'000'000);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/paths/ring_selection.ipp>
#endif
