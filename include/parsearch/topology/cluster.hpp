#pragma once
/// The library's own device topology: devices, switches, links, and a route for every pair of devices.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/topology/device.hpp>
#include <parsearch/topology/route_table.hpp>

namespace parsearch::topology {

/// An end of a link: a device, a switch, or nowhere in particular (a bus that several devices share).
struct vertex {
    enum class type : std::uint8_t { device, network_switch, bus };
    type what = type::bus;
    std::uint32_t number = 0; ///< among the devices, or among the switches
    friend bool operator==(vertex const&, vertex const&) = default;
};

/// The ends of a link.
struct link_ends {
    vertex from, to;
    friend bool operator==(link_ends const&, link_ends const&) = default;
};

/// A model of `DeviceTopology` whose handles are the numbers of devices and links. A value: what `cluster_builder::build` and the
/// functions of this directory make, never changed after. All lookups are O(1). Memory: that of its `route_table`, which is linear in devices where a
/// switch joins all nodes.
class cluster {
  public:
    /// All devices, all links: 0, 1, 2, ...
    [[nodiscard]] std::span<std::uint32_t const> devices() const noexcept { return {numbers_.data(), devices_.size()}; }
    [[nodiscard]] std::span<std::uint32_t const> links() const noexcept { return {numbers_.data(), links_.size()}; }
    /// A device: kind, memory, and what a roofline needs.
    [[nodiscard]] device_spec const& describe_device(std::uint32_t device) const noexcept { return devices_[device]; }
    [[nodiscard]] link_description const& describe_link(std::uint32_t link) const noexcept { return links_[link]; }
    [[nodiscard]] std::uint32_t node_of(std::uint32_t device) const noexcept { return node_[device]; }
    /// The links from device `a` to device `b`, in order; empty where `a == b`.
    [[nodiscard]] route_links route(std::uint32_t a, std::uint32_t b) const noexcept { return routes_(a, b); }
    [[nodiscard]] route_table const& routes() const noexcept { return routes_; }

    /// Orders of nodes in which groups of devices on exactly these nodes run their rings, all at once: see `HasRings`.
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> const& rings() const noexcept { return rings_; }

    /// The number of devices.
    [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
    /// The names of the switches.
    [[nodiscard]] std::vector<std::string> const& switches() const noexcept { return switches_; }
    [[nodiscard]] link_ends const& ends_of(std::uint32_t link) const noexcept { return ends_[link]; }
    /// The name that a link was given, empty where none was.
    [[nodiscard]] std::string const& given_name_of_link(std::uint32_t link) const noexcept { return link_names_[link]; }
    /// The name that a link was given, else its ends: "device 0 -> leaf 1".
    [[nodiscard]] std::string name_of_link(std::uint32_t link) const {
        if (!link_names_[link].empty()) return link_names_[link];
        return text(name_of_vertex(ends_[link].from), " -> ", name_of_vertex(ends_[link].to));
    }

    friend bool operator==(cluster const&, cluster const&) = default;

  private:
    friend class cluster_builder;
    cluster() = default;

    [[nodiscard]] std::string name_of_vertex(vertex v) const;

    std::vector<device_spec> devices_;
    std::vector<std::uint32_t> node_; ///< of each device
    std::vector<std::string> switches_;
    std::vector<link_description> links_;
    std::vector<link_ends> ends_;
    std::vector<std::string> link_names_; ///< empty where none was given
    std::vector<std::uint32_t> numbers_;  ///< 0, 1, 2, ...: what `devices` and `links` are views of
    route_table routes_;
    std::vector<std::vector<std::uint32_t>> rings_;
};

static_assert(DeviceTopology<cluster>);
static_assert(DescribesDeviceSpecs<cluster>);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/cluster.ipp>
#endif
