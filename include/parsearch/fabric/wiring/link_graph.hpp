#pragma once
/// The links of a fabric while it is wired: free interfaces, connected parts, links that may go without parting anything.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/fabric/network/hops.hpp>

namespace parsearch::fabric {

/// What a link was made for.
enum class link_purpose : std::uint8_t {
    ring,           ///< a hop of a ring that all-reduces
    point_to_point, ///< a matched pair of servers
    joint           ///< connects parts, uses interfaces that are left
};

/// A duplex link between two servers: it takes one interface of each.
struct fabric_link {
    std::uint32_t a = 0, b = 0;
    link_purpose purpose = link_purpose::joint;
    friend bool operator==(fabric_link const&, fabric_link const&) = default;
};

/// Links between servers of `degree` interfaces each. Several links may join the same two servers.
class link_graph {
  public:
    link_graph(std::uint32_t servers, std::uint32_t degree) : free_(servers, degree) {}

    [[nodiscard]] std::uint32_t servers() const noexcept { return static_cast<std::uint32_t>(free_.size()); }
    [[nodiscard]] std::vector<fabric_link> const& links() const noexcept { return links_; }
    /// The interfaces of a server that no link takes.
    [[nodiscard]] std::uint32_t free(std::uint32_t server) const noexcept { return free_[server]; }

    /// Adds a link and returns its number. Throws `std::logic_error` where it would join a server to itself or one has no free interface.
    std::uint32_t add(std::uint32_t a, std::uint32_t b, link_purpose purpose) {
        take(a, b);
        links_.push_back({a, b, purpose});
        return static_cast<std::uint32_t>(links_.size() - 1);
    }
    /// Makes link `number` join other servers, for `link_purpose::joint`.
    void move(std::uint32_t number, std::uint32_t a, std::uint32_t b) {
        ++free_[links_[number].a];
        ++free_[links_[number].b];
        take(a, b);
        links_[number] = {a, b, link_purpose::joint};
    }

    /// Joins parts until all servers are connected, which takes a degree of at least two where there are more than two servers. Parts are
    /// joined by free interfaces; a part without any has a link whose ends are connected without it, and that link's ends are used: one
    /// that is no ring's where there is such a one, the last of these. Complexity: O(parts * (servers + links)).
    void connect() {
        for (;;) {
            auto const found = parts();
            auto other = std::uint32_t{1};
            while (other < servers() && found.root[other] == found.root[0]) ++other;
            if (other >= servers()) return;
            auto const first = end_in(found, found.root[0]), second = end_in(found, found.root[other]);
            if ((first.server == none && first.link == none) || (second.server == none && second.link == none))
                throw std::logic_error("fabric: a part of it has neither a free interface nor a link to spare");
            if (first.link == none && second.link == none) {
                add(first.server, second.server, link_purpose::joint);
            } else if (first.link != none && second.link != none) {
                auto const x = links_[first.link], y = links_[second.link];
                links_[first.link] = {x.a, y.a, link_purpose::joint};
                links_[second.link] = {x.b, y.b, link_purpose::joint};
            } else {
                auto const link = first.link != none ? first.link : second.link;
                move(link, links_[link].a, first.link != none ? second.server : first.server);
            }
        }
    }

    /// Uses free interfaces: each server with one, in order, is joined to the farthest other such server, the lowest of these, again and again.
    /// A server that is then left with two takes the place of a link that is no ring's, between two other servers: both are joined to
    /// it instead. Complexity: O(free interfaces * (servers + links)).
    void fill() {
        auto near = neighbours();
        for (std::uint32_t server = 0; server < servers(); ++server)
            while (free_[server] > 0) {
                auto const other = farthest_free(near, server);
                if (other == server) break;
                add(server, other, link_purpose::joint);
                near[server].push_back(other);
                near[other].push_back(server);
            }
        for (std::uint32_t server = 0; server < servers(); ++server)
            for (auto number = static_cast<std::uint32_t>(links_.size()); number-- > 0 && free_[server] >= 2;) {
                auto const link = links_[number];
                if (link.purpose == link_purpose::ring || link.a == server || link.b == server) continue;
                move(number, link.a, server);
                add(server, link.b, link_purpose::joint);
            }
    }

    /// `neighbours_of` these links.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> neighbours() const { return neighbours_of(servers(), links_); }
    [[nodiscard]] bool connected() const {
        auto const found = parts();
        for (auto const root : found.root)
            if (root != found.root[0]) return false;
        return true;
    }

    /// Says what a link is for from now on.
    void mark(std::uint32_t number, link_purpose purpose) { links_[number].purpose = purpose; }

  private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    struct partition {
        std::vector<std::uint32_t> root;  ///< of each server: the same in a part
        std::vector<std::uint32_t> spare; ///< links that closed a cycle when added after those before them, rings first
    };
    /// Where a part can take another link: at a server with a free interface, or at the ends of a link.
    struct open_end {
        std::uint32_t server = none, link = none; ///< one of the two, or neither: the part can take none
    };

    void take(std::uint32_t a, std::uint32_t b) {
        if (a == b || free_[a] == 0 || free_[b] == 0)
            throw std::logic_error(text("fabric: a link of servers ", a, " and ", b, " with ", free_[a], " and ", free_[b], " free interfaces"));
        --free_[a];
        --free_[b];
    }
    [[nodiscard]] partition parts() const {
        partition out;
        joined_sets sets(servers());
        for (bool const rings : {true, false})
            for (std::uint32_t number = 0; number < links_.size(); ++number) {
                auto const& link = links_[number];
                if ((link.purpose == link_purpose::ring) != rings) continue;
                if (!sets.join(link.a, link.b)) out.spare.push_back(number);
            }
        for (std::uint32_t v = 0; v < servers(); ++v) out.root.push_back(sets.root(v));
        return out;
    }
    [[nodiscard]] open_end end_in(partition const& found, std::uint32_t part) const {
        for (std::uint32_t v = 0; v < servers(); ++v)
            if (found.root[v] == part && free_[v] > 0) return {v, none};
        for (auto i = found.spare.size(); i-- > 0;)
            if (found.root[links_[found.spare[i]].a] == part) return {none, found.spare[i]};
        return {};
    }
    /// The farthest other server with a free interface; `from` where there is none. Servers out of reach are farthest.
    [[nodiscard]] std::uint32_t farthest_free(std::vector<std::vector<std::uint32_t>> const& near, std::uint32_t from) const {
        auto const distance = hops_from(from, near);
        auto out = from;
        for (std::uint32_t v = 0; v < servers(); ++v)
            if (free_[v] > 0 && distance[v] > distance[out]) out = v;
        return out;
    }

    std::vector<fabric_link> links_;
    std::vector<std::uint32_t> free_;
};

} // namespace parsearch::fabric
