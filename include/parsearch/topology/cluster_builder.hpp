#pragma once
/// Builds a `cluster`: devices, switches, links; explicit routes, and shortest ones for the other pairs.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::topology {

/// The two directions of a duplex link.
struct duplex {
    std::uint32_t forward = 0, backward = 0;
};

/// A topology under construction. Devices, switches and links are numbered from 0 in the order in which they are added.
/// Every function throws `invalid_input` naming the value and the rule that it breaks.
class cluster_builder {
  public:
    /// The most devices of a cluster: it holds a route for every pair.
    static constexpr std::uint32_t max_devices = 1 << 13;

    /// Adds a device on a node (host). Devices of one kind are equal but for their memory.
    vertex add_device(device_spec spec, std::uint32_t node = 0) {
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

    /// Adds a switch: any number of messages pass it, each held up by its links alone.
    vertex add_switch(std::string name) {
        made_.switches_.push_back(std::move(name));
        return {vertex::type::network_switch, static_cast<std::uint32_t>(made_.switches_.size() - 1)};
    }

    /// Adds one direction of a link and returns its number. `rate` is positive, `latency` not negative.
    std::uint32_t add_link(vertex from, vertex to, bandwidth rate, picoseconds latency, std::string name = {}) {
        return add_link(from, to, link_description{rate, latency}, std::move(name));
    }
    std::uint32_t add_link(vertex from, vertex to, link_description const& link, std::string name = {}) {
        check_exists(from);
        check_exists(to);
        if (from == to) throw invalid_input(next_link(), " leads from ", made_.name_of_vertex(from), " to itself: its ends must differ");
        return insert({from, to}, link, std::move(name));
    }
    /// Adds both directions, numbered one after the other.
    duplex add_duplex_link(vertex a, vertex b, bandwidth rate, picoseconds latency) {
        auto const forward = add_link(a, b, rate, latency);
        return {forward, add_link(b, a, rate, latency)};
    }
    /// Adds a link without ends, a medium that messages share wherever they come from. Only explicit routes pass it.
    std::uint32_t add_bus(bandwidth rate, picoseconds latency, std::string name) { return insert({}, {rate, latency}, std::move(name)); }

    /// Sets the route from device `a` to device `b`: at least one link, each starting where the one before it ends (a bus joins
    /// anything), from `a` to `b`.
    void set_route(vertex a, vertex b, std::span<std::uint32_t const> links) {
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
    void set_route(vertex a, vertex b, std::initializer_list<std::uint32_t> links) {
        set_route(a, b, std::span<std::uint32_t const>(links.begin(), links.size()));
    }

    /// Adds a ring through two or more nodes that devices were added on, each once: `order` goes from each to the next and from the last to
    /// the first, one direction. Collectives of devices on exactly these nodes run over all such rings at once, an equal part of the bytes on each.
    void add_ring(std::vector<std::uint32_t> order) {
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

    /// The cluster. A pair without an explicit route gets the one of fewest links, among those the one of lowest latency, among
    /// those the one whose link numbers come first. Refuses a topology without devices, a pair of devices that no links join, a route that
    /// was set twice, more than `max_hops` links in all routes together (4 bytes each). Complexity: a breadth-first search per device that
    /// misses a route, which ends when it has them all.
    [[nodiscard]] cluster build(std::size_t max_hops = std::numeric_limits<std::uint32_t>::max()) const {
        if (made_.devices_.empty()) throw invalid_input("a cluster of no devices: at least one is needed");
        cluster out = made_;
        out.numbers_.resize(std::max(out.devices_.size(), out.links_.size()));
        std::iota(out.numbers_.begin(), out.numbers_.end(), 0u);
        auto const n = static_cast<std::uint32_t>(out.devices_.size());
        auto const set = sorted_routes();
        searcher search(*this);
        std::vector<std::uint32_t> begins, links;
        begins.reserve(std::size_t{n} * n + 1);
        begins.push_back(0);
        auto next = set.begin();
        for (std::uint32_t a = 0; a < n; ++a) {
            auto const last = std::find_if(next, set.end(), [&](auto const& r) { return r.from != a; });
            bool const complete = static_cast<std::size_t>(last - next) + 1 == n;
            if (!complete) search.from(a);
            for (std::uint32_t b = 0; b < n; ++b) {
                if (next != last && next->to == b) {
                    auto const first = set_links_.begin() + static_cast<std::ptrdiff_t>(next->first);
                    links.insert(links.end(), first, first + static_cast<std::ptrdiff_t>(next->size));
                    ++next;
                } else if (a != b) {
                    search.append_route(b, links);
                }
                if (links.size() > std::min<std::size_t>(max_hops, std::numeric_limits<std::uint32_t>::max()))
                    throw invalid_input("route from device ", a, " to device ", b, ": more than ", max_hops, " hops in all routes together");
                begins.push_back(static_cast<std::uint32_t>(links.size()));
            }
        }
        out.routes_ = {n, std::move(begins), std::move(links)};
        return out;
    }

  private:
    struct explicit_route {
        std::uint32_t from, to;
        std::size_t first, size; ///< in set_links_
    };

    /// Shortest routes from one device after another. Vertices are numbered devices first, then switches.
    class searcher {
      public:
        explicit searcher(cluster_builder const& b) : builder_(b), devices_(static_cast<std::uint32_t>(b.made_.devices_.size())) {
            first_.assign(devices_ + b.made_.switches_.size() + 1, 0);
            for (auto const& e : b.made_.ends_)
                if (e.from.what != vertex::type::bus) ++first_[number(e.from) + 1];
            for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
            out_.resize(first_.back());
            auto at = first_;
            for (std::uint32_t l = 0; l < b.made_.ends_.size(); ++l)
                if (auto const& e = b.made_.ends_[l]; e.from.what != vertex::type::bus) out_[at[number(e.from)]++] = l;
        }

        /// Searches from device `source`, level by level. In a level the vertices are in the order of their routes' link numbers, so
        /// that comparing (position of the vertex before, link) compares whole routes.
        void from(std::uint32_t source) {
            source_ = source;
            reached_.assign(first_.size() - 1, {});
            reached_[source].level = 0;
            std::vector<std::uint32_t> level{source}, next;
            std::uint32_t missing = devices_ - 1;
            for (std::uint32_t depth = 1; missing > 0 && !level.empty(); ++depth, level.swap(next)) {
                next.clear();
                for (std::uint32_t position = 0; position < level.size(); ++position) {
                    auto const v = level[position];
                    for (std::uint32_t i = first_[v]; i < first_[v + 1]; ++i) {
                        auto const w = number(builder_.made_.ends_[out_[i]].to);
                        auto const latency = std::min(reached_[v].latency + builder_.made_.links_[out_[i]].latency, longest);
                        reach const candidate{depth, latency, position, out_[i], v};
                        if (reached_[w].level == unreached) {
                            next.push_back(w);
                            missing -= w < devices_;
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

        void append_route(std::uint32_t to, std::vector<std::uint32_t>& links) const {
            if (reached_[to].level == unreached)
                throw invalid_input("device ", to, " cannot be reached from device ", source_, ": every pair of devices must be joined by links");
            auto const end = links.size() + reached_[to].level;
            links.resize(end);
            auto v = to;
            for (auto i = end; v != source_; v = reached_[v].before) links[--i] = reached_[v].link;
        }

      private:
        static constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();
        static constexpr picoseconds longest = picoseconds::max() / 2; ///< a link takes a day at most, so that no sum overflows
        struct reach {
            std::uint32_t level = unreached;
            picoseconds latency{};
            std::uint32_t position = 0; ///< of the vertex before, in its level
            std::uint32_t link = 0, before = 0;
        };
        [[nodiscard]] std::uint32_t number(vertex v) const noexcept { return v.what == vertex::type::device ? v.number : devices_ + v.number; }

        cluster_builder const& builder_;
        std::uint32_t devices_, source_ = 0;
        std::vector<std::uint32_t> first_, out_; ///< links out of vertex v: out_[first_[v] ... first_[v + 1])
        std::vector<reach> reached_;
    };

    [[nodiscard]] std::vector<explicit_route> sorted_routes() const {
        auto const order = [](explicit_route const& r) { return std::pair(r.from, r.to); };
        auto sorted = set_;
        std::sort(sorted.begin(), sorted.end(), [&](auto const& x, auto const& y) { return order(x) < order(y); });
        auto const twice = std::adjacent_find(sorted.begin(), sorted.end(), [&](auto const& x, auto const& y) { return order(x) == order(y); });
        if (twice != sorted.end()) throw invalid_input("route from device ", twice->from, " to device ", twice->to, " is set twice: at most once");
        return sorted;
    }
    [[nodiscard]] std::string next_link() const { return text("link ", made_.links_.size()); }
    [[nodiscard]] static bool joined(vertex a, vertex b) noexcept { return a.what == vertex::type::bus || b.what == vertex::type::bus || a == b; }
    void check_exists(vertex v) const {
        auto const known = v.what == vertex::type::device           ? made_.devices_.size()
                           : v.what == vertex::type::network_switch ? made_.switches_.size()
                                                                    : 0;
        if (v.number >= known)
            throw invalid_input(v.what == vertex::type::device ? "device " : "switch ", v.number, " as an end: the cluster has ", known,
                                " of them so far");
    }
    std::uint32_t insert(link_ends ends, link_description link, std::string name) {
        validate(link, next_link());
        made_.links_.push_back(link);
        made_.ends_.push_back(ends);
        made_.link_names_.push_back(std::move(name));
        return static_cast<std::uint32_t>(made_.links_.size() - 1);
    }

    cluster made_; ///< all but numbers and routes
    std::unordered_map<std::string, std::uint32_t> first_of_kind_;
    std::unordered_set<std::uint32_t> nodes_;
    std::vector<explicit_route> set_;
    std::vector<std::uint32_t> set_links_;
};

namespace detail {

/// Adds `count` devices, each a node.
inline std::vector<vertex> add_devices(cluster_builder& builder, std::uint64_t count, device_spec const& device) {
    if (count < 1 || count > cluster_builder::max_devices) throw invalid_input(count, " devices: must be from 1 to ", cluster_builder::max_devices);
    std::vector<vertex> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(builder.add_device(device, i));
    return out;
}
} // namespace detail

} // namespace parsearch::topology
