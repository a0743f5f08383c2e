#pragma once
/// The shape of a group of devices that runs a collective, read off the links between them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
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
    void add(std::uint32_t from, std::uint32_t to) {
        picoseconds latency{0};
        for (auto const link : topology_.route(from, to)) {
            if (count_[link]++ == 0) passed_.push_back(link);
            latency += topology_.links[link].latency;
        }
        latency_ = std::max(latency_, latency);
    }
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
    [[nodiscard]] std::vector<link_use> shares() const {
        auto uses = seconds_per_byte();
        double const slowest = slowest_of(uses);
        for (auto& u : uses) u.share /= slowest;
        return uses;
    }

  private:
    [[nodiscard]] std::vector<link_use> seconds_per_byte() const {
        std::vector<link_use> out;
        for (auto const l : passed_) out.push_back({l, static_cast<double>(count_[l]) / parts_ / topology_.links[l].rate.bytes_per_second});
        std::sort(out.begin(), out.end(), [](link_use const& a, link_use const& b) { return a.link < b.link; });
        return out;
    }
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

/// The devices of a group, ascending, each once. Throws `invalid_input` on no members or a number that is no device.
[[nodiscard]] inline std::vector<std::uint32_t> group_members(dense_topology const& t, std::span<std::uint32_t const> members) {
    std::vector<std::uint32_t> out(members.begin(), members.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.empty()) throw invalid_input("a group of no devices: a collective needs at least one");
    if (out.back() >= t.size()) throw invalid_input("device ", out.back(), " in a group: the topology has ", t.size());
    return out;
}

/// The members on one node.
struct node_members {
    std::uint32_t node = 0;
    std::span<std::uint32_t const> members;
};

/// The orders in which the topology's rings through exactly these `nodes` (ascending) pass them, as positions in `nodes`.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> ring_orders(dense_topology const& t, std::span<node_members const> nodes) {
    std::vector<std::vector<std::size_t>> out;
    for (auto const& ring : t.rings) {
        if (ring.size() != nodes.size()) continue;
        std::vector<std::size_t> order;
        for (auto const node : ring) {
            auto const at = std::lower_bound(nodes.begin(), nodes.end(), node, [](node_members const& m, std::uint32_t n) { return m.node < n; });
            if (at == nodes.end() || at->node != node) break;
            order.push_back(static_cast<std::size_t>(at - nodes.begin()));
        }
        if (order.size() == nodes.size()) out.push_back(std::move(order));
    }
    return out;
}
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
[[nodiscard]] inline ring_group describe_group(dense_topology const& t, std::span<std::uint32_t const> members) {
    auto const ring = detail::group_members(t, members);
    std::vector<std::uint32_t> by_node(ring);
    std::stable_sort(by_node.begin(), by_node.end(), [&](auto a, auto b) { return t.node[a] < t.node[b]; });
    std::vector<detail::node_members> nodes;
    for (std::size_t i = 0, next = 0; i < by_node.size(); i = next) {
        while (next < by_node.size() && t.node[by_node[next]] == t.node[by_node[i]]) ++next;
        nodes.push_back({t.node[by_node[i]], std::span<std::uint32_t const>(by_node).subspan(i, next - i)});
    }

    ring_group out;
    auto& shape = out.shape;
    shape.size = static_cast<std::uint32_t>(ring.size());
    shape.nodes = static_cast<std::uint32_t>(nodes.size());
    for (auto const& node : nodes) shape.per_node = std::max(shape.per_node, static_cast<std::uint32_t>(node.members.size()));

    auto orders = detail::ring_orders(t, nodes); // of nodes
    std::size_t rings = orders.size();
    if (orders.empty()) {
        orders.emplace_back(nodes.size());
        std::iota(orders.front().begin(), orders.front().end(), std::size_t{0});
        rings = shape.nodes > 1 ? shape.per_node : 1;
    }
    detail::passages whole(t, rings);
    for (std::size_t r = 0; r < rings; ++r) {
        std::vector<std::uint32_t> through;
        for (auto const k : orders[r % orders.size()])
            for (std::size_t i = 0; i < nodes[k].members.size(); ++i) through.push_back(nodes[k].members[(r + i) % nodes[k].members.size()]);
        whole.add_ring(through);
    }
    shape.ring_rate = whole.rate();
    shape.ring_latency = whole.latency();
    out.links = whole.shares();
    if (shape.nodes == 1) { // the ring inside the node is the whole ring
        shape.inside_rate = shape.ring_rate;
        shape.inside_latency = shape.ring_latency;
        if (shape.size > 2) shape.switch_rate = whole.reduction(ring.size());
        return out;
    }
    detail::passages inside(t), between(t, orders.size());
    for (auto const& node : nodes) inside.add_ring(node.members);
    std::vector<std::uint32_t> one_per_node(nodes.size());
    for (auto const& order : orders)
        for (std::size_t j = 0; j < shape.per_node; ++j) {
            for (std::size_t i = 0; i < order.size(); ++i) one_per_node[i] = nodes[order[i]].members[j % nodes[order[i]].members.size()];
            between.add_ring(one_per_node);
        }
    shape.inside_rate = inside.rate();
    shape.inside_latency = inside.latency();
    shape.between_rate = between.rate();
    shape.between_latency = between.latency();
    return out;
}

/// What an all-to-all over `members` adds to `g`, their group: the rate at which each sends while all send to all others at once, the largest latency
/// between two, and, in place of the links of rings, all links between members in proportion to the messages that pass them.
/// Complexity: O(members^2 * length of a route).
[[nodiscard]] inline ring_group with_exchange(dense_topology const& t, std::span<std::uint32_t const> members, ring_group g) {
    auto const group = detail::group_members(t, members);
    detail::passages all(t);
    for (auto const a : group)
        for (auto const b : group)
            if (a != b) all.add(a, b);
    g.shape.exchange_rate = {all.rate().bytes_per_second * static_cast<double>(group.size() - 1)};
    g.shape.exchange_latency = all.latency();
    g.links = all.shares();
    return g;
}

} // namespace parsearch::topology
