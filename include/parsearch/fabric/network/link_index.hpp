#pragma once
/// Finds links by their ends.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/hops.hpp>

namespace parsearch::fabric {

/// One direction of a link: 2 * link from its end `a` to `b`, 2 * link + 1 back.
using link_direction = std::uint32_t;

/// Finds the links that join two vertices.
class link_index {
  public:
    /// Links out of a vertex.
    struct entry {
        std::uint32_t from, to;
        link_direction direction;
        auto operator<=>(entry const&) const = default;
    };

    /// `links` are those of a fabric or network of `vertices` vertices. Complexity: O(links log links).
    template <LinkRange Links> link_index(std::uint32_t vertices, Links const& links) : first_(vertices + std::size_t{1}, 0) {
        std::uint32_t number = 0;
        for (auto const& l : links) {
            out_.push_back({l.a, l.b, 2 * number});
            out_.push_back({l.b, l.a, 2 * number + 1});
            ++number;
        }
        std::sort(out_.begin(), out_.end());
        for (auto const& e : out_) ++first_[e.from + 1];
        for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    }

    [[nodiscard]] std::uint32_t vertices() const noexcept { return static_cast<std::uint32_t>(first_.size() - 1); }
    /// The links out of a vertex, by their other ends, then by number.
    [[nodiscard]] std::span<entry const> out_of(std::uint32_t from) const noexcept {
        return std::span(out_).subspan(first_[from], first_[from + 1] - first_[from]);
    }
    /// The links from one vertex to another; empty where there are none. O(log links of a vertex + their number).
    [[nodiscard]] std::span<entry const> all_between(std::uint32_t from, std::uint32_t to) const;
    /// The direction of a link that leads from one vertex to another; of several the (turn mod their number)-th. Precondition: there is one.
    [[nodiscard]] link_direction between(std::uint32_t from, std::uint32_t to, std::uint64_t turn = 0) const {
        auto const all = all_between(from, to);
        return all[static_cast<std::size_t>(turn % all.size())].direction;
    }

  private:
    std::vector<entry> out_;
    std::vector<std::size_t> first_; ///< in out_, of each vertex
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/link_index.ipp>
#endif
