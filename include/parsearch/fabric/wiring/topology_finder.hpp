#pragma once
/// Wires a fabric for its traffic: rings for all-reduces, links for point-to-point traffic, routes for the rest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/fabric/paths/forwarding.hpp>
#include <parsearch/fabric/paths/ring_selection.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/fabric/wiring/link_graph.hpp>
#include <parsearch/fabric/wiring/matching.hpp>

namespace parsearch::fabric {

/// No link: a hop of a ring that the routes carry.
inline constexpr std::uint32_t no_link = std::numeric_limits<std::uint32_t>::max();

/// How the steps of a group's rings are chosen.
enum class step_choice : std::uint8_t {
    geometric, ///< `select_steps`
    exhaustive ///< `best_steps`, by diameter
};

/// What the matchings of servers maximise.
enum class pair_weight : std::uint8_t {
    byte_hops, ///< bytes times the hops that they take without the link: what it saves the other links, and 1 for servers already joined
    bytes      ///< bytes alone, as TopoOpt has it: among many equal pairs it does not see which are far apart
};

/// Options of `topology_finder`.
struct finder_options {
    /// Interfaces of each server for all-reduces; not set: in proportion to the bytes.
    std::optional<std::uint32_t> all_reduce_degree{};
    step_choice steps = step_choice::geometric;
    /// Which steps `geometric` chooses from.
    step_set candidates = step_set::coprime;
    pair_weight pairs = pair_weight::byte_hops;
    /// Matchings of more servers than this are greedy (at least half of the maximum weight), not exact.
    std::uint32_t exact_matching_up_to = 128;
};

/// A ring through a group: hop i leads from order[i] to the next, the last to the first.
struct group_ring {
    std::uint32_t group = 0; ///< its number in `demand::groups`
    std::uint32_t step = 0;
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> links; ///< of each hop, or `no_link`; one for both hops of a group of two
    /// Whether every hop has a link of its own.
    [[nodiscard]] bool wired() const { return std::find(links.begin(), links.end(), no_link) == links.end(); }
    friend bool operator==(group_ring const&, group_ring const&) = default;
};

/// A wired fabric.
struct found_topology {
    std::uint32_t servers = 0, degree = 0;
    std::uint32_t all_reduce_degree = 0; ///< the interfaces of each server that were set aside for rings
    std::vector<fabric_link> links;
    std::vector<group_ring> rings; ///< by group; at least one for each
    forwarding_table routes;
};

namespace detail {

/// Steps of `count` rings; more than there are different ones are wired again from the first.
[[nodiscard]] inline std::vector<std::uint32_t> steps_of(std::uint32_t g, std::uint32_t count, finder_options const& o) {
    auto out = o.steps == step_choice::geometric ? select_steps(g, count, o.candidates) : best_steps(g, count);
    for (std::size_t i = 0; out.size() < count; ++i) out.push_back(out[i]);
    return out;
}

/// Adds the links of a ring to the graph.
void wire(link_graph& graph, group_ring& ring);

/// Hops between all pairs, row by row; `unreached` where there is no way. Complexity: O(n * (n + links)).
[[nodiscard]] std::vector<std::uint32_t> all_hops(std::vector<std::vector<std::uint32_t>> const& near);

} // namespace detail

/// Wires `servers` servers of `degree` interfaces each for `d`, in four steps: (1) the interfaces are split between all-reduces and
/// point-to-point traffic in proportion to the bytes on the wire; (2) the groups get rings in proportion to what their members send, of steps
/// chosen to give short paths; (3) the other interfaces get maximum-weight matchings of the point-to-point traffic; (4) parts are connected and
/// free interfaces joined far apart (`link_graph`). An odd interface of every server of an even number goes to the server half way round where
/// that keeps the fabric a circulant. The links connect all servers, none has more than `degree`. Where a part had to be connected
/// by a link of a ring, or a group found no interfaces, a ring is not `wired`: its missing hops take the routes. Deterministic.
/// Throws `invalid_input` where `servers` is not that of the demand, the degree is not from 1 to 64, or is 1 with more than two servers, which no
/// links could connect; or the options break a rule. Source: W. Wang et al., TopoOpt, NSDI 2023, TopologyFinder.
/// Complexity: O(degree * servers^3) with exact matchings of random weights, else O(servers^2 * (degree + log servers)).
[[nodiscard]] found_topology topology_finder(demand const& d, std::uint32_t servers, std::uint32_t degree, finder_options const& o = {});

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/topology_finder.ipp>
#endif
