#pragma once
/// The concept `DeviceTopology`: devices, links, and the route between two devices.

#include <concepts>
#include <limits>
#include <cstddef>
#include <string>
#include <utility>

#include <parsearch/concepts/handle.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch {

/// What a search must know of a device. Devices of equal `kind` run equal work in equal time.
struct device_description {
    std::string kind;
    byte_count memory = std::numeric_limits<byte_count>::max(); ///< not set: without limit
    bandwidth host_rate{}; ///< of copies to its host's memory, and as much at once of copies back; zero: not known, and nothing is copied there
    friend bool operator==(device_description const&, device_description const&) = default;
};

/// One direction of a link: `rate` in bytes per second, `latency` per message. `reduction`: that of a link to or from a switch which adds up what
/// comes over its links and sends the sums out over all of them, in bytes per second that such a link carries meanwhile; zero: it does not.
struct link_description {
    bandwidth rate{};
    picoseconds latency{};
    bandwidth reduction{};
    friend bool operator==(link_description const&, link_description const&) = default;
};

namespace detail::device_topology_cpo {

void devices() = delete;
void describe_device() = delete;
void links() = delete;
void describe_link() = delete;
void route() = delete;
void node_of() = delete;
void rings() = delete;

struct devices_fn {
    template <class T> constexpr decltype(auto) operator()(T const& t) const {
        if constexpr (requires { t.devices(); }) return t.devices();
        else return devices(t);
    }
};
struct describe_device_fn {
    template <class T, class D> constexpr decltype(auto) operator()(T const& t, D const& d) const {
        if constexpr (requires { t.describe_device(d); }) return t.describe_device(d);
        else return describe_device(t, d);
    }
};
struct links_fn {
    template <class T> constexpr decltype(auto) operator()(T const& t) const {
        if constexpr (requires { t.links(); }) return t.links();
        else return links(t);
    }
};
struct describe_link_fn {
    template <class T, class L> constexpr decltype(auto) operator()(T const& t, L const& l) const {
        if constexpr (requires { t.describe_link(l); }) return t.describe_link(l);
        else return describe_link(t, l);
    }
};
struct route_fn {
    template <class T, class D> constexpr decltype(auto) operator()(T const& t, D const& from, D const& to) const {
        if constexpr (requires { t.route(from, to); }) return t.route(from, to);
        else return route(t, from, to);
    }
};
struct node_of_fn {
    template <class T, class D> constexpr std::size_t operator()(T const& t, D const& d) const {
        if constexpr (requires { t.node_of(d); }) return static_cast<std::size_t>(t.node_of(d));
        else if constexpr (requires { node_of(t, d); }) return static_cast<std::size_t>(node_of(t, d));
        else return 0;
    }
};
struct rings_fn {
    template <class T> constexpr decltype(auto) operator()(T const& t) const {
        if constexpr (requires { t.rings(); }) return t.rings();
        else return rings(t);
    }
};

template <class T>
concept has_devices = requires(T const& t) { t.devices(); } || requires(T const& t) { devices(t); };
template <class T>
concept has_links = requires(T const& t) { t.links(); } || requires(T const& t) { links(t); };
template <class T>
concept has_rings = requires(T const& t) { t.rings(); } || requires(T const& t) { rings(t); };
template <class T, class D>
concept has_describe_device =
    requires(T const& t, D const& d) { t.describe_device(d); } || requires(T const& t, D const& d) { describe_device(t, d); };
template <class T, class L>
concept has_describe_link = requires(T const& t, L const& l) { t.describe_link(l); } || requires(T const& t, L const& l) { describe_link(t, l); };
template <class T, class D>
concept has_route = requires(T const& t, D const& d) { t.route(d, d); } || requires(T const& t, D const& d) { route(t, d, d); };
} // namespace detail::device_topology_cpo

