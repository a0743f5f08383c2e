#pragma once
/// Where each vertex sends what is for another: shortest routes over the links of a fabric or network.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/paths/coin_change.hpp>

namespace parsearch::fabric {

/// The steps, from 1 to n / 2 and ascending, of the circulant graph that `links` make of `n` vertices; none where they make none: for each
/// step, as many links must join every vertex with the one that far on. Complexity: O(n + links log links).
template <LinkRange Links> [[nodiscard]] std::optional<std::vector<std::uint32_t>> circulant_steps(std::uint32_t n, Links const& links) {
    struct hop {
        std::uint32_t step, from;
        auto operator<=>(hop const&) const = default;
    };
    std::vector<hop> hops;
    for (auto const& l : links) {
        auto const ahead = l.b >= l.a ? l.b - l.a : l.b + n - l.a;
        auto const forward = ahead <= n - ahead;
        hops.push_back({forward ? ahead : n - ahead, forward ? l.a : l.b});
        if (ahead == n - ahead) hops.push_back({ahead, l.b}); // half way round, a link leads from either end
    }
    std::sort(hops.begin(), hops.end());
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0, next = 0; i < hops.size(); i = next) {
        while (next < hops.size() && hops[next].step == hops[i].step) ++next;
        auto const count = next - i, each = count / n;
        if (count % n != 0) return std::nullopt;
        for (std::size_t k = 0; k < count; ++k)
            if (hops[i + k].from != k / each) return std::nullopt;
        out.push_back(hops[i].step);
    }
    return out;
}

/// The next hop of every pair of vertices (servers and, where there are some, switches), on shortest routes. Memory: 4 bytes per ordered pair.
class forwarding_table {
  public:
    /// On a circulant graph of all vertices routes are those of `coin_change`; else breadth-first search from every destination, and of several
    /// neighbours that are equally near, in ascending order, vertex v forwards to the (v + destination mod their number)-th. Throws
    /// `invalid_input` where the links do not connect all vertices or one has no two ends below n. Complexity: O(n * (n + links)).
    template <LinkRange Links> forwarding_table(std::uint32_t n, Links const& links) : n_(n), next_(std::size_t{n} * n) {
        for (auto const& l : links)
            if (l.a >= n || l.b >= n || l.a == l.b)
                throw invalid_input("routes between ", n, " vertices: a link joins ", l.a, " and ", l.b, ": must join two different ones of them");
        steps_ = circulant_steps(n, links);
        if (steps_ && n > 1 && std::ranges::count(circulant_distances(n, *steps_), unreached) == 0) {
            coin_change const coins(n, *steps_);
            for (std::uint32_t at = 0; at < n; ++at)
                for (std::uint32_t to = 0; to < n; ++to) next_[std::size_t{at} * n + to] = at == to ? at : coins.next(at, to);
            return;
        }
        auto near = neighbours_of(n, links);
        for (auto& list : near) {
            std::sort(list.begin(), list.end());
            list.erase(std::unique(list.begin(), list.end()), list.end());
        }
        std::vector<std::uint32_t> equal;
        for (std::uint32_t to = 0; to < n; ++to) {
            auto const distance = hops_from(to, near);
            if (auto const apart = std::ranges::count(distance, unreached); apart > 0)
                throw invalid_input("routes to vertex ", to, ": ", apart, " vertices are not connected with it");
            for (std::uint32_t at = 0; at < n; ++at) {
                equal.assign(at == to ? 1 : 0, at);
                for (auto const v : near[at])
                    if (distance[v] + 1 == distance[at]) equal.push_back(v);
                next_[std::size_t{at} * n + to] = equal[(at + to) % equal.size()];
            }
        }
    }

    [[nodiscard]] std::uint32_t vertices() const noexcept { return n_; }
    /// The steps of the circulant graph that the links make; none where they make none.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> const& steps() const noexcept { return steps_; }
    /// The vertex after `at` on the way to `to`; `to` itself where they are the same. O(1).
    [[nodiscard]] std::uint32_t next(std::uint32_t at, std::uint32_t to) const noexcept { return next_[std::size_t{at} * n_ + to]; }
    /// The vertices from `from` to `to`, both included.
    [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const {
        std::vector<std::uint32_t> out{from};
        while (out.back() != to) out.push_back(next(out.back(), to));
        return out;
    }

  private:
    std::uint32_t n_;
    std::vector<std::uint32_t> next_; ///< row: where a message is; column: where it goes
    std::optional<std::vector<std::uint32_t>> steps_;
};

} // namespace parsearch::fabric
