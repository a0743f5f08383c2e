#pragma once
/// Clusters as JSON: devices, switches, links, the routes that are not the shortest, rings. See docs/formats.md.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/io/text/device_names.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/device.hpp>

namespace parsearch::io {

inline constexpr std::string_view topology_format = "parsearch.topology";
inline constexpr std::uint64_t topology_version = 1;

namespace detail {

class topology_reader {
  public:
    explicit topology_reader(json_value const& document)
        : root_(document.document(topology_format, topology_version, {"description", "kinds", "devices", "switches", "links", "routes", "rings"})) {}

    /// `max_hops` bounds the memory of the routes: 4 bytes each.
    [[nodiscard]] topology::cluster read(std::size_t max_hops);

  private:
    template <class F> void for_each(std::string_view member, F const& f) {
        auto const list = root_.at(member);
        for (std::size_t i = 0, n = list.size(); i < n; ++i) f(list[i]);
    }

    /// Member `<name>_ps`, an integer, or `<name>_s`, a number.
    [[nodiscard]] static std::optional<picoseconds> read_time(json_object const& o, std::string const& name);

    [[nodiscard]] static topology::device_spec read_kind(std::string const& name, json_value const& value);
    static void read_formats(json_value const& value, topology::by_format& numbers);
    static void read_reached(json_value const& value, topology::reached_parts& reached);

    void add_device(json_value const& value);

    void add_switch(json_value const& value);

    [[nodiscard]] topology::vertex read_device(json_value const& value) const {
        if (devices_.empty()) value.refuse("there are no devices");
        return devices_[value.integer<std::uint32_t>(0, static_cast<std::uint32_t>(devices_.size() - 1))];
    }
    [[nodiscard]] topology::vertex read_end(json_value const& value) const;

    void add_link(json_value const& value);

    [[nodiscard]] static std::vector<std::uint32_t> read_numbers(json_value const& list) {
        std::vector<std::uint32_t> out;
        for (std::size_t i = 0, n = list.size(); i < n; ++i) out.push_back(list[i].integer<std::uint32_t>());
        return out;
    }
    void add_route(json_value const& value);
    void add_ring(json_value const& value) {
        auto nodes = read_numbers(value);
        placed(value, [&] { builder_.add_ring(std::move(nodes)); });
    }

    json_object root_;
    std::map<std::string, topology::device_spec> kinds_;
    topology::cluster_builder builder_;
    std::vector<topology::vertex> devices_, switches_;
    std::map<std::string, std::optional<topology::vertex>> named_;
};

class topology_writer {
  public:
    explicit topology_writer(topology::cluster const& c) : cluster_(c) {
        auto names = c.switches();
        std::sort(names.begin(), names.end());
        switches_by_name_ = std::adjacent_find(names.begin(), names.end()) == names.end();
    }

    [[nodiscard]] ordered_json write() const;

  private:
    void add_devices(ordered_json& root) const;

    [[nodiscard]] ordered_json end(topology::vertex v) const {
        if (v.what == topology::vertex::type::device) return {{"device", v.number}};
        return switches_by_name_ ? ordered_json{{"switch", cluster_.switches()[v.number]}} : ordered_json{{"switch", v.number}};
    }

    void add_links(ordered_json& root) const;

    /// The routes that a reader would not find by itself: those over a bus, and those other than the shortest.
    void add_routes(ordered_json& root) const;

    topology::cluster const& cluster_;
    bool switches_by_name_ = true;
};
} // namespace detail

/// The most hops of all routes of a cluster that is read from a file, 2 GiB.
inline constexpr std::size_t max_read_hops = std::size_t{1} << 29;

/// Reads a cluster; `name` stands for the input in messages. Throws `invalid_input` with place, value and rule on anything that is not as
/// docs/formats.md says, and on more than `max_read_hops`.
[[nodiscard]] inline topology::cluster read_topology_json(std::istream& in, std::string name = "topology JSON", json_limits const& limits = {}) {
    json_document const document(in, std::move(name), limits);
    return detail::topology_reader(document.root()).read(max_read_hops);
}
/// The same from a file. Throws `invalid_input` also where it cannot be opened.
[[nodiscard]] inline topology::cluster load_topology_json(std::string const& path, json_limits const& limits = {}) {
    json_document const document(path, limits);
    return detail::topology_reader(document.root()).read(max_read_hops);
}

/// Writes a cluster such that reading it gives an equal one. Routes that the reader finds by itself are left out. Throws `invalid_input`
/// where a name is not UTF-8. Complexity: that of building the cluster.
inline void write_topology_json(std::ostream& out, topology::cluster const& c) { write_json(out, detail::topology_writer(c).write()); }

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/topology_file.ipp>
#endif
