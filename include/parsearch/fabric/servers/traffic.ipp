#pragma once
// What a strategy makes servers send to each other in an iteration.

#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/fabric/servers/traffic.hpp>

namespace parsearch::fabric::detail {

PARSEARCH_INLINE topology::dense_topology one_link(std::vector<std::uint32_t> const& server) {
    auto const n = server.size();
    topology::dense_topology out;
    out.devices.assign(n, {.kind = "device"});
    out.kind.assign(n, 0);
    out.node = server;
    out.links.push_back({.rate = {1}, .latency = {}});
    topology::link_lists pairs;
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b, pairs.end_list())
            if (a != b) pairs.add(0);
    out.routes = {n, std::move(pairs)};
    return out;
}

PARSEARCH_INLINE void server_traffic::ring(collective_kind kind, std::vector<std::uint32_t> const& members, std::uint32_t first, byte_count bytes) {
    auto const servers = servers_of(members);
    if (servers.size() < 2) return;
    std::vector<byte_count> part(servers.size(), 0); // of the servers' devices
    auto const each = split_evenly(bytes, members.size());
    auto const place = [&](std::uint32_t device) {
        return static_cast<std::size_t>(std::lower_bound(servers.begin(), servers.end(), server_[device]) - servers.begin());
    };
    for (std::size_t i = 0; i < members.size(); ++i) part[place(members[i])] += each[i];
    auto const sent = ring_sends(kind, part, place(first));
    for (std::size_t i = 0; i < servers.size(); ++i) sum_.add(servers[i], servers[(i + 1) % servers.size()], sent[i]);
}

PARSEARCH_INLINE std::vector<std::uint32_t> server_traffic::servers_of(std::vector<std::uint32_t> const& members) const {
    std::vector<std::uint32_t> out;
    for (auto const d : members) out.push_back(server_[d]);
    make_set(out);
    return out;
}

PARSEARCH_INLINE void add_edge(server_traffic& sum, sim::edge_plan const& plan, byte_count element, std::vector<std::uint32_t> const& made,
                               std::vector<std::uint32_t> const& read, bool gradients) {
    for (auto const& c : plan.collectives) {
        if (is_exchange(c.forward_kind)) continue; // exactly what its pairs of shards exchange
        std::vector<std::uint32_t> members;
        for (auto const p : c.producers) members.push_back(made[p]);
        for (auto const p : c.consumers) members.push_back(read[p]);
        make_set(members);
        if (c.forward_kind == collective_kind::all_reduce || gradients) sum.all_reduce(members, c.bytes);
        if (c.forward_kind == collective_kind::all_reduce && gradients) sum.all_reduce(members, c.bytes);
        if (gradients && c.again > 0) sum.ring(c.forward_kind, members, made[c.producers.front()], c.again);
        if (c.forward_kind == collective_kind::all_reduce || gradients) continue;
        sum.ring(c.forward_kind, members, c.forward_kind == collective_kind::reduce ? read[c.consumers.front()] : made[c.producers.front()], c.bytes);
    }
    for (std::size_t i = 0; i < plan.collective_of.size(); ++i) {
        auto const in = plan.collective_of[i];
        if (in >= 0 && !is_exchange(plan.collectives[static_cast<std::size_t>(in)].forward_kind)) continue;
        auto const& pair = plan.table->pairs[i];
        sum.message(made[pair.producer], read[pair.consumer], pair.elements * element);
        if (gradients) sum.message(read[pair.consumer], made[pair.producer], pair.elements * element);
    }
}

PARSEARCH_INLINE void add_class(server_traffic& sum, sim::class_plan const& plan) {
    for (std::size_t i = 0; i < plan.sync.groups.size(); ++i) {
        auto const& group = plan.sync.groups[i];
        if (plan.servers.empty()) {
            sum.all_reduce(group.devices, group.gradients);
            continue;
        }
        auto const server = plan.servers[i].server;
        for (auto const d : group.devices) {
            if (d == server) continue;
            sum.message(d, server, group.gradients);
            sum.message(server, d, group.bytes);
        }
    }
}

} // namespace parsearch::fabric::detail
