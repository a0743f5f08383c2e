#pragma once
/// Reads any `DeviceTopology` once into dense arrays, checked: what cost models and simulators run on.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/topology/route_table.hpp>

namespace parsearch::topology {

/// A device topology in arrays. Devices are numbered 0..n-1 in the order of `devices(t)`, links 0..m-1 in that of `links(t)`.
struct dense_topology {
    std::vector<device_description> devices;
    std::vector<std::uint32_t> kind; ///< of each device; equal numbers exactly where the kinds are equal, counted from 0 by first use
    std::vector<std::uint32_t> node; ///< of each device, counted from 0 by first use
    std::vector<link_description> links;
    route_table routes{};
    std::vector<std::vector<std::uint32_t>> rings{}; ///< orders of nodes, numbered as in `node`: see `HasRings`; may be empty

    friend bool operator==(dense_topology const&, dense_topology const&) = default;
    /// The number of devices.
    [[nodiscard]] std::size_t size() const noexcept { return devices.size(); }
    /// The links that a message from device `a` to device `b` passes, in order; empty where `a == b`.
    [[nodiscard]] route_links route(std::size_t a, std::size_t b) const noexcept { return routes(a, b); }
};

/// A dense topology and the handles of its devices and links in the topology it was read from.
template <class DeviceHandle, class LinkHandle> struct topology_reading {
    dense_topology topology;
    std::vector<DeviceHandle> devices;
    std::vector<LinkHandle> links;
};

/// Checks bandwidth (positive, finite), latency and rate of reduction (not negative) of a link. Throws `invalid_input` that starts with `where`.
void validate(link_description const& link, std::string_view where);

namespace detail {

/// Numbers values from 0 in the order of their first use.
template <class Value> class numbering {
  public:
    std::uint32_t operator()(Value const& value) { return seen_.try_emplace(value, static_cast<std::uint32_t>(seen_.size())).first->second; }
    /// The number of a value, where it was used.
    [[nodiscard]] std::optional<std::uint32_t> find(Value const& value) const {
        auto const at = seen_.find(value);
        return at == seen_.end() ? std::nullopt : std::optional(at->second);
    }

  private:
    std::unordered_map<Value, std::uint32_t> seen_;
};

/// Finds the number of a handle. Where the handles are the numbers 0, 1, 2, ... themselves (the common case) there is no map.
template <class Handle> class handle_numbers {
  public:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    /// Refuses a handle that comes twice; `what` is "devices" or "links".
    handle_numbers(std::vector<Handle> const& handles, std::string_view what) : size_(handles.size()), plain_(counts(handles)) {
        if (plain_) return;
        for (std::uint32_t i = 0; i < handles.size(); ++i)
            if (auto const [at, fresh] = map_.emplace(handles[i], i); !fresh)
                throw invalid_input(what, "(topology) names number ", at->second, said_of_handle(handles[i]), " again as number ", i,
                                    ": each must appear once");
    }
    [[nodiscard]] std::uint32_t operator()(Handle const& handle) const {
        if constexpr (std::integral<Handle>)
            if (plain_) return handle >= 0 && static_cast<std::size_t>(handle) < size_ ? static_cast<std::uint32_t>(handle) : none;
        auto const at = map_.find(handle);
        return at == map_.end() ? none : at->second;
    }

  private:
    [[nodiscard]] static bool counts(std::vector<Handle> const& handles) {
        if constexpr (std::integral<Handle>) {
            for (std::size_t i = 0; i < handles.size(); ++i)
                if (handles[i] < 0 || static_cast<std::size_t>(handles[i]) != i) return false;
            return true;
        } else {
            return false;
        }
    }

    std::size_t size_;
    bool plain_;
    std::unordered_map<Handle, std::uint32_t> map_;
};

inline std::string route_name(dense_topology const& t, std::size_t a, std::size_t b) {
    return text("route from device ", a, " (", t.devices[a].kind, ") to device ", b, " (", t.devices[b].kind, ')');
}
} // namespace detail

namespace detail {

/// `rings(t)` with the nodes numbered by `node`, checked.
template <class T> [[nodiscard]] std::vector<std::vector<std::uint32_t>> read_rings(T const& t, numbering<std::size_t> const& node) {
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::uint32_t> last; // of each node: 1 + the last ring that passed it
    for (auto const& order : parsearch::rings(t)) {
        auto const number = static_cast<std::uint32_t>(out.size());
        auto& ring = out.emplace_back();
        for (auto const& at : order) {
            auto const known = node.find(static_cast<std::size_t>(at));
            if (!known) throw invalid_input("ring ", number, " of nodes passes node ", static_cast<std::size_t>(at), ": no device is on it");
            if (last.size() <= *known) last.resize(*known + std::size_t{1}, 0);
            if (last[*known] == number + 1)
                throw invalid_input("ring ", number, " of nodes passes node ", static_cast<std::size_t>(at), " twice: each at most once");
            last[*known] = number + 1;
            ring.push_back(*known);
        }
        if (ring.size() < 2) throw invalid_input("ring ", number, " of nodes has ", ring.size(), " nodes: must have at least two");
    }
    return out;
}
} // namespace detail

namespace detail {

/// A topology whose handles are numbers, with a table of its routes: it was checked when it was made.
template <class T>
concept HasRouteTable = requires(T const& t) {
    { t.routes() } -> std::same_as<route_table const&>;
};

/// The routes of `t`, checked.
template <class T, class Reading, class Numbers> [[nodiscard]] route_table read_routes(T const& t, Reading const& read, Numbers const& number) {
    std::size_t const n = read.devices.size();
    link_lists pairs;
    pairs.reserve(n * n);
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b, pairs.end_list()) {
            if (a == b) continue;
            auto const before = pairs.links();
            for (auto const& l : parsearch::route(t, read.devices[a], read.devices[b])) {
                auto const link = number(l);
                if (link == number.none)
                    throw invalid_input(route_name(read.topology, a, b), ": hop ", pairs.links() - before,
                                        " is a link that links(topology) does not name", said_of_handle(link_handle_t<T>(l)));
                pairs.add(link);
            }
            if (pairs.links() == before)
                throw invalid_input(route_name(read.topology, a, b), " is empty: two devices are joined by at least one link");
            if (pairs.links() >= number.none) throw invalid_input(route_name(read.topology, a, b), ": more than 2^32 hops in all routes together");
        }
    return {n, std::move(pairs)};
}
} // namespace detail

