#pragma once
/// The shape of a group of devices that runs a collective, read off the links between them.

#include <algorithm>
#include <cstdint>
#include <span>
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

/// What a collective's cost depends on, and the links that its ring holds, by increasing number.
struct ring_group {
    collective_group shape;
    std::vector<link_use> links;
};

namespace detail {

/// Rings that run at the same time: the links that their hops pass.
class rings {
  public:
    explicit rings(dense_topology const& t) : topology_(t) {}

    /// Adds the ring through `members` in the given order. A ring of one device has no hop.
    void add(std::span<std::uint32_t const> members) {
        if (members.size() < 2) return;
        for (std::size_t i = 0; i < members.size(); ++i) {
            picoseconds latency{0};
            for (auto const link : topology_.route(members[i], members[i + 1 < members.size() ? i + 1 : 0])) {
                passed_.push_back(link);
                latency += topology_.links[link].latency;
            }
            latency_ = std::max(latency_, latency);
        }
    }
    /// Largest latency of one hop.
    [[nodiscard]] picoseconds latency() const noexcept { return latency_; }
    /// The rate that every ring gets: that of the link with the smallest bandwidth per hop. Zero without hops.
    [[nodiscard]] bandwidth rate() {
        auto const uses = seconds_per_byte();
        double const slowest = slowest_of(uses);
        return {slowest > 0 ? 1 / slowest : 0};
    }
    /// The links passed, each with its time per byte relative to the slowest.
    [[nodiscard]] std::vector<link_use> shares() {
        auto uses = seconds_per_byte();
        double const slowest = slowest_of(uses);
        for (auto& u : uses) u.share /= slowest;
        return uses;
    }

  private:
    [[nodiscard]] std::vector<link_use> seconds_per_byte() {
        std::sort(passed_.begin(), passed_.end());
        std::vector<link_use> out;
        for (std::size_t i = 0, next = 0; i < passed_.size(); i = next) {
            while (next < passed_.size() && passed_[next] == passed_[i]) ++next;
            out.push_back({passed_[i], static_cast<double>(next - i) / topology_.links[passed_[i]].rate.bytes_per_second});
        }
        return out;
    }
    [[nodiscard]] static double slowest_of(std::vector<link_use> const& uses) noexcept {
        double slowest = 0;
        for (auto const& u : uses) slowest = std::max(slowest, u.share);
        return slowest;
    }

    dense_topology const& topology_;
    std::vector<std::uint32_t> passed_;
    picoseconds latency_{0};
};

} // namespace detail

/// Reads off `t` what a collective over `members` costs (any order; a device named twice counts once).
/// - `shape.ring_*` and `links`: the ring through the members in device order. A link that h hops pass gives each its rate / h.
/// - `shape.inside_*`: a ring through the members of each node, all nodes at once.
/// - `shape.between_*`: as many rings at once as the fullest node has members, ring j through member j modulo m of every node
///   that has m: the second step of a hierarchical collective.
/// The latency of a hop is the sum over its links. A single member has no links and rates of zero, which nothing reads.
/// Throws `invalid_input` on no members or a number that is no device. Complexity: O(h log h) for h links passed by all hops.
[[nodiscard]] inline ring_group describe_group(dense_topology const& t, std::span<std::uint32_t const> members) {
    std::vector<std::uint32_t> ring(members.begin(), members.end());
    std::sort(ring.begin(), ring.end());
    ring.erase(std::unique(ring.begin(), ring.end()), ring.end());
    if (ring.empty()) throw invalid_input("a group of no devices: a collective needs at least one");
    if (ring.back() >= t.size()) throw invalid_input("device ", ring.back(), " in a group: the topology has ", t.size());

    std::vector<std::uint32_t> by_node(ring);
    std::stable_sort(by_node.begin(), by_node.end(), [&](auto a, auto b) { return t.node[a] < t.node[b]; });
    std::vector<std::span<std::uint32_t const>> nodes;
    for (std::size_t i = 0, next = 0; i < by_node.size(); i = next) {
        while (next < by_node.size() && t.node[by_node[next]] == t.node[by_node[i]]) ++next;
        nodes.push_back(std::span<std::uint32_t const>(by_node).subspan(i, next - i));
    }

    ring_group out;
    auto& shape = out.shape;
    shape.size = static_cast<std::uint32_t>(ring.size());
    shape.nodes = static_cast<std::uint32_t>(nodes.size());
    for (auto const& node : nodes) shape.per_node = std::max(shape.per_node, static_cast<std::uint32_t>(node.size()));

    detail::rings whole(t);
    whole.add(ring);
    shape.ring_rate = whole.rate();
    shape.ring_latency = whole.latency();
    out.links = whole.shares();
    if (shape.nodes == 1) { // the ring inside the node is the whole ring
        shape.inside_rate = shape.ring_rate;
        shape.inside_latency = shape.ring_latency;
        return out;
    }
    detail::rings inside(t), between(t);
    for (auto const& node : nodes) inside.add(node);
    std::vector<std::uint32_t> one_per_node(nodes.size());
    for (std::size_t j = 0; j < shape.per_node; ++j) {
        for (std::size_t k = 0; k < nodes.size(); ++k) one_per_node[k] = nodes[k][j % nodes[k].size()];
        between.add(one_per_node);
    }
    shape.inside_rate = inside.rate();
    shape.inside_latency = inside.latency();
    shape.between_rate = between.rate();
    shape.between_latency = between.latency();
    return out;
}

} // namespace parsearch::topology
