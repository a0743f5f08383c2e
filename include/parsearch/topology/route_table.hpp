#pragma once
/// The routes between all pairs of devices, in one table.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace parsearch::topology {

/// The links that messages pass between devices. A value, never changed after; copies share its memory: 4 bytes per pair of devices and per hop.
class route_table {
  public:
    /// Of no devices, or of one.
    route_table() = default;
    /// Of `devices` devices: `links` of all pairs, by (from, to), and `first`, where those of each pair begin, and the end.
    route_table(std::size_t devices, std::vector<std::uint32_t> first, std::vector<std::uint32_t> links)
        : made_(std::make_shared<arrays const>(arrays{devices, std::move(first), std::move(links)})) {}

    /// Those from device `a` to device `b`, in order; empty where `a == b`.
    [[nodiscard]] std::span<std::uint32_t const> operator()(std::size_t a, std::size_t b) const noexcept {
        if (!made_) return {};
        auto const* const first = made_->first.data() + (a * made_->devices + b);
        return {made_->links.data() + first[0], first[1] - first[0]};
    }

    friend bool operator==(route_table const& a, route_table const& b) noexcept {
        return a.made_ == b.made_ || (a.made_ && b.made_ && *a.made_ == *b.made_);
    }

  private:
    struct arrays {
        std::size_t devices = 0;
        std::vector<std::uint32_t> first, links;
        friend bool operator==(arrays const&, arrays const&) = default;
    };
    std::shared_ptr<arrays const> made_;
};

} // namespace parsearch::topology
