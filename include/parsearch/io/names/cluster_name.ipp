#pragma once
// Clusters by name: "4x8xh100", "fabric:torus,servers=16", or a file that describes one.

#include <fstream>

#include <parsearch/core/error.hpp>
#include <parsearch/io/files/topology_file.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/io/text/device_names.hpp>
#include <parsearch/topology/device.hpp>
#include <parsearch/topology/nodes.hpp>

namespace parsearch::io::detail {

struct cluster_shape {
    std::uint32_t nodes = 0, gpus = 0;
    std::string_view device;
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// "NODESxGPUSxDEVICE" taken apart; nothing where the text is not of this form. Throws on numbers that are too large or zero.
PARSEARCH_IO_INLINE std::optional<cluster_shape> read_shape(std::string_view given) {
    auto const first = given.find('x'), second = first == given.npos ? first : given.find('x', first + 1);
    if (second == given.npos || second + 1 == given.size()) return std::nullopt;
    auto const nodes = given.substr(0, first), gpus = given.substr(first + 1, second - first - 1);
    auto const digits = [](std::string_view s) { return !s.empty() && s.find_first_not_of("0123456789") == s.npos; };
    if (!digits(nodes) || !digits(gpus)) return std::nullopt;
    cluster_shape out{.device = given.substr(second + 1)};
    auto const count = [&](std::string_view s, std::string_view what, std::uint32_t& n) {
        if (!option_value<std::uint32_t>::read(s, n) || n < 1 || n > topology::cluster_builder::max_devices)
            throw invalid_input("cluster '", given, "': ", what, " is ", s, ": must be from 1 to ", topology::cluster_builder::max_devices);
    };
    count(nodes, "the number of nodes", out.nodes);
    count(gpus, "the number of GPUs per node", out.gpus);
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE named_cluster make_named_cluster(std::string_view given) {
    if (given.starts_with(fabric_prefix)) {
        auto made = make_fabric(given.substr(fabric_prefix.size()));
        return {.cluster = std::move(made.cluster), .source = cluster_source::fabric, .network = std::move(made.network)};
    }
    auto const asked = parse_settings(given);
    auto const shape = detail::read_shape(asked.name);
    if (shape)
        if (auto const* const device = find_device(shape->device)) {
            topology::nodes_options nodes{.count = shape->nodes, .gpus_per_node = shape->gpus, .device = *device};
            for (auto const& s : asked.settings) {
                auto const place = text("cluster '", given, "'");
                if (s.key == "nvls") read_option(s.value, s.key, place, nodes.nvls);
                else if (s.key == "host_rate") read_option(s.value, s.key, place, nodes.device.host_rate);
                else throw invalid_input(place, ": option '", s.key, "' is not known: must be nvls or host_rate");
            }
            return {.cluster = topology::nodes(nodes)};
        }
    std::ifstream in(asked.name, std::ios::binary);
    char first = 0;
    if (!in || !(in >> first)) {
        bool const opened = in.is_open() && in.eof();
        if (opened) throw invalid_input("cluster '", given, "': the file is empty");
        if (shape)
            throw invalid_input("cluster '", given, "': '", shape->device, "' is not a known device, which are ", known_devices(),
                                ", and there is no file of this name that can be read");
        throw invalid_input("cluster '", given, "': is not NODESxGPUSxDEVICE such as 4x8xh100 (devices: ", known_devices(),
                            "), and there is no file of this name that can be read");
    }
    in.seekg(0);
    topology::device_spec const* device = nullptr;
    for (auto const& s : asked.settings) {
        if (s.key != "device") throw invalid_input("cluster '", given, "': option '", s.key, "' is not known: must be device");
        device = find_device(s.value);
        if (!device) throw invalid_input("cluster '", given, "': device is '", s.value, "': must be one of ", known_devices());
    }
    if (first == '{' || first == '[') { // read_topology_json refuses arrays
        if (device) throw invalid_input("cluster '", given, "': device is given, but topology JSON says itself which devices there are");
        return {.cluster = read_topology_json(in, asked.name), .source = cluster_source::topology_json, .path = asked.name};
    }
    if (!device)
        throw invalid_input("cluster '", given,
                            "': the file is no JSON, so a machine file of FlexFlow, which does not say what the devices are: say ", asked.name,
                            ",device=DEVICE, which is one of ", known_devices());
    return {.cluster = topology::read_machine_file(in, *device, asked.name), .source = cluster_source::machine_file, .path = asked.name};
}

} // namespace parsearch::io
