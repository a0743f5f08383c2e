#pragma once
/// Small topologies that a test can take in at a glance: one picosecond per byte, no latency unless told.

#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>

namespace support {

/// A `DeviceTopology` in plain tables.
struct plain_topology {
    std::vector<parsearch::device_description> device;
    std::vector<parsearch::link_description> link;
    std::vector<std::uint32_t> device_numbers, link_numbers, node;
    std::vector<std::vector<std::vector<std::uint32_t>>> routes; ///< [from][to]

    explicit plain_topology(std::uint32_t devices, parsearch::byte_count memory = parsearch::byte_count{1} << 40)
        : device(devices, {"gpu", memory}), node(devices, 0), routes(devices, std::vector<std::vector<std::uint32_t>>(devices)) {
        for (std::uint32_t d = 0; d < devices; ++d) device_numbers.push_back(d);
    }
    std::uint32_t add_link(double bytes_per_picosecond = 1, std::int64_t latency = 0) {
        link.push_back({{bytes_per_picosecond * 1e12}, parsearch::picoseconds{latency}});
        link_numbers.push_back(static_cast<std::uint32_t>(link.size() - 1));
        return link_numbers.back();
    }

    [[nodiscard]] std::vector<std::uint32_t> const& devices() const { return device_numbers; }
    [[nodiscard]] std::vector<std::uint32_t> const& links() const { return link_numbers; }
    [[nodiscard]] parsearch::device_description const& describe_device(std::uint32_t d) const { return device[d]; }
    [[nodiscard]] parsearch::link_description const& describe_link(std::uint32_t l) const { return link[l]; }
    [[nodiscard]] std::vector<std::uint32_t> const& route(std::uint32_t a, std::uint32_t b) const { return routes[a][b]; }
    [[nodiscard]] std::uint32_t node_of(std::uint32_t d) const { return node[d]; }
};

/// A link of its own from every device to every other; the one from a to b has number `mesh_link(devices, a, b)`.
inline plain_topology mesh(std::uint32_t devices, double bytes_per_picosecond = 1, std::int64_t latency = 0) {
    plain_topology t(devices);
    for (std::uint32_t a = 0; a < devices; ++a)
        for (std::uint32_t b = 0; b < devices; ++b)
            if (a != b) t.routes[a][b] = {t.add_link(bytes_per_picosecond, latency)};
    return t;
}
constexpr std::uint32_t mesh_link(std::uint32_t devices, std::uint32_t a, std::uint32_t b) { return a * (devices - 1) + b - (b > a); }

/// One link that every message between any two devices passes.
inline plain_topology shared_medium(std::uint32_t devices, double bytes_per_picosecond = 1, std::int64_t latency = 0) {
    plain_topology t(devices);
    auto const l = t.add_link(bytes_per_picosecond, latency);
    for (auto& from : t.routes)
        for (auto& route : from) route = {l};
    return t;
}

/// A switch to which every device has a link each way.
inline plain_topology star(std::uint32_t devices, double bytes_per_picosecond = 1, std::int64_t latency = 0) {
    plain_topology t(devices);
    for (std::uint32_t d = 0; d < devices; ++d) {
        t.add_link(bytes_per_picosecond, latency); // up
        t.add_link(bytes_per_picosecond, latency); // down
    }
    for (std::uint32_t a = 0; a < devices; ++a)
        for (std::uint32_t b = 0; b < devices; ++b)
            if (a != b) t.routes[a][b] = {2 * a, 2 * b + 1};
    return t;
}

/// Devices in a row, a link each way between neighbours.
inline plain_topology line(std::uint32_t devices, double bytes_per_picosecond = 1, std::int64_t latency = 0) {
    plain_topology t(devices);
    for (std::uint32_t d = 0; d + 1 < devices; ++d) {
        t.routes[d][d + 1] = {t.add_link(bytes_per_picosecond, latency)};
        t.routes[d + 1][d] = {t.add_link(bytes_per_picosecond, latency)};
    }
    for (std::uint32_t far = 2; far < devices; ++far)
        for (std::uint32_t a = 0; a + far < devices; ++a) {
            auto const b = a + far;
            t.routes[a][b] = t.routes[a][b - 1];
            t.routes[a][b].push_back(t.routes[b - 1][b].front());
            t.routes[b][a] = t.routes[b][a + 1];
            t.routes[b][a].push_back(t.routes[a + 1][a].front());
        }
    return t;
}

} // namespace support
