#pragma once
/// What the traffic of an iteration puts on the links of a fabric.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/fabric/demand.hpp>
#include <parsearch/fabric/rings.hpp>
#include <parsearch/fabric/topology_finder.hpp>

namespace parsearch::fabric {

/// One direction of a link: 2 * link from its end `a` to `b`, 2 * link + 1 back.
using link_direction = std::uint32_t;

/// Finds the links that join two servers.
class link_index {
  public:
    /// `links` are those of a fabric of `servers` servers. Complexity: O(links log links).
    link_index(std::uint32_t servers, std::span<fabric_link const> links) : first_(servers + std::size_t{1}, 0) {
        for (std::uint32_t l = 0; l < links.size(); ++l) {
            out_.push_back({links[l].a, links[l].b, 2 * l});
            out_.push_back({links[l].b, links[l].a, 2 * l + 1});
        }
        std::sort(out_.begin(), out_.end());
        for (auto const& e : out_) ++first_[e.from + 1];
        for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    }

    /// The direction of a link that leads from one server to another; of several the (turn mod their number)-th. Precondition: there is one.
    [[nodiscard]] link_direction between(std::uint32_t from, std::uint32_t to, std::size_t turn = 0) const {
        auto const begin = out_.begin() + static_cast<std::ptrdiff_t>(first_[from]);
        auto const end = out_.begin() + static_cast<std::ptrdiff_t>(first_[from + 1]);
        auto const first = std::lower_bound(begin, end, entry{from, to, 0});
        std::size_t count = 0;
        for (auto at = first; at != end && at->to == to; ++at) ++count;
        return (first + static_cast<std::ptrdiff_t>(turn % count))->direction;
    }
    /// The links that a message from one server to another passes; messages of different pairs take turns on parallel links.
    [[nodiscard]] std::vector<link_direction> route(forwarding_table const& routes, std::uint32_t from, std::uint32_t to) const {
        std::vector<link_direction> out;
        for (auto at = from; at != to;) {
            auto const next = routes.next(at, to);
            out.push_back(between(at, next, std::size_t{from} + to));
            at = next;
        }
        return out;
    }

  private:
    struct entry {
        std::uint32_t from, to;
        link_direction direction;
        auto operator<=>(entry const&) const = default;
    };
    std::vector<entry> out_;
    std::vector<std::size_t> first_; ///< in out_, of each server
};

/// Bytes on each direction of each link.
struct link_load {
    std::vector<byte_count> all_reduce, point_to_point; ///< by `link_direction`
    byte_count demanded = 0;                            ///< the bytes on the wire if every hop had a link of its own
    /// The bytes on a direction.
    [[nodiscard]] byte_count total(link_direction l) const { return all_reduce[l] + point_to_point[l]; }
    /// The most bytes on a direction.
    [[nodiscard]] byte_count busiest() const {
        byte_count out = 0;
        for (link_direction l = 0; l < all_reduce.size(); ++l) out = std::max(out, total(l));
        return out;
    }
    /// Bytes that links carry per byte demanded: 1 where nothing takes a detour (and where there is no traffic).
    [[nodiscard]] double bandwidth_tax() const {
        double carried = 0;
        for (link_direction l = 0; l < all_reduce.size(); ++l) carried += static_cast<double>(total(l));
        return demanded == 0 ? 1 : carried / static_cast<double>(demanded);
    }
};

/// The load of demand `d` on the fabric that was found for it (or another of as many servers with a ring for each group, the groups in the same
/// order). The bytes of an all-reduce are split evenly over the directed rings of its group: each ring is run both ways, one of two members once.
/// Hops without a link and point-to-point bytes take the routes. Throws `invalid_input` on a demand that does not fit the rings.
[[nodiscard]] inline link_load load_of(found_topology const& t, demand const& d) {
    if (d.servers() != t.servers) throw invalid_input("load of a demand of ", d.servers(), " servers on a fabric of ", t.servers);
    link_index const index(t.servers, t.links);
    link_load out;
    out.all_reduce.assign(2 * t.links.size(), 0);
    out.point_to_point = out.all_reduce;
    out.demanded = d.all_reduce_bytes() + d.point_to_point_bytes();
    std::vector<std::vector<group_ring const*>> rings(d.groups().size());
    for (auto const& ring : t.rings) {
        auto sorted = ring.order;
        std::sort(sorted.begin(), sorted.end());
        if (ring.group >= rings.size() || sorted != d.groups()[ring.group].members)
            throw invalid_input("load: the fabric has a ring for group ", ring.group, ", the demand has no such group of these members");
        rings[ring.group].push_back(&ring);
    }
    for (std::size_t g = 0; g < rings.size(); ++g) {
        if (rings[g].empty()) throw invalid_input("load: the fabric has no ring for group ", g, " of the demand");
        auto const size = d.groups()[g].members.size();
        std::size_t const ways = size > 2 ? 2 : 1;
        auto const parts = split_evenly(d.groups()[g].bytes, ways * rings[g].size());
        for (std::size_t part = 0; part < parts.size(); ++part) {
            auto const& ring = *rings[g][part / ways];
            bool const back = part % ways == 1;
            auto const bytes = ring_traffic(parts[part], size);
            for (std::size_t i = 0; i < size; ++i) {
                // Backwards, position i of the directed ring is order[size - 1 - i]: its hop is that of order[size - 2 - i], the other way.
                auto const from = ring.order[back ? size - 1 - i : i];
                auto const to = ring.order[back ? (2 * size - 2 - i) % size : (i + 1) % size];
                auto const link = ring.links[back ? (2 * size - 2 - i) % size : i];
                if (link != no_link)
                    out.all_reduce[2 * link + (t.links[link].a == from ? 0 : 1)] += bytes[i];
                else
                    for (auto const l : index.route(t.routes, from, to)) out.all_reduce[l] += bytes[i];
            }
        }
    }
    for (std::uint32_t a = 0; a < t.servers; ++a)
        for (std::uint32_t b = 0; b < t.servers; ++b)
            if (a != b && d.between(a, b) > 0)
                for (auto const l : index.route(t.routes, a, b)) out.point_to_point[l] += d.between(a, b);
    return out;
}

} // namespace parsearch::fabric
