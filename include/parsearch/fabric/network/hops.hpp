#pragma once
/// How many hops vertices are apart.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/ranges.hpp>

namespace parsearch::fabric {

/// A range of duplex links with ends `a` and `b`: those of a fabric that is being wired, or of a network.
template <class R>
concept LinkRange = SizedRandomAccessRange<R const> && requires(range_value_t<R const> const& l) {
    { l.a } -> std::convertible_to<std::uint32_t>;
    { l.b } -> std::convertible_to<std::uint32_t>;
};

/// The other ends of each vertex's links, in the order of the links. Precondition: both ends of a link are below `n`.
template <LinkRange Links> [[nodiscard]] std::vector<std::vector<std::uint32_t>> neighbours_of(std::uint32_t n, Links const& links) {
    std::vector<std::vector<std::uint32_t>> out(n);
    for (auto const& l : links) {
        out[l.a].push_back(l.b);
        out[l.b].push_back(l.a);
    }
    return out;
}

/// How many links each vertex has, those that have a member `wires` counted as so many. Precondition: both ends of a link are below `n`.
template <LinkRange Links> [[nodiscard]] std::vector<std::uint32_t> degrees_of(std::uint32_t n, Links const& links) {
    std::vector<std::uint32_t> out(n, 0);
    for (auto const& l : links)
        for (auto const v : {l.a, l.b}) {
            if constexpr (requires { l.wires; }) out[v] += l.wires;
            else ++out[v];
        }
    return out;
}

/// The distance of what no way leads to.
inline constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();

/// The fewest hops from vertex `from` to each of `n`, or `unreached`: breadth-first search. `each_neighbour(v, visit)` calls `visit(w)` for every
/// hop from v to w. Precondition: from < n. Complexity: O(n + hops).
template <class Neighbours>
[[nodiscard]] std::vector<std::uint32_t> hops_from(std::uint32_t from, std::uint32_t n, Neighbours const& each_neighbour) {
    std::vector<std::uint32_t> hops(n, unreached), queue;
    queue.reserve(n);
    queue.push_back(from);
    hops[from] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
        each_neighbour(queue[i], [&, next = hops[queue[i]] + 1](std::uint32_t w) {
            if (hops[w] != unreached) return;
            hops[w] = next;
            queue.push_back(w);
        });
    return hops;
}

/// The same, by lists of each vertex's neighbours.
[[nodiscard]] inline std::vector<std::uint32_t> hops_from(std::uint32_t from, std::vector<std::vector<std::uint32_t>> const& near) {
    return hops_from(from, static_cast<std::uint32_t>(near.size()), [&](std::uint32_t v, auto const& visit) {
        for (auto const w : near[v]) visit(w);
    });
}

} // namespace parsearch::fabric