/// `devices(t)`: the devices, each once. The order is the order in which placements count them.
inline constexpr detail::device_topology_cpo::devices_fn devices{};
/// `describe_device(t, d)`: kind and memory of a device, and its way to its host's memory.
inline constexpr detail::device_topology_cpo::describe_device_fn describe_device{};
/// `links(t)`: the directed links, each once.
inline constexpr detail::device_topology_cpo::links_fn links{};
/// `describe_link(t, l)`: bandwidth and latency of a link.
inline constexpr detail::device_topology_cpo::describe_link_fn describe_link{};
/// `route(t, a, b)`: the links a message from `a` to `b` passes, in order; asked only for `a != b`.
inline constexpr detail::device_topology_cpo::route_fn route{};
/// `node_of(t, d)`: the node (host) of a device. Optional: without it all devices are one node.
inline constexpr detail::device_topology_cpo::node_of_fn node_of{};
/// `rings(t)`: orders of nodes for collectives. Optional: see `HasRings`.
inline constexpr detail::device_topology_cpo::rings_fn rings{};

/// `devices(t)` exists and is a forward range.
template <class T>
concept HasDevices = detail::device_topology_cpo::has_devices<T> && requires(T const& t) {
    { parsearch::devices(t) } -> ForwardRange;
};
/// `links(t)` exists and is a forward range.
template <class T>
concept HasLinks = detail::device_topology_cpo::has_links<T> && requires(T const& t) {
    { parsearch::links(t) } -> ForwardRange;
};

/// The handle by which `T` names a device.
template <HasDevices T> using device_handle_t = range_value_t<decltype(parsearch::devices(std::declval<T const&>()))>;
/// The handle by which `T` names a link.
template <HasLinks T> using link_handle_t = range_value_t<decltype(parsearch::links(std::declval<T const&>()))>;

/// `describe_device(t, d)` exists and converts to `device_description`.
template <class T>
concept DescribesDevices =
    HasDevices<T> && detail::device_topology_cpo::has_describe_device<T, device_handle_t<T>> && requires(T const& t, device_handle_t<T> const& d) {
        { parsearch::describe_device(t, d) } -> std::convertible_to<device_description>;
    };
/// `describe_link(t, l)` exists and converts to `link_description`.
template <class T>
concept DescribesLinks =
    HasLinks<T> && detail::device_topology_cpo::has_describe_link<T, link_handle_t<T>> && requires(T const& t, link_handle_t<T> const& l) {
        { parsearch::describe_link(t, l) } -> std::convertible_to<link_description>;
    };
/// `route(t, a, b)` exists and is an input range of link handles.
template <class T>
concept HasRoutes = HasDevices<T> && HasLinks<T> && detail::device_topology_cpo::has_route<T, device_handle_t<T>> &&
                    requires(T const& t, device_handle_t<T> const& d) {
                        { parsearch::route(t, d, d) } -> InputRange;
                        requires std::convertible_to<range_value_t<decltype(parsearch::route(t, d, d))>, link_handle_t<T>>;
                    };

/// `rings(t)` exists and is a range of ranges of nodes, as `node_of` numbers them: each goes through two or more nodes, each once, from each to the
/// next and from the last to the first. Devices on exactly the nodes of some rings run collectives over all of these at once, an equal part
/// of the bytes on each. Other groups, and all groups of topologies that have no `rings`, run one ring, in device order.
template <class T>
concept HasRings = detail::device_topology_cpo::has_rings<T> && requires(T const& t) {
    { parsearch::rings(t) } -> InputRange;
    requires InputRange<range_value_t<decltype(parsearch::rings(t))>>;
    requires std::convertible_to<range_value_t<range_value_t<decltype(parsearch::rings(t))>>, std::size_t>;
};

/// Devices and the links between them. See docs/concepts/device_topology.md.
template <class T>
concept DeviceTopology = HasDevices<T> && HasLinks<T> && Handle<device_handle_t<T>> && Handle<link_handle_t<T>> && DescribesDevices<T> &&
                         DescribesLinks<T> && HasRoutes<T>;

} // namespace parsearch
