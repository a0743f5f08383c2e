#pragma once
/// The links of a fabric while it is wired: free interfaces, connected parts, links that may go without parting anything.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
    void move(std::uint32_t number, std::uint32_t a, std::uint32_t b);

    /// Joins parts until all servers are connected, which takes a degree of at least two where there are more than two servers. Parts are
    /// joined by free interfaces; a part without any has a link whose ends are connected without it, and that link's ends are used: one
    /// that is no ring's where there is such a one, the last of these. Complexity: O(parts * (servers + links)).
    void connect();

    /// Uses free interfaces: each server with one, in order, is joined to the farthest other such server, the lowest of these, again and again.
    /// A server that is then left with two takes the place of a link that is no ring's, between two other servers: both are joined to
    /// it instead. Complexity: O(free interfaces * (servers + links)).
    void fill();

    /// `neighbours_of` these links.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> neighbours() const { return neighbours_of(servers(), links_); }
    [[nodiscard]] bool connected() const;

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

    void take(std::uint32_t a, std::uint32_t b);
    [[nodiscard]] partition parts() const;
    [[nodiscard]] open_end end_in(partition const& found, std::uint32_t part) const;
    /// The farthest other server with a free interface; `from` where there is none. Servers out of reach are farthest.
    [[nodiscard]] std::uint32_t farthest_free(std::vector<std::vector<std::uint32_t>> const& near, std::uint32_t from) const;

    std::vector<fabric_link> links_;
    std::vector<std::uint32_t> free_;
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/link_graph.ipp>
#endif
