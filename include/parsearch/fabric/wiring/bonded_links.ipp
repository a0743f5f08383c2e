#pragma once
// Wirings in which several interfaces of two servers are one link.

#include <algorithm>
#include <cstddef>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/wiring/bonded_links.hpp>

namespace parsearch::fabric {

namespace detail {

/// Interfaces given to pairs of servers.
class bundles {
  public:
    bundles(std::uint32_t servers, std::uint32_t degree) : servers_(servers), free_(servers, degree), wires_(std::size_t{servers} * servers, 0) {}

    [[nodiscard]] std::uint32_t wires(std::uint32_t a, std::uint32_t b) const { return wires_[std::size_t{a} * servers_ + b]; }
    [[nodiscard]] std::uint32_t free(std::uint32_t a) const { return free_[a]; }
    void join(std::uint32_t a, std::uint32_t b) { change(a, b, 1); }
    void part(std::uint32_t a, std::uint32_t b) { change(a, b, ~std::uint32_t{0}); }
    /// The servers that are connected with each other, parts by their least member.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> parts() const;
    /// A link of a part that may lose a wire without cutting it in two. Precondition: there is one.
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> spare(std::vector<std::uint32_t> const& part);
    /// The network of all links.
    [[nodiscard]] network made(link_description const& link) const;

  private:
    void change(std::uint32_t a, std::uint32_t b, std::uint32_t by) {
        wires_[std::size_t{a} * servers_ + b] += by;
        wires_[std::size_t{b} * servers_ + a] += by;
        free_[a] -= by;
        free_[b] -= by;
    }

    std::uint32_t servers_;
    std::vector<std::uint32_t> free_, wires_;
};

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> bundles::parts() const {
    joined_sets sets(servers_);
    for (std::uint32_t a = 0; a < servers_; ++a)
        for (auto b = a + 1; b < servers_; ++b)
            if (wires(a, b) > 0) sets.join(a, b);
    std::vector<std::vector<std::uint32_t>> of(servers_);
    for (std::uint32_t a = 0; a < servers_; ++a) of[sets.root(a)].push_back(a);
    std::erase_if(of, [](auto const& p) { return p.empty(); });
    return of;
}

PARSEARCH_INLINE std::pair<std::uint32_t, std::uint32_t> bundles::spare(std::vector<std::uint32_t> const& part) {
    std::pair<std::uint32_t, std::uint32_t> most{};
    std::uint32_t many = 1;
    for (auto const a : part)
        for (auto const b : part)
            if (a < b && wires(a, b) > many) many = wires(a, b), most = {a, b};
    if (many > 1) return most;
    auto const before = parts().size();
    for (auto const a : part)
        for (auto const b : part) {
            if (a >= b || wires(a, b) == 0) continue;
            this->part(a, b);
            bool const whole = parts().size() == before;
            join(a, b);
            if (whole) return {a, b};
        }
    return most;
}

PARSEARCH_INLINE network bundles::made(link_description const& link) const {
    network out{.name = "bonded links", .servers = servers_};
    for (std::uint32_t a = 0; a < servers_; ++a)
        for (auto b = a + 1; b < servers_; ++b) {
            if (wires(a, b) > 0) out.links.push_back(bundle_of({a, b, link}, wires(a, b)));
        }
    return out;
}

/// What each pair sends, in the larger direction, with all-reduces along rings in ascending order.
inline std::vector<double> bytes_of_pairs(demand const& d) {
    auto const n = d.servers();
    std::vector<double> out(std::size_t{n} * n, 0);
    for (std::uint32_t a = 0; a < n; ++a)
        for (auto b = a + 1; b < n; ++b) out[std::size_t{a} * n + b] = static_cast<double>(std::max(d.between(a, b), d.between(b, a)));
    for (auto const& g : d.groups()) {
        auto const k = g.members.size();
        auto const each = static_cast<double>(g.bytes) * static_cast<double>(k - 1) / static_cast<double>(k);
        for (std::size_t i = 0; i < k; ++i) { // two are neighbours twice
            auto const [a, b] = std::minmax(g.members[i], g.members[(i + 1) % k]);
            out[std::size_t{a} * n + b] += each;
        }
    }
    return out;
}

/// Joins the parts in a circle.
inline void connect(bundles& made, std::uint32_t degree) {
    auto const parts = made.parts();
    if (parts.size() < 2) return;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends; // of each part
    for (auto const& part : parts) {
        std::vector<std::uint32_t> free;
        for (auto const a : part)
            for (std::uint32_t i = 0; i < std::min(made.free(a), degree); ++i) free.push_back(a);
        if (free.size() < 2) {
            ends.push_back(made.spare(part));
            made.part(ends.back().first, ends.back().second);
        } else {
            ends.emplace_back(free.front(), free.back());
        }
    }
    for (std::size_t i = 0; i < ends.size(); ++i) made.join(ends[i].second, ends[(i + 1) % ends.size()].first);
}

/// Joins servers with interfaces left, each with the farthest of them.
inline void join_left(bundles& made, std::uint32_t servers, link_description const& link) {
    for (std::uint32_t a = 0; a < servers; ++a)
        while (made.free(a) > 0) {
            auto const now = made.made(link);
            auto const hops = hops_from(a, neighbours_of(servers, now.links));
            auto far = a;
            for (auto b = a + 1; b < servers; ++b)
                if (made.free(b) > 0 && (far == a || hops[b] > hops[far])) far = b;
            if (far == a) break;
            made.join(a, far);
        }
}

} // namespace detail

PARSEARCH_INLINE network bonded_links(demand const& d, std::uint32_t degree, link_description const& link) {
    auto const n = d.servers();
    if ((n > 1 && degree < 1) || (n > 2 && degree < 2))
        throw invalid_input("bonded links of ", n, " servers with ", degree, " interfaces: must be at least ", n > 2 ? 2 : 1);
    auto const bytes = detail::bytes_of_pairs(d);
    detail::bundles made(n, degree);
    using share = std::tuple<double, std::uint32_t, std::uint32_t>; // of a wire; the servers, the least last, so that they are first of equals
    std::priority_queue<share> next;
    for (std::uint32_t a = 0; a < n; ++a)
        for (auto b = a + 1; b < n; ++b)
            if (auto const all = bytes[std::size_t{a} * n + b]; all > 0) next.emplace(all, n - a, n - b);
    while (!next.empty()) {
        auto const a = n - std::get<1>(next.top()), b = n - std::get<2>(next.top());
        next.pop();
        if (made.free(a) == 0 || made.free(b) == 0) continue;
        made.join(a, b);
        next.emplace(bytes[std::size_t{a} * n + b] / (made.wires(a, b) + 1.0), n - a, n - b);
    }
    if (n == 2)
        while (made.free(0) > 0) made.join(0, 1);
    detail::connect(made, degree);
    detail::join_left(made, n, link);
    auto out = made.made(link);
    for (auto const& g : d.groups()) {
        auto const k = g.members.size();
        bool all = true;
        for (std::size_t i = 0; i < k; ++i) all = all && made.wires(g.members[i], g.members[(i + 1) % k]) > 0;
        if (!all) continue;
        out.rings.push_back(g.members);
        if (k > 2) out.rings.emplace_back(g.members.rbegin(), g.members.rend());
    }
    return out;
}

} // namespace parsearch::fabric
