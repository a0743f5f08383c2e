#pragma once
/// Splits a network into components, and a component at single variables into segments one after another.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::search::additive {

/// Two variables that a table joins, the smaller first.
using link = std::pair<std::uint32_t, std::uint32_t>;

/// The sets of variables that links join, by smallest member.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> components(std::size_t variables, std::span<link const> links);

/// The links of `links` that are left after variables with fewer than two neighbours were removed, again and again.
[[nodiscard]] std::vector<link> without_trees(std::size_t variables, std::span<link const> links);

/// One segment: its variables, among them the cut that it begins with but not `exit`, with which the next one begins.
struct segment {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::vector<std::uint32_t> variables;
    std::uint32_t exit = none; ///< of the last segment: none
};

/// The segments between `cuts`, of which each separates what is before it from what is behind. Cuts that do not are left out.
/// Complexity: O((V + E) log V).
[[nodiscard]] std::vector<segment> split_at(std::span<std::uint32_t const> variables, std::span<link const> links,
                                            std::vector<std::uint32_t> const& cuts, std::size_t total);

} // namespace parsearch::search::additive

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/additive/network_segments.ipp>
#endif
