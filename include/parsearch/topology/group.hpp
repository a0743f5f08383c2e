#pragma once
/// The shape of a group of devices that runs a collective, read off the links between them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::topology {

/// How much of a link a ring takes: 1 for the link that bounds the ring, below for the others.
struct link_use {
    std::uint32_t link = 0;
    double share = 0;
    friend bool operator==(link_use const&, link_use const&) = default;
};

/// What a collective's cost depends on, and the links that its rings hold, by increasing number.
struct ring_group {
    collective_group shape;
    std::vector<link_use> links;
};

namespace detail {

/// How often messages that run at the same time pass each link.
class passages {
  public:
    /// Each message carries one of `parts` parts of its bytes.
    explicit passages(dense_topology const& t, std::size_t parts = 1) : topology_(t), parts_(static_cast<double>(parts)), count_(t.links.size(), 0) {}

    /// Adds a message.
    void add(std::uint32_t from, std::uint32_t to);
    /// Adds the messages of a ring through `members` in the given order. A ring of one device has no hop.
    void add_ring(std::span<std::uint32_t const> members) {
        for (std::size_t i = 0; i < members.size() && members.size() > 1; ++i) add(members[i], members[i + 1 < members.size() ? i + 1 : 0]);
    }
    /// Largest latency of one message.
    [[nodiscard]] picoseconds latency() const noexcept { return latency_; }
    /// The rate at which all messages get whole bytes: that of the link with the smallest bandwidth per message. Zero without messages.
    [[nodiscard]] bandwidth rate() const {
        double const slowest = slowest_of(seconds_per_byte());
        return {slowest > 0 ? 1 / slowest : 0};
    }
    /// The rate at which a switch adds up what comes over the links passed: the least of theirs. Zero where one has none, or where they are not two
    /// for each of `members`, in and out.
    [[nodiscard]] bandwidth reduction(std::size_t members) const {
        bandwidth least{passed_.size() == 2 * members ? std::numeric_limits<double>::max() : 0};
        for (auto const l : passed_) least = std::min(least, topology_.links[l].reduction);
        return least;
    }
    /// The links passed, each with its time per byte relative to the slowest.
    [[nodiscard]] std::vector<link_use> shares() const;

  private:
    [[nodiscard]] std::vector<link_use> seconds_per_byte() const;
    [[nodiscard]] static double slowest_of(std::vector<link_use> const& uses) noexcept {
        double slowest = 0;
        for (auto const& u : uses) slowest = std::max(slowest, u.share);
        return slowest;
    }

    dense_topology const& topology_;
    double parts_;
    std::vector<std::uint32_t> count_;  ///< of each link
    std::vector<std::uint32_t> passed_; ///< links, each once
    picoseconds latency_{0};
};

} // namespace detail

/// Reads off `t` what a collective over `members` costs (any order; a device named twice counts once).
/// - `shape.ring_*` and `links`: rings at once, each with an equal part of the bytes: from node to node, on each node through its members in device
///   order, ring r beginning with member r modulo their number. There are as many as the fullest node has members, so that they leave and enter
///   nodes by all interfaces, as NCCL's do; where `t` has rings through exactly the nodes of the members, these; on one node or with one member on
///   each, one. A link that h hops pass gives each its rate / h.
/// - `shape.inside_*`: a ring through the members of each node, all nodes at once.
/// - `shape.between_*`: as many rings at once as the fullest node has members, ring j through member j modulo m of every node
///   that has m: the second step of a hierarchical collective. Where `t` has rings through these nodes, each is split over them.
/// - `shape.switch_rate`: of three or more members on one node, whose ring passes a link in and a link out of each, the least `reduction` of these.
/// The latency of a hop is the sum over its links. A single member has no links and rates of zero, which nothing reads.
/// Throws `invalid_input` on no members or a number that is no device. Complexity: O(links of the topology + of all hops).
[[nodiscard]] ring_group describe_group(dense_topology const& t, std::span<std::uint32_t const> members);

/// Throws `invalid_input`, naming what differs, where the nodes of `t` are not all alike, two at least, joined by one switch, from which all devices
/// of a node have one latency, and without rings of their own: a cluster of any number of such nodes can be told by some of them. Complexity: O(hops
/// within nodes * logarithm of a node's links).
void require_like_nodes(dense_topology const& t);

/// What a collective costs over `members` and the devices like them of all of `replicas` copies of `t` on one switch, and the links of `t` that its
/// rings hold: what `describe_group` answers on a cluster of so many times the nodes. Precondition: nodes of `t` are alike. Complexity: as
/// `describe_group`.
[[nodiscard]] ring_group describe_replicas(dense_topology const& t, std::span<std::uint32_t const> members, std::uint32_t replicas);

/// What an all-to-all over `members` adds to `g`, their group: the rate at which each sends while all send to all others at once, the largest latency
/// between two, and, in place of the links of rings, all links between members in proportion to the messages that pass them.
/// Complexity: O(members^2 * length of a route).
[[nodiscard]] ring_group with_exchange(dense_topology const& t, std::span<std::uint32_t const> members, ring_group g);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/group.ipp>
#endif
