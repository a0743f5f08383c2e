#pragma once
/// The k shortest loopless paths between two vertices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/hops.hpp>

namespace parsearch::fabric {

/// Finds k shortest loopless paths in an undirected graph; keeps its buffers from one search to the next.
class k_shortest_paths {
  public:
    /// `near`: the neighbours of each vertex, each once; the graph is undirected.
    explicit k_shortest_paths(std::vector<std::vector<std::uint32_t>> near)
        : near_(std::move(near)), distance_(near_.size()), blocked_(near_.size(), false), first_(near_.size(), false) {}

    /// The first `k` paths of vertices from `from` to `to` (fewer where there are no more), by number of hops, of equal ones in lexicographical
    /// order of `rank(v)` along the path, which must tell vertices apart. Paths visit no vertex twice. Precondition: both are vertices.
    /// Source: J. Y. Yen, Finding the k shortest loopless paths in a network, Management Science 17, 1971; every search starts where its path
    /// left the one before (E. L. Lawler, Management Science 18, 1972). Complexity: O(k * hops * (vertices + links)).
    template <class Rank>
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> operator()(std::uint32_t from, std::uint32_t to, std::size_t k, Rank const& rank) {
        struct candidate {
            std::vector<std::uint32_t> path;
            std::size_t spur; ///< where it leaves the path that it was made of
        };
        auto const before = [&](candidate const& x, candidate const& y) {
            if (x.path.size() != y.path.size()) return x.path.size() < y.path.size();
            return std::lexicographical_compare(x.path.begin(), x.path.end(), y.path.begin(), y.path.end(),
                                                [&](auto a, auto b) { return rank(a) < rank(b); });
        };
        std::set<candidate, decltype(before)> open(before);
        std::vector<std::vector<std::uint32_t>> out;
        candidate next{{from}, 0};
        if (k > 0 && complete(next.path, {}, to, rank)) open.insert(std::move(next));
        std::vector<std::uint32_t> taken;
        while (!open.empty() && out.size() < k) {
            auto const best = std::move(open.extract(open.begin()).value());
            out.push_back(best.path);
            if (out.size() == k) break;
            for (auto i = best.spur; i + 1 < best.path.size(); ++i) {
                // Paths that start with the same vertices up to i go on from there otherwise.
                auto const prefix = best.path.begin() + static_cast<std::ptrdiff_t>(i) + 1;
                taken.clear();
                for (auto const& known : out)
                    if (known.size() > i + 1 && std::equal(best.path.begin(), prefix, known.begin())) taken.push_back(known[i + 1]);
                candidate other{{best.path.begin(), prefix}, i};
                if (complete(other.path, taken, to, rank)) open.insert(std::move(other));
            }
        }
        return out;
    }

  private:
    /// Appends the first of the shortest ways on to `to`, not by way of a vertex of the path nor `taken` ones next; says whether there is one.
    template <class Rank>
    bool complete(std::vector<std::uint32_t>& path, std::vector<std::uint32_t> const& taken, std::uint32_t to, Rank const& rank) {
        auto const spur = path.back();
        if (spur == to) return true;
        for (auto const v : path) blocked_[v] = true;
        for (auto const v : near_[spur]) first_[v] = !blocked_[v];
        for (auto const v : taken) first_[v] = false;
        bool const found = search(to);
        if (found) {
            std::uint32_t at = spur;
            for (auto left = reached_; at != to; --left) {
                auto best = spur;
                for (auto const v : near_[at])
                    if (distance_[v] == left && (at != spur || first_[v]) && (best == spur || rank(v) < rank(best))) best = v;
                path.push_back(at = best);
            }
        }
        for (auto const v : near_[spur]) first_[v] = false;
        for (auto const v : path) blocked_[v] = false;
        return found;
    }
    /// Breadth-first search back from `to`, up to the level of the first vertex that may follow the spur.
    bool search(std::uint32_t to);

    std::vector<std::vector<std::uint32_t>> near_;
    std::vector<std::uint32_t> distance_, queue_; ///< hops to the destination
    std::vector<bool> blocked_, first_;           ///< vertices of the path; those that may follow its last
    std::uint32_t reached_ = 0;                   ///< distance of the nearest of these
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/paths/k_shortest.ipp>
#endif
