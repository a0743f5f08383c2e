#pragma once
/// Clusters by name: "4x8xh100", "fabric:torus,servers=16", or a file that describes one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/io/described/described.hpp>
#include <parsearch/io/names/fabric_name.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/machine_file.hpp>

namespace parsearch::io {

/// How a cluster was described.
enum class cluster_source : std::uint8_t { preset, topology_json, machine_file, fabric };
[[nodiscard]] constexpr std::string_view name_of(cluster_source s) noexcept {
    constexpr std::array<std::string_view, 4> names{"preset", "topology JSON", "FlexFlow machine file", "fabric"};
    return names[static_cast<std::size_t>(s)];
}

struct named_cluster {
    topology::cluster cluster;
    cluster_source source = cluster_source::preset;
    std::string path{};                       ///< of the file; empty where there is none
    std::optional<fabric::network> network{}; ///< of a fabric: what the cluster was made of
};

/// The cluster that `given` describes:
/// - "4x8xh100": so many equal nodes of so many GPUs of a preset, joined as `topology::nodes` has it; "4x8xh100,nvls=true" with its option `nvls`,
///   "4x8xh100,host_rate=25GBps" with another rate of copies to hosts;
/// - "fabric:NAME,key=value,...": servers on a network, see `make_fabric`;
/// - "FILE.json": topology JSON (docs/formats.md);
/// - "FILE,device=p100": a machine file of FlexFlow, which says nothing of the GPUs themselves.
/// Files are told apart by content: JSON begins with a brace. Throws `invalid_input` saying what was tried, and as the readers do.
[[nodiscard]] named_cluster make_named_cluster(std::string_view given);
[[nodiscard]] inline topology::cluster make_cluster(std::string_view given) { return make_named_cluster(given).cluster; }

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/names/cluster_name.ipp>
#endif
