#pragma once
/// Builds a `cluster`: devices, switches, links; explicit routes, and shortest ones for the other pairs.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
    /// The most devices of a cluster, and the most in each of its groups (`route_table`): there it holds a route for every pair.
    static constexpr std::uint32_t max_devices = 1 << 17, max_group = 1 << 13;

    /// Adds a device on a node (host). Devices of one kind are equal but for their memory.
    vertex add_device(device_spec spec, std::uint32_t node = 0);

    /// Adds a switch: any number of messages pass it, each held up by its links alone.
    vertex add_switch(std::string name) {
        made_.switches_.push_back(std::move(name));
        return {vertex::type::network_switch, static_cast<std::uint32_t>(made_.switches_.size() - 1)};
    }

    /// Adds one direction of a link and returns its number. `rate` is positive, `latency` not negative.
    std::uint32_t add_link(vertex from, vertex to, bandwidth rate, picoseconds latency, std::string name = {}) {
        return add_link(from, to, link_description{rate, latency}, std::move(name));
    }
    std::uint32_t add_link(vertex from, vertex to, link_description const& link, std::string name = {});
    /// Adds both directions, numbered one after the other.
    duplex add_duplex_link(vertex a, vertex b, bandwidth rate, picoseconds latency) {
        auto const forward = add_link(a, b, rate, latency);
        return {forward, add_link(b, a, rate, latency)};
    }
    /// Adds a link without ends, a medium that messages share wherever they come from. Only explicit routes pass it.
    std::uint32_t add_bus(bandwidth rate, picoseconds latency, std::string name) { return insert({}, {rate, latency}, std::move(name)); }

    /// Sets the route from device `a` to device `b`: at least one link, each starting where the one before it ends (a bus joins
    /// anything), from `a` to `b`.
    void set_route(vertex a, vertex b, std::span<std::uint32_t const> links);
    void set_route(vertex a, vertex b, std::initializer_list<std::uint32_t> links) {
        set_route(a, b, std::span<std::uint32_t const>(links.begin(), links.size()));
    }

    /// Adds a ring through two or more nodes that devices were added on, each once: `order` goes from each to the next and from the last to
    /// the first, one direction. Collectives of devices on exactly these nodes run over all such rings at once, an equal part of the bytes on each.
    void add_ring(std::vector<std::uint32_t> order);

    /// The cluster. A pair without an explicit route gets the one of fewest links, among those the one of lowest latency, among
    /// those the one whose link numbers come first. Refuses a topology without devices, a pair of devices that no links join, a route that
    /// was set twice, more than `max_hops` links in all routes together (4 bytes each). Complexity: a breadth-first search per device that
    /// misses a route, which ends when it has them all.
    ///
    /// Where no route is explicit, and without some switch the devices are not all joined, those still joined are the groups of the `route_table`,
    /// and each search ends at that switch: a thousand nodes on a switch take a thousand searches of a node.
    [[nodiscard]] cluster build(std::size_t max_hops = std::numeric_limits<std::uint32_t>::max()) const;

  private:
    struct explicit_route {
        std::uint32_t from, to;
        std::size_t first, size; ///< in set_links_
    };

    /// Shortest routes from one device after another. Vertices are numbered devices first, then switches.
    class searcher {
      public:
        explicit searcher(cluster_builder const& b);

        /// Searches from vertex `source`, level by level, until `wanted` vertices of those for which `wants` are found. Comes only to vertices for
        /// which `may_pass`. In a level the vertices are in the order of their routes' link numbers, so that comparing (position of the vertex
        /// before, link) compares whole routes.
        template <class Wants, class MayPass> void from(std::uint32_t source, std::size_t wanted, Wants const& wants, MayPass const& may_pass);

        [[nodiscard]] bool reached(std::uint32_t v) const noexcept { return reached_[v].level != unreached; }
        /// Adds the links to `to`, which was reached.
        void add_route(std::uint32_t to, link_lists& out);
        [[nodiscard]] std::uint32_t number(vertex v) const noexcept { return v.what == vertex::type::device ? v.number : devices_ + v.number; }
        [[nodiscard]] std::uint32_t vertices() const noexcept { return static_cast<std::uint32_t>(reached_.size()); }

      private:
        static constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();
        static constexpr picoseconds longest = picoseconds::max() / 2; ///< a link takes a day at most, so that no sum overflows
        struct reach {
            std::uint32_t level = unreached;
            picoseconds latency{};
            std::uint32_t position = 0; ///< of the vertex before, in its level
            std::uint32_t link = 0, before = 0;
        };

        cluster_builder const& builder_;
        std::uint32_t devices_, source_ = 0;
        std::vector<std::uint32_t> first_, out_; ///< links out of vertex v: out_[first_[v] ... first_[v + 1])
        std::vector<reach> reached_;             ///< of each vertex
        std::vector<std::uint32_t> touched_;     ///< those that the last search reached
        std::vector<std::uint32_t> links_;       ///< of a route, last first
    };

    /// The routes of all pairs.
    [[nodiscard]] route_table all_pairs(std::size_t max_hops) const;
    /// A switch without which not all devices are joined.
    struct hub {
        std::uint32_t at;                                ///< its vertex
        std::vector<std::uint32_t> set;                  ///< of each vertex, of those that are joined without it
        std::vector<std::uint32_t> group;                ///< of each device
        std::vector<std::vector<std::uint32_t>> members; ///< of each group
    };
    static constexpr std::size_t tried_hubs = 8;
    /// Of the switches of most links the one whose largest group has the fewest devices; of such, the one whose groups differ least. Nothing where
    /// there is none.
    [[nodiscard]] std::optional<hub> find_hub(searcher const& search) const;
    /// The same routes, by way of a switch; nothing where there is none, or some device is not joined to it both ways.
    [[nodiscard]] std::optional<route_table> through_hub(std::size_t max_hops) const;
    [[nodiscard]] std::vector<explicit_route> sorted_routes() const;
    [[nodiscard]] std::string next_link() const { return text("link ", made_.links_.size()); }
    [[nodiscard]] static bool joined(vertex a, vertex b) noexcept { return a.what == vertex::type::bus || b.what == vertex::type::bus || a == b; }
    void check_exists(vertex v) const;
    std::uint32_t insert(link_ends ends, link_description link, std::string name);

    cluster made_; ///< all but numbers and routes
    std::unordered_map<std::string, std::uint32_t> first_of_kind_;
    std::unordered_set<std::uint32_t> nodes_;
    std::vector<explicit_route> set_;
    std::vector<std::uint32_t> set_links_;
};

/// The first `devices` devices of `c`, and what joins them: devices and links as `first_devices` of the topology that `c` is read as numbers them.
/// Precondition: a switch joins all groups of devices (`route_table`).
[[nodiscard]] cluster first_devices(cluster const& c, std::size_t devices);

namespace detail {

/// Adds `count` devices, each a node.
std::vector<vertex> add_devices(cluster_builder& builder, std::uint64_t count, device_spec const& device);
} // namespace detail

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/cluster_builder.ipp>
#endif
