#pragma once
/// Routes on circulant graphs: fewest jumps whose sum is the distance.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/paths/ring_selection.hpp>

namespace parsearch::fabric {

/// Shortest routes on the circulant graph whose vertices are joined to those `step` further on and back, for each step: the coin change
/// problem modulo n, coins paid or given back. Made once in O(n * steps^2); routes are then read off hop by hop.
/// Source: W. Wang et al., TopoOpt, NSDI 2023, CoinChangeMod.
class coin_change {
  public:
    /// Throws `invalid_input` where n is 0, a step is 0 or not below n, or the steps leave vertices unreached.
    coin_change(std::uint32_t n, std::span<std::uint32_t const> steps);

    [[nodiscard]] std::uint32_t size() const noexcept { return n_; }
    /// The jumps, each direction of a step by itself: in the order of the steps, forward first.
    [[nodiscard]] std::span<std::uint32_t const> coins() const noexcept { return coins_; }
    /// The fewest jumps from `from` to `to`. O(1). Precondition here and below: both are below n.
    [[nodiscard]] std::uint32_t hops(std::uint32_t from, std::uint32_t to) const noexcept { return distance_[difference(to, from)]; }

    /// The vertex after `at` on the way to `to`, another one. Where several jumps are equally short, the one that `choose` has taken for this
    /// distance: the same at every vertex, so that traffic between all pairs loads all links of a jump equally. O(1).
    [[nodiscard]] std::uint32_t next(std::uint32_t at, std::uint32_t to) const noexcept { return sum(at, coins_[choice_[difference(to, at)]]); }
    /// The vertices from `from` to `to`, both included, by `next`.
    [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const {
        std::vector<std::uint32_t> out{from};
        while (out.back() != to) out.push_back(next(out.back(), to));
        return out;
    }
    /// All shortest routes, in the order of their coins, the first `most` of them.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> all_routes(std::uint32_t from, std::uint32_t to,
                                                                     std::size_t most = std::numeric_limits<std::size_t>::max()) const;

  private:
    void add_coin(std::uint32_t coin) {
        for (auto const known : coins_)
            if (known == coin) return;
        coins_.push_back(coin);
    }
    [[nodiscard]] std::uint32_t difference(std::uint32_t a, std::uint32_t b) const noexcept { return a >= b ? a - b : a + (n_ - b); }
    [[nodiscard]] std::uint32_t sum(std::uint32_t a, std::uint32_t b) const noexcept { return a >= n_ - b ? a - (n_ - b) : a + b; }
    [[nodiscard]] bool shortens(std::uint32_t rest, std::uint32_t coin) const noexcept {
        return distance_[difference(rest, coin)] + 1 == distance_[rest];
    }
    /// Chooses the first jump for each distance, nearest first: of those that are equally short, the one with which the jumps of all routes so
    /// far are spread most evenly (the least sum of squares), the first of these.
    void choose();
    void extend(std::vector<std::uint32_t>& path, std::uint32_t to, std::size_t most, std::vector<std::vector<std::uint32_t>>& out) const;

    std::uint32_t n_;
    std::vector<std::uint32_t> coins_;
    std::vector<std::uint32_t> distance_; ///< fewest jumps that sum up to each vertex
    std::vector<std::uint32_t> choice_;   ///< the first of them, among the coins
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/paths/coin_change.ipp>
#endif
