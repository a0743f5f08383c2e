#pragma once
/// Clusters of nodes with several GPUs, and the machines of the literature.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/topology/cluster.hpp>
#include <parsearch/topology/device.hpp>

namespace parsearch::topology {

/// How the GPUs of a node are joined.
enum class intra_node : std::uint8_t {
    direct,   ///< a link for every ordered pair of GPUs (NVLink without switches)
    nvswitch, ///< a link up and one down between each GPU and one switch
    pcie      ///< pairs of GPUs under a PCIe switch each, these under a root that all share
};

/// Options of `nodes`. What is left open is taken from the device: see `nodes`.
struct nodes_options {
    std::uint32_t count = 1;
    std::uint32_t gpus_per_node = 8;
    device_spec device{};
    std::optional<intra_node> intra{};
    /// One direction: of a pair's link (direct), of a GPU's link to its switch (nvswitch, pcie). `latency` is that between two GPUs of one switch.
    std::optional<link_description> intra_link{};
    /// Divides `gpus_per_node`: each interface serves a block of GPUs. With `pcie` it is 1, at the root.
    std::optional<std::uint32_t> nics_per_node{};
    /// One direction of a network interface; `latency` is that from interface to interface.
    std::optional<link_description> nic{};
    /// One direction of a GPU's PCIe link to its interface, unused with `pcie`.
    std::optional<link_description> host_link{};
    /// Switches of nodes add up all-reduces in flight (NVLink SHARP, NVLS in NCCL): at the `reduction` of `intra_link`, at the device's where that
    /// says none. Only with `nvswitch`.
    bool nvls = false;
};

/// `nodes_options` with nothing left open.
struct complete_nodes {
    intra_node intra = intra_node::direct;
    link_description intra_link, nic, host_link;
    std::uint32_t nics = 1;
};

/// `o` with the defaults of its device. Throws as `nodes`.
[[nodiscard]] complete_nodes complete(nodes_options const& o);

/// `count` equal nodes. Between nodes a message passes the sender's PCIe link, its interface out and the receiver's interface in, each
/// with half of `nic.latency` (as FlexFlow has it), and the receiver's PCIe link; the network between the interfaces is an ideal switch.
/// Without further options a known device gives what `detail::known_nodes` has: `k80` a PCIe tree, `p100_sxm` and `v100_sxm` NVLinks between pairs
/// (what a GPU has links for in nodes of four), each with one interface per node; `a100_sxm`, `h100_sxm`, `h200_sxm` and `b200_sxm` an NVSwitch and
/// an interface per GPU. Routes are the shortest. Throws `invalid_input` on zero counts, a `nics_per_node` that does not divide the GPUs, links that
/// break the rules of `cluster_builder`, an option that is left open for another device.
[[nodiscard]] cluster nodes(nodes_options const& o);

/// The P100 cluster of the FlexFlow paper: 4 GPUs per node joined by NVLink, nodes by 100 Gb/s InfiniBand.
/// Source: Z. Jia, M. Zaharia, A. Aiken, Beyond data and model parallelism for deep neural networks, MLSys 2019, evaluation.
[[nodiscard]] inline cluster p100_cluster(std::uint32_t count = 4) { return nodes({.count = count, .gpus_per_node = 4, .device = p100_sxm}); }

/// The K80 cluster of the FlexFlow paper: 4 GPUs per node, adjacent ones under a PCIe switch, all under a shared one, nodes joined by 56 Gb/s
/// InfiniBand. Source: as `p100_cluster`.
[[nodiscard]] inline cluster k80_cluster(std::uint32_t count = 16) { return nodes({.count = count, .gpus_per_node = 4, .device = k80}); }

/// DGX A100: 8 GPUs on NVSwitch, a 200 Gb/s HDR interface per GPU. Source: NVIDIA, DGX A100 system architecture white paper WP-10083.
[[nodiscard]] inline cluster dgx_a100(std::uint32_t count) { return nodes({.count = count, .gpus_per_node = 8, .device = a100_sxm}); }

/// DGX H100: 8 GPUs on NVSwitch, a 400 Gb/s NDR interface per GPU. Source: NVIDIA, DGX H100 data sheet.
[[nodiscard]] inline cluster dgx_h100(std::uint32_t count) { return nodes({.count = count, .gpus_per_node = 8, .device = h100_sxm}); }

/// Summit: 6 V100 per node in two sockets of three. Inside a socket each pair of GPUs, and each GPU and the CPU, are joined by two NVLinks
/// (50 GB/s per direction); the sockets by the X-Bus (64 GB/s); each socket has one of the two 100 Gb/s EDR ports, 25 GB/s per node in all. The
/// fat tree between nodes does not block and is an ideal switch. Source: S. Vazhkudai et al., The design, deployment, and evaluation of the CORAL
/// pre-exascale systems, SC 2018; OLCF, Summit user guide. Latencies as in `nodes`.
[[nodiscard]] cluster summit(std::uint32_t count);

} // namespace parsearch::topology

#ifndef PARSEARCH_COMPILED
#include <parsearch/topology/nodes.ipp>
#endif
