#pragma once
/// A rectangle of a machine: neighbouring nodes, and of each the same neighbouring devices.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>

namespace parsearch::rewrite {

/// The devices `first_device` to `first_device + devices - 1` of each of the nodes `first_node` to `first_node + nodes - 1`.
struct resource_box {
    std::int32_t first_node = 0, nodes = 1;
    std::int32_t first_device = 0, devices = 1; ///< of each node

    friend auto operator<=>(resource_box const&, resource_box const&) = default;

    /// Whether all of `inner` lies in it.
    [[nodiscard]] constexpr bool contains(resource_box const& inner) const noexcept {
        return inner.first_node >= first_node && inner.first_device >= first_device && inner.first_node - first_node <= nodes - inner.nodes &&
               inner.first_device - first_device <= devices - inner.devices;
    }
    /// The number of ways to cut it in two: between two nodes, or between two devices of every node.
    [[nodiscard]] constexpr std::size_t cuts() const noexcept { return static_cast<std::size_t>(nodes - 1) + static_cast<std::size_t>(devices - 1); }
    /// The lower and the upper part of cut number `n` < cuts(): those between nodes first.
    [[nodiscard]] constexpr resource_box lower(std::size_t n) const noexcept {
        auto const across = static_cast<std::size_t>(nodes - 1);
        auto part = *this;
        if (n < across) part.nodes = static_cast<std::int32_t>(n) + 1;
        else part.devices = static_cast<std::int32_t>(n - across) + 1;
        return part;
    }
    [[nodiscard]] constexpr resource_box upper(std::size_t n) const noexcept {
        auto const below = lower(n);
        auto part = *this;
        if (n < static_cast<std::size_t>(nodes - 1)) {
            part.first_node += below.nodes;
            part.nodes -= below.nodes;
        } else {
            part.first_device += below.devices;
            part.devices -= below.devices;
        }
        return part;
    }
};

/// "nodes 0-3, devices 4-7".
[[nodiscard]] inline std::string to_string(resource_box const& b) {
    return text("nodes ", b.first_node, "-", b.first_node + b.nodes - 1, ", devices ", b.first_device, "-", b.first_device + b.devices - 1);
}

/// Checks that `b` holds at least one device, begins at 0 or later and ends, counted as devices, within 31 bits. Throws `invalid_input`
/// naming `where`, the value and the rule.
void validate(resource_box const& b, std::string_view where);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/resource_box.ipp>
#endif