/// Reads and checks `t`. Throws `invalid_input` on an empty topology, a device or link named twice, negative memory, a rate to a
/// host that is negative, a bandwidth that is not positive, a negative latency, an empty route between two devices, a route over a link that
/// `links(t)` does not name, a ring that breaks the rules of `HasRings`; the message counts devices and links from 0. Complexity: O(devices^2 *
/// length of a route), of a `cluster` O(devices + links).
template <DeviceTopology T> [[nodiscard]] topology_reading<device_handle_t<T>, link_handle_t<T>> read_topology(T const& t) {
    topology_reading<device_handle_t<T>, link_handle_t<T>> out;
    auto& dense = out.topology;
    detail::numbering<std::string> kinds;
    detail::numbering<std::size_t> nodes;
    for (auto const& d : parsearch::devices(t)) {
        out.devices.push_back(d);
        dense.devices.push_back(parsearch::describe_device(t, d));
        auto const& description = dense.devices.back();
        if (description.kind.empty())
            throw invalid_input("device ", out.devices.size() - 1, " has an empty kind: devices that differ must have kinds that differ");
        if (description.memory < 0)
            throw invalid_input("device ", out.devices.size() - 1, " (", description.kind, ") has a memory of ", description.memory,
                                " bytes: must not be negative");
        if (auto const rate = description.host_rate.bytes_per_second; !(rate >= 0) || rate > std::numeric_limits<double>::max())
            throw invalid_input("device ", out.devices.size() - 1, " (", description.kind, ") copies ", rate,
                                " bytes per second to its host: must be finite and not negative");
        dense.kind.push_back(kinds(description.kind));
        dense.node.push_back(nodes(parsearch::node_of(t, d)));
    }
    if (out.devices.empty()) throw invalid_input("the device topology has no devices: at least one is needed");
    if constexpr (HasRings<T>) dense.rings = detail::read_rings(t, nodes);
    (void)detail::handle_numbers<device_handle_t<T>>(out.devices, "devices");
    for (auto const& l : parsearch::links(t)) {
        out.links.push_back(l);
        dense.links.push_back(parsearch::describe_link(t, l));
        validate(dense.links.back(), text("link ", out.links.size() - 1));
    }
    detail::handle_numbers<link_handle_t<T>> const number(out.links, "links");

    if constexpr (detail::HasRouteTable<T>) dense.routes = t.routes();
    else dense.routes = detail::read_routes(t, out, number);
    return out;
}

/// `t` without the devices that are not `used`, whose links stay; those left are numbered in order, and nodes and kinds by first use. Rings pass by
/// nodes without devices. Precondition: one flag per device, some true. Complexity: that of `route_table::part`.
[[nodiscard]] dense_topology part_of(dense_topology const& t, std::vector<bool> const& used);

/// The first `devices` devices of `t`, and the links between them, numbered in order. Rings stay away. Complexity: linear in links, and in routes of
/// the devices within their groups.
[[nodiscard]] dense_topology first_devices(dense_topology const& t, std::size_t devices);

/// How many devices each node of `t` has, where nodes have as many and devices are numbered node by node; else 0.
[[nodiscard]] std::size_t devices_per_node(dense_topology const& t);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/dense_topology.ipp>
#endif
