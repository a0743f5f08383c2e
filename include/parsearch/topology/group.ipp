#pragma once
// The shape of a group of devices that runs a collective, read off the links between them.

#include <map>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/topology/group.hpp>

namespace parsearch::topology::detail {

/// The members on one node.
struct node_members {
    std::uint32_t node = 0;
    std::span<std::uint32_t const> members;
};

} // namespace parsearch::topology::detail

namespace parsearch::topology::detail {

PARSEARCH_INLINE void passages::add(std::uint32_t from, std::uint32_t to) {
    picoseconds latency{0};
    for (auto const link : topology_.route(from, to)) {
        if (count_[link]++ == 0) passed_.push_back(link);
        latency += topology_.links[link].latency;
    }
    latency_ = std::max(latency_, latency);
}

PARSEARCH_INLINE std::vector<link_use> passages::shares() const {
    auto uses = seconds_per_byte();
    double const slowest = slowest_of(uses);
    for (auto& u : uses) u.share /= slowest;
    return uses;
}

PARSEARCH_INLINE std::vector<link_use> passages::seconds_per_byte() const {
    std::vector<link_use> out;
    for (auto const l : passed_) out.push_back({l, static_cast<double>(count_[l]) / parts_ / topology_.links[l].rate.bytes_per_second});
    std::sort(out.begin(), out.end(), [](link_use const& a, link_use const& b) { return a.link < b.link; });
    return out;
}

/// The devices of a group, ascending, each once. Throws `invalid_input` on no members or a number that is no device.
PARSEARCH_INLINE std::vector<std::uint32_t> group_members(dense_topology const& t, std::span<std::uint32_t const> members) {
    std::vector<std::uint32_t> out(members.begin(), members.end());
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.empty()) throw invalid_input("a group of no devices: a collective needs at least one");
    if (out.back() >= t.size()) throw invalid_input("device ", out.back(), " in a group: the topology has ", t.size());
    return out;
}

/// The orders in which the topology's rings through exactly these `nodes` (ascending) pass them, as positions in `nodes`.
PARSEARCH_INLINE std::vector<std::vector<std::size_t>> ring_orders(dense_topology const& t, std::span<node_members const> nodes) {
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

} // namespace parsearch::topology::detail

namespace parsearch::topology {

PARSEARCH_INLINE ring_group describe_group(dense_topology const& t, std::span<std::uint32_t const> members) {
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

PARSEARCH_INLINE void require_like_nodes(dense_topology const& t) {
    auto const per_node = devices_per_node(t);
    auto const refuse = [](auto const&... why) { throw invalid_input("nodes that are not alike: ", why...); };
    if (per_node == 0) refuse("they have different numbers of devices, or devices are not numbered node by node");
    if (t.size() == per_node) refuse("there is one, and a part of a cluster has two at least");
    if (t.routes.groups() != t.size() / per_node) refuse("no single switch joins them, through which all messages between them go");
    if (!t.rings.empty()) refuse("the topology names rings of its own");
    auto const latency = [&](auto const& route) {
        picoseconds sum{0};
        for (auto const l : route) sum += t.links[l].latency;
        return sum;
    };
    std::map<std::uint32_t, std::uint32_t> like, back; // links of a node, and those of the first node in their place
    auto const alike = [&](auto const& a, auto const& b) {
        return std::ranges::equal(a, b, [&](auto x, auto y) {
            return t.links[x] == t.links[y] && like.try_emplace(x, y).first->second == y && back.try_emplace(y, x).first->second == x;
        });
    };
    for (std::size_t d = 0; d < t.size(); ++d) {
        auto const first = d - d % per_node, of_first = d % per_node;
        if (d == first) like.clear(), back.clear();
        if (t.routes.group(d) != t.node[d]) refuse("only the switch of all nodes joins some devices of node ", t.node[d]);
        if (t.kind[d] != t.kind[of_first] || !(t.devices[d] == t.devices[of_first])) refuse("device ", d, " is another than device ", of_first);
        if (!alike(t.routes.up(d), t.routes.up(of_first)) || !alike(t.routes.down(d), t.routes.down(of_first)))
            refuse("device ", d, " has other links to the switch than device ", of_first, ", or shares them otherwise");
        if (latency(t.routes.up(d)) != latency(t.routes.up(first)) || latency(t.routes.down(d)) != latency(t.routes.down(first)))
            refuse("device ", d, " has another latency to the switch, or from it, than device ", first);
        for (std::size_t k = 0; k < per_node; ++k)
            if (!alike(t.route(d, first + k), t.route(of_first, k)))
                refuse("device ", d, " has other links to its neighbours than device ", of_first, ", or shares them otherwise");
    }
}

PARSEARCH_INLINE ring_group describe_replicas(dense_topology const& t, std::span<std::uint32_t const> members, std::uint32_t replicas) {
    bool const one_node = std::ranges::all_of(members, [&](auto d) { return t.node[d] == t.node[members.front()]; });
    if (replicas == 1 || !one_node) {
        auto out = describe_group(t, members);
        out.shape.size *= replicas;
        out.shape.nodes *= replicas;
        return out;
    }
    // With the like of them on another node: a ring passes through each of two nodes as through each of many.
    auto const per_node = static_cast<std::uint32_t>(devices_per_node(t));
    std::vector<std::uint32_t> both(members.begin(), members.end());
    for (auto const d : members) both.push_back(t.node[d] == 0 ? d + per_node : d % per_node);
    auto out = describe_group(t, both);
    out.shape.size = out.shape.size / 2 * replicas;
    out.shape.nodes = replicas;
    std::vector<bool> own(t.links.size(), false);
    auto const add = [&](auto const& links) {
        for (auto const l : links) own[l] = true;
    };
    for (auto const d : members) {
        add(t.routes.up(d));
        add(t.routes.down(d));
        for (auto const other : members) add(t.route(d, other));
    }
    std::erase_if(out.links, [&](link_use const& use) { return !own[use.link]; });
    return out;
}

PARSEARCH_INLINE ring_group with_exchange(dense_topology const& t, std::span<std::uint32_t const> members, ring_group g) {
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
