#pragma once
// Rings through all servers along the links of any network between them.

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/disjoint_rings.hpp>

namespace parsearch::fabric::detail {

/// A path that grows into a cycle through all servers.
class growing_cycle {
  public:
    explicit growing_cycle(network const& n);
    /// The most cycles that there can be: each takes two links of every server.
    [[nodiscard]] std::size_t bound() const noexcept {
        auto least = ways_.front().size();
        for (auto const& w : ways_) least = std::min(least, w.size());
        return least / 2;
    }
    void free_links() { used_.assign(used_.size(), false); }
    /// Looks for a cycle along links that no cycle before took. Precondition: three servers or more.
    bool grow(split_mix& rng);
    /// The servers of the cycle just found, from server 0 on.
    [[nodiscard]] std::vector<std::uint32_t> servers() const {
        auto out = path_;
        std::rotate(out.begin(), out.begin() + place_[0], out.end());
        return out;
    }

  private:
    struct way {
        std::uint32_t server = 0, link = 0;
    };
    static constexpr auto outside = std::numeric_limits<std::uint32_t>::max();

    /// Whether every server has two links left, and these lead to all of them; where none has a third, that is the cycle.
    [[nodiscard]] bool has_room();
    static way const& drawn(std::vector<way> const& from, split_mix& rng) { return from[static_cast<std::size_t>(uniform_index(rng, from.size()))]; }
    void enter(std::uint32_t server) {
        place_[server] = static_cast<std::uint32_t>(path_.size());
        path_.push_back(server);
    }
    /// The ways from the end of the path: out of it, and back into it. Answers the link that closes the cycle, if there is one.
    std::uint32_t look_around();
    /// The path from `first` on in the other order.
    void turn_around(std::uint32_t first) {
        std::reverse(path_.begin() + first, path_.end());
        std::reverse(between_.begin() + first, between_.end());
        for (auto i = first; i < path_.size(); ++i) place_[path_[i]] = i;
    }

    std::vector<std::vector<way>> ways_;        ///< from each server
    std::vector<bool> used_;                    ///< links of cycles
    std::vector<std::uint32_t> path_, between_; ///< servers; the links from each to the next
    std::vector<std::uint32_t> place_;          ///< of each server on the path
    std::vector<way> open_{}, inside_{};
};

} // namespace parsearch::fabric::detail

namespace parsearch::fabric::detail {

PARSEARCH_INLINE growing_cycle::growing_cycle(network const& n) : ways_(n.servers), used_(n.links.size()) {
    for (std::uint32_t l = 0; l < n.links.size(); ++l) {
        auto const a = n.links[l].a, b = n.links[l].b;
        if (a >= n.servers || b >= n.servers) continue;
        ways_[a].push_back({b, l});
        ways_[b].push_back({a, l});
    }
}

PARSEARCH_INLINE bool growing_cycle::grow(split_mix& rng) {
    if (!has_room()) return false;
    place_.assign(ways_.size(), outside);
    path_.clear();
    between_.clear();
    enter(static_cast<std::uint32_t>(uniform_index(rng, ways_.size())));
    // Random networks of degree 3 and more take some n log n turns. What needs far more is given up.
    for (std::size_t turn = 0, turns = 1000 + 100 * ways_.size(); turn < turns; ++turn) {
        std::uint32_t const closing = look_around();
        if (closing != outside) {
            between_.push_back(closing);
            for (auto const l : between_) used_[l] = true;
            return true;
        }
        if (!open_.empty()) {
            auto const& w = drawn(open_, rng);
            between_.push_back(w.link);
            enter(w.server);
        } else if (!inside_.empty() && !bernoulli(rng, 0.05)) {
            auto const& w = drawn(inside_, rng);
            between_[place_[w.server]] = w.link;
            turn_around(place_[w.server] + 1);
        } else {
            turn_around(0);
        }
    }
    return false;
}

PARSEARCH_INLINE bool growing_cycle::has_room() {
    for (auto const& all : ways_)
        if (std::count_if(all.begin(), all.end(), [&](way const& w) { return !used_[w.link]; }) < 2) return false;
    place_.assign(ways_.size(), outside);
    path_.assign(1, 0);
    place_[0] = 0;
    for (std::size_t i = 0; i < path_.size(); ++i)
        for (auto const& w : ways_[path_[i]])
            if (!used_[w.link] && place_[w.server] == outside) enter(w.server);
    return path_.size() == ways_.size();
}

PARSEARCH_INLINE std::uint32_t growing_cycle::look_around() {
    open_.clear();
    inside_.clear();
    for (auto const& w : ways_[path_.back()]) {
        if (used_[w.link]) continue;
        if (place_[w.server] == outside) open_.push_back(w);
        else if (place_[w.server] + std::size_t{2} < path_.size()) inside_.push_back(w);
        if (place_[w.server] == 0 && path_.size() == ways_.size()) return w.link;
    }
    return outside;
}

} // namespace parsearch::fabric::detail

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> disjoint_rings(network const& n, ring_search_options const& options) {
    validate(n);
    if (options.attempts < 1) throw invalid_input("disjoint_rings: attempts is 0: must be at least 1");
    std::vector<std::vector<std::uint32_t>> out;
    if (n.servers < 2) return out;
    if (n.servers == 2) {
        for (auto const& l : n.links)
            if (l.a < 2 && l.b < 2 && out.size() < options.most) out.push_back({0, 1});
        return out;
    }
    detail::growing_cycle path(n);
    auto const enough = std::min<std::size_t>(path.bound(), options.most);
    split_mix rng(options.seed);
    for (std::uint32_t attempt = 0; attempt < options.attempts && out.size() < 2 * enough; ++attempt) {
        std::vector<std::vector<std::uint32_t>> made;
        path.free_links();
        while (made.size() < 2 * enough && path.grow(rng)) {
            made.push_back(path.servers());
            made.push_back(made.back());
            std::reverse(made.back().begin() + 1, made.back().end());
        }
        if (made.size() > out.size()) out = std::move(made);
    }
    return out;
}

} // namespace parsearch::fabric
