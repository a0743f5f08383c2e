#pragma once
// The paths of flows through a network.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/paths/path_table.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE path_table::path_table(network const& n, routing_options const& o)
    : options_(o), servers_(n.servers), vertices_(checked(n).vertices()), index_(vertices_, n.links) {
    auto near = neighbours_of(vertices_, n.links);
    for (auto& list : near) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    switch (o.policy) {
    case routing::coin_change:
        if (n.switches > 0)
            throw invalid_input("coin change routing of a network with ", n.switches, " switches: needs a circulant graph of servers");
        if (!circulant_steps(n.servers, n.links))
            throw invalid_input("coin change routing of a network of ", n.servers, " servers: its links make no circulant graph");
        [[fallthrough]]; // the table's routes are those of coin change on circulants
    case routing::shortest: next_.emplace(vertices_, n.links); break;
    case routing::ecmp:
        for (std::uint32_t to = 0; to < servers_; ++to) {
            auto const hops = hops_from(to, near);
            distance_.insert(distance_.end(), hops.begin(), hops.end());
        }
        break;
    case routing::k_shortest: find_k_shortest(n, std::move(near)); break;
    }
}

PARSEARCH_INLINE void path_table::append_path(std::uint32_t from, std::uint32_t to, std::uint64_t flow, std::vector<link_direction>& out) const {
    if (options_.policy == routing::k_shortest && from != to) {
        auto const pair = std::size_t{from} * servers_ + to;
        auto const count = first_path_[pair + 1] - first_path_[pair];
        auto const path = first_path_[pair] + static_cast<std::size_t>(flow_hash(options_.seed, flow, whole_path) % count);
        for (auto i = first_vertex_[path] + 1; i < first_vertex_[path + 1]; ++i) out.push_back(link(path_vertices_[i - 1], path_vertices_[i], flow));
        return;
    }
    for (auto at = from; at != to;) {
        if (next_) {
            auto const next = next_->next(at, to);
            out.push_back(link(at, next, flow));
            at = next;
            continue;
        }
        auto const* const distance = &distance_[std::size_t{to} * vertices_];
        auto const nearer = [&](link_index::entry const& e) { return distance[e.to] < distance[at]; };
        auto const all = index_.out_of(at);
        auto const count = static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), nearer));
        auto turn = flow_hash(options_.seed, flow, at) % count;
        auto const chosen = std::find_if(all.begin(), all.end(), [&](auto const& e) { return nearer(e) && turn-- == 0; });
        out.push_back(chosen->direction);
        at = chosen->to;
    }
}

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> path_table::paths(std::uint32_t from, std::uint32_t to, std::size_t most) const {
    std::vector<std::vector<std::uint32_t>> out;
    if (most == 0) return out;
    if (from == to) {
        out.push_back({from});
    } else if (next_) {
        out.push_back(next_->route(from, to));
    } else if (options_.policy == routing::ecmp) {
        std::vector<std::uint32_t> path{from};
        extend(path, to, most, out);
    } else {
        auto const pair = std::size_t{from} * servers_ + to;
        for (auto p = first_path_[pair]; p < first_path_[pair + 1] && out.size() < most; ++p)
            out.emplace_back(path_vertices_.begin() + static_cast<std::ptrdiff_t>(first_vertex_[p]),
                             path_vertices_.begin() + static_cast<std::ptrdiff_t>(first_vertex_[p + 1]));
    }
    return out;
}

PARSEARCH_INLINE void path_table::extend(std::vector<std::uint32_t>& path, std::uint32_t to, std::size_t most,
                                         std::vector<std::vector<std::uint32_t>>& out) const {
    auto const at = path.back();
    if (at == to) out.push_back(path);
    auto const* const distance = &distance_[std::size_t{to} * vertices_];
    auto last = at;
    for (auto const& e : index_.out_of(at)) {
        if (e.to == last || distance[e.to] >= distance[at]) continue;
        if (out.size() == most) return;
        path.push_back(last = e.to);
        extend(path, to, most, out);
        path.pop_back();
    }
}

PARSEARCH_INLINE void path_table::find_k_shortest(network const& n, std::vector<std::vector<std::uint32_t>> near) {
    if (options_.k < 1 || options_.k > 1024) throw invalid_input("k shortest paths of k = ", options_.k, ": must be from 1 to 1024");
    std::vector<bool> in_ring(std::size_t{servers_} * servers_, false);
    for (auto const& ring : n.rings)
        for (std::size_t i = 0; i < ring.size(); ++i) {
            auto const from = ring[i], to = ring[(i + 1) % ring.size()];
            in_ring[std::size_t{from} * servers_ + to] = !index_.all_between(from, to).empty();
        }
    k_shortest_paths find(std::move(near));
    first_path_.push_back(0);
    first_vertex_.push_back(0);
    for (std::uint32_t from = 0; from < servers_; ++from)
        for (std::uint32_t to = 0; to < servers_; ++to) {
            if (from != to) {
                // Equal paths are ranked otherwise for every pair, so that pairs spread.
                auto const flow = flow_between(from, to);
                auto const k = in_ring[std::size_t{from} * servers_ + to] ? 1 : options_.k;
                for (auto const& path : find(from, to, k, [&](std::uint32_t v) { return flow_hash(options_.seed, flow, v); })) {
                    path_vertices_.insert(path_vertices_.end(), path.begin(), path.end());
                    first_vertex_.push_back(path_vertices_.size());
                }
            }
            first_path_.push_back(first_vertex_.size() - 1);
        }
}

} // namespace parsearch::fabric
