#pragma once
// Builds a `cluster`: devices, switches, links; explicit routes, and shortest ones for the other pairs.

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <ranges>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/topology/cluster_builder.hpp>

namespace parsearch::topology::detail {

PARSEARCH_INLINE void check_hops(std::size_t hops, std::size_t most, std::uint32_t a, std::uint32_t b) {
    if (hops > most) throw invalid_input("route from device ", a, " to device ", b, ": more than ", most, " hops in all routes together");
}

} // namespace parsearch::topology::detail

namespace parsearch::topology {

PARSEARCH_INLINE vertex cluster_builder::add_device(device_spec spec, std::uint32_t node) {
    auto const number = static_cast<std::uint32_t>(made_.devices_.size());
    auto const place = text("device ", number);
    validate(spec, place);
    if (number == max_devices) throw invalid_input("device ", number, ": a cluster has at most ", max_devices);
    auto const [at, fresh] = first_of_kind_.try_emplace(spec.kind, number);
    if (!fresh) {
        auto other = made_.devices_[at->second];
        other.memory = spec.memory;
        if (!(other == spec))
            throw invalid_input(place, " (", spec.kind, ") differs from device ", at->second, " of the same kind: name the kinds apart");
    }
    made_.devices_.push_back(std::move(spec));
    made_.node_.push_back(node);
    nodes_.insert(node);
    return {vertex::type::device, number};
}

PARSEARCH_INLINE std::uint32_t cluster_builder::add_link(vertex from, vertex to, link_description const& link, std::string name) {
    check_exists(from);
    check_exists(to);
    if (from == to) throw invalid_input(next_link(), " leads from ", made_.name_of_vertex(from), " to itself: its ends must differ");
    return insert({from, to}, link, std::move(name));
}

PARSEARCH_INLINE void cluster_builder::set_route(vertex a, vertex b, std::span<std::uint32_t const> links) {
    check_exists(a);
    check_exists(b);
    if (a.what != vertex::type::device || b.what != vertex::type::device || a == b)
        throw invalid_input("route from ", made_.name_of_vertex(a), " to ", made_.name_of_vertex(b), ": must join two different devices");
    auto const place = [&] { return text("route from device ", a.number, " to device ", b.number); };
    if (links.empty()) throw invalid_input(place(), " is empty: must have at least one link");
    vertex at = a;
    for (auto const l : links) {
        if (l >= made_.links_.size()) throw invalid_input(place(), " passes link ", l, ": there are ", made_.links_.size(), " links");
        auto const& ends = made_.ends_[l];
        if (!joined(at, ends.from))
            throw invalid_input(place(), " passes link ", l, " (", made_.name_of_link(l), ") from ", made_.name_of_vertex(at),
                                ": a link must start where the one before it ends");
        at = ends.to;
    }
    if (!joined(at, b)) throw invalid_input(place(), " ends at ", made_.name_of_vertex(at), ": must end at its destination");
    set_.push_back({a.number, b.number, set_links_.size(), links.size()});
    set_links_.insert(set_links_.end(), links.begin(), links.end());
}

PARSEARCH_INLINE void cluster_builder::add_ring(std::vector<std::uint32_t> order) {
    auto const place = [&] { return text("ring ", made_.rings_.size(), " of nodes"); };
    if (order.size() < 2) throw invalid_input(place(), " has ", order.size(), " nodes: must have at least two");
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    auto const twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw invalid_input(place(), " passes node ", *twice, " twice: each at most once");
    for (auto const node : sorted)
        if (!nodes_.contains(node)) throw invalid_input(place(), " passes node ", node, ": no device is on it");
    made_.rings_.push_back(std::move(order));
}

PARSEARCH_INLINE cluster cluster_builder::build(std::size_t max_hops) const {
    if (made_.devices_.empty()) throw invalid_input("a cluster of no devices: at least one is needed");
    cluster out = made_;
    out.numbers_.resize(std::max(out.devices_.size(), out.links_.size()));
    std::iota(out.numbers_.begin(), out.numbers_.end(), 0u);
    max_hops = std::min<std::size_t>(max_hops, std::numeric_limits<std::uint32_t>::max());
    auto through = set_.empty() ? through_hub(max_hops) : std::nullopt;
    out.routes_ = through ? *std::move(through) : all_pairs(max_hops);
    return out;
}

PARSEARCH_INLINE route_table cluster_builder::all_pairs(std::size_t max_hops) const {
    auto const n = static_cast<std::uint32_t>(made_.devices_.size());
    if (n > max_group)
        throw invalid_input(n, " devices: more than ", max_group, " must be on nodes that one switch joins, and have no explicit routes");
    auto const set = sorted_routes();
    searcher search(*this);
    link_lists pairs;
    pairs.reserve(std::size_t{n} * n);
    auto next = set.begin();
    for (std::uint32_t a = 0; a < n; ++a) {
        auto const last = std::find_if(next, set.end(), [&](auto const& r) { return r.from != a; });
        bool const complete = static_cast<std::size_t>(last - next) + 1 == n;
        if (!complete)
            search.from(
                a, n - 1, [&](auto v) { return v < n; }, [](auto) { return true; });
        for (std::uint32_t b = 0; b < n; ++b, pairs.end_list()) {
            if (next != last && next->to == b) {
                for (auto const l : std::span(set_links_).subspan(next->first, next->size)) pairs.add(l);
                ++next;
            } else if (a != b) {
                if (!search.reached(b))
                    throw invalid_input("device ", b, " cannot be reached from device ", a, ": every pair of devices must be joined by links");
                search.add_route(b, pairs);
            }
            detail::check_hops(pairs.links(), max_hops, a, b);
        }
    }
    return {n, std::move(pairs)};
}

PARSEARCH_INLINE std::optional<cluster_builder::hub> cluster_builder::find_hub(searcher const& search) const {
    auto const n = static_cast<std::uint32_t>(made_.devices_.size());
    std::vector<std::uint32_t> ends(search.vertices(), 0); // of links, of each vertex
    for (auto const& e : made_.ends_)
        if (e.from.what != vertex::type::bus) ++ends[search.number(e.from)], ++ends[search.number(e.to)];
    std::vector<std::uint32_t> switches(search.vertices() - n);
    std::iota(switches.begin(), switches.end(), n);
    std::ranges::stable_sort(switches, std::greater{}, [&](auto v) { return ends[v]; });
    if (switches.size() > tried_hubs) switches.resize(tried_hubs);
    std::optional<hub> best;
    std::array<std::size_t, 3> least{}; // devices of the largest group, by how many groups differ, and by how many links
    for (auto const v : switches) {
        joined_sets joined(search.vertices());
        std::vector<std::uint32_t> met; // by links of `v`
        for (auto const& e : made_.ends_) {
            if (e.from.what == vertex::type::bus) continue;
            auto const from = search.number(e.from), to = search.number(e.to);
            if (from != v && to != v) joined.join(from, to);
            else met.push_back(from == v ? to : from);
        }
        hub made{.at = v, .set = {}, .group = {}, .members = {}};
        for (std::uint32_t w = 0; w < search.vertices(); ++w) made.set.push_back(joined.root(w));
        detail::numbering<std::uint32_t> number;
        for (std::uint32_t d = 0; d < n; ++d) {
            made.group.push_back(number(made.set[d]));
            if (made.group.back() == made.members.size()) made.members.emplace_back();
            made.members[made.group.back()].push_back(d);
        }
        std::vector<std::size_t> links(made.members.size(), 0);
        for (auto const w : met)
            if (auto const group = number.find(made.set[w])) ++links[*group];
        auto const [smallest, largest] = std::ranges::minmax(made.members | std::views::transform([](auto const& m) { return m.size(); }));
        if (made.members.size() < 2 || largest > max_group) continue;
        auto const [fewest, most] = std::ranges::minmax(links);
        std::array const rank{largest, largest - smallest, most - fewest};
        if (best && least <= rank) continue;
        least = rank;
        best = std::move(made);
    }
    return best;
}

PARSEARCH_INLINE std::optional<route_table> cluster_builder::through_hub(std::size_t max_hops) const {
    auto const n = static_cast<std::uint32_t>(made_.devices_.size());
    searcher search(*this);
    auto found = find_hub(search);
    if (!found) return std::nullopt;
    auto& [hub, set, group, members] = *found;
    link_lists pairs, up, down;
    for (std::uint32_t a = 0; a < n; ++a) {
        search.from(
            a, members[group[a]].size(), [&](auto v) { return v < n || v == hub; }, [&](auto v) { return v == hub || set[v] == set[a]; });
        if (!search.reached(hub)) return std::nullopt;
        search.add_route(hub, up);
        up.end_list();
        for (auto const b : members[group[a]]) {
            if (!search.reached(b)) return std::nullopt;
            search.add_route(b, pairs);
            pairs.end_list();
            detail::check_hops(pairs.links() + up.links(), max_hops, a, b);
        }
    }
    search.from(
        hub, n, [&](auto v) { return v < n; }, [](auto) { return true; });
    for (std::uint32_t b = 0; b < n; ++b) {
        if (!search.reached(b)) return std::nullopt;
        search.add_route(b, down);
        down.end_list();
        detail::check_hops(pairs.links() + up.links() + down.links(), max_hops, 0, b);
    }
    return route_table(std::move(group), std::move(pairs), std::move(up), std::move(down));
}

PARSEARCH_INLINE cluster_builder::searcher::searcher(cluster_builder const& b)
    : builder_(b), devices_(static_cast<std::uint32_t>(b.made_.devices_.size())) {
    first_.assign(devices_ + b.made_.switches_.size() + 1, 0);
    for (auto const& e : b.made_.ends_)
        if (e.from.what != vertex::type::bus) ++first_[number(e.from) + 1];
    for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    out_.resize(first_.back());
    auto at = first_;
    for (std::uint32_t l = 0; l < b.made_.ends_.size(); ++l)
        if (auto const& e = b.made_.ends_[l]; e.from.what != vertex::type::bus) out_[at[number(e.from)]++] = l;
    reached_.resize(first_.size() - 1);
}

template <class Wants, class MayPass>
void cluster_builder::searcher::from(std::uint32_t source, std::size_t wanted, Wants const& wants, MayPass const& may_pass) {
    source_ = source;
    for (auto const v : touched_) reached_[v] = {};
    touched_.assign(1, source);
    reached_[source].level = 0;
    std::vector<std::uint32_t> level{source}, next;
    for (std::uint32_t depth = 1; wanted > 0 && !level.empty(); ++depth, level.swap(next)) {
        next.clear();
        for (std::uint32_t position = 0; position < level.size(); ++position) {
            auto const v = level[position];
            for (std::uint32_t i = first_[v]; i < first_[v + 1]; ++i) {
                auto const w = number(builder_.made_.ends_[out_[i]].to);
                auto const latency = std::min(reached_[v].latency + builder_.made_.links_[out_[i]].latency, longest);
                reach const candidate{depth, latency, position, out_[i], v};
                if (reached_[w].level == unreached) {
                    if (!may_pass(w)) continue;
                    next.push_back(w);
                    touched_.push_back(w);
                    wanted -= wants(w);
                    reached_[w] = candidate;
                } else if (reached_[w].level == depth && candidate.latency < reached_[w].latency) {
                    // Of equal latencies the first found stays: positions and links come in increasing order.
                    reached_[w] = candidate;
                }
            }
        }
        std::sort(next.begin(), next.end(), [&](auto x, auto y) {
            return std::pair(reached_[x].position, reached_[x].link) < std::pair(reached_[y].position, reached_[y].link);
        });
    }
}

PARSEARCH_INLINE void cluster_builder::searcher::add_route(std::uint32_t to, link_lists& out) {
    links_.clear();
    for (auto v = to; v != source_; v = reached_[v].before) links_.push_back(reached_[v].link);
    std::for_each(links_.rbegin(), links_.rend(), [&](auto l) { out.add(l); });
}

PARSEARCH_INLINE std::vector<cluster_builder::explicit_route> cluster_builder::sorted_routes() const {
    auto const order = [](explicit_route const& r) { return std::pair(r.from, r.to); };
    auto sorted = set_;
    std::sort(sorted.begin(), sorted.end(), [&](auto const& x, auto const& y) { return order(x) < order(y); });
    auto const twice = std::adjacent_find(sorted.begin(), sorted.end(), [&](auto const& x, auto const& y) { return order(x) == order(y); });
    if (twice != sorted.end()) throw invalid_input("route from device ", twice->from, " to device ", twice->to, " is set twice: at most once");
    return sorted;
}

PARSEARCH_INLINE void cluster_builder::check_exists(vertex v) const {
    auto const known = v.what == vertex::type::device ? made_.devices_.size() : v.what == vertex::type::network_switch ? made_.switches_.size() : 0;
    if (v.number >= known)
        throw invalid_input(v.what == vertex::type::device ? "device " : "switch ", v.number, " as an end: the cluster has ", known,
                            " of them so far");
}

PARSEARCH_INLINE std::uint32_t cluster_builder::insert(link_ends ends, link_description link, std::string name) {
    validate(link, next_link());
    made_.links_.push_back(link);
    made_.ends_.push_back(ends);
    made_.link_names_.push_back(std::move(name));
    return static_cast<std::uint32_t>(made_.links_.size() - 1);
}

} // namespace parsearch::topology

namespace parsearch::topology {

PARSEARCH_INLINE cluster first_devices(cluster const& c, std::size_t devices) {
    cluster_builder builder;
    for (std::uint32_t d = 0; d < devices; ++d) builder.add_device(c.describe_device(d), c.node_of(d));
    for (auto const& name : c.switches()) builder.add_switch(name);
    std::vector<std::size_t> kept(devices);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    std::vector<bool> passed(c.links().size(), false);
    c.routes().part(kept).for_each_link([&](auto l) { passed[l] = true; });
    for (auto const l : c.links())
        if (passed[l]) builder.add_link(c.ends_of(l).from, c.ends_of(l).to, c.describe_link(l), c.given_name_of_link(l));
    return builder.build();
}

} // namespace parsearch::topology

namespace parsearch::topology::detail {

PARSEARCH_INLINE std::vector<vertex> add_devices(cluster_builder& builder, std::uint64_t count, device_spec const& device) {
    if (count < 1 || count > cluster_builder::max_group) throw invalid_input(count, " devices: must be from 1 to ", cluster_builder::max_group);
    std::vector<vertex> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(builder.add_device(device, i));
    return out;
}

} // namespace parsearch::topology::detail
