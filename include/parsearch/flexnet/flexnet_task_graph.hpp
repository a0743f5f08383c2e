#pragma once
/// The task graphs that FlexNet, the simulator of TopoOpt, hands to packet simulators, as values; and the rules that they keep.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiler.hpp>

namespace parsearch::flexnet {

/// What a task does, by its number in files.
enum class task_type : std::int16_t {
    forward,
    backward,     ///< computation on a GPU
    comm,         ///< a message over a device that it names
    update,       ///< of weights, on a GPU
    barrier,      ///< no time: joins many to many
    nominal_comm, ///< a message between two vertices of the network, over the routes of these
    all_reduce    ///< among GPUs
};
inline constexpr std::size_t task_types = 7;
[[nodiscard]] constexpr std::string_view name_of(task_type t) noexcept {
    constexpr std::array<std::string_view, task_types> names{"forward", "backward", "comm", "update", "barrier", "nominal_comm", "all_reduce"};
    return names[static_cast<std::size_t>(t)];
}

/// What a device is, by its number in files.
enum class device_type : std::int16_t {
    gpu,
    cpu,
    system_memory,
    zero_copy_memory,
    gpu_memory,
    memory_bus,
    upi_in,
    upi_out,
    nic_in,
    nic_out,
    pci_to_host,
    pci_to_device,
    nvlink,
    network,        ///< one link between two vertices
    nominal_network ///< the routes from one vertex to another
};
inline constexpr std::size_t device_types = 15;
[[nodiscard]] constexpr std::string_view name_of(device_type t) noexcept {
    constexpr std::array<std::string_view, device_types> names{
        "gpu",    "cpu",     "system_memory", "zero_copy_memory", "gpu_memory", "memory_bus", "upi_in",         "upi_out",
        "nic_in", "nic_out", "pci_to_host",   "pci_to_device",    "nvlink",     "network",    "nominal_network"};
    return names[static_cast<std::size_t>(t)];
}
/// Whether such a device computes.
[[nodiscard]] constexpr bool computes(device_type t) noexcept { return t == device_type::gpu || t == device_type::cpu; }
/// Whether such a device is part of the network: its property names two vertices.
[[nodiscard]] constexpr bool networks(device_type t) noexcept { return t == device_type::network || t == device_type::nominal_network; }

struct task {
    task_type type{};
    std::uint64_t id = 0, device = 0; ///< of barriers and all-reduces the device says nothing
    float runtime_ms = 0;             ///< of messages and all-reduces: what FlexNet estimated
    std::uint64_t bytes = 0;          ///< of a message, or of the tensor that is reduced
    /// Ids of the tasks that wait for this one, some perhaps twice; of an all-reduce, the numbers of its GPUs: nothing can wait for it.
    std::vector<std::uint64_t> next{};
    friend bool operator==(task const&, task const&) = default;
};

struct device {
    device_type type{};
    std::uint64_t id = 0, node = no_node;
    std::uint64_t property = 0;     ///< a GPU's number; of a network device, sender * vertices + receiver
    std::uint64_t bytes_per_ms = 0; ///< 0: not known, or the network's
    static constexpr std::uint64_t no_node = ~std::uint64_t{0};
    friend bool operator==(device const&, device const&) = default;
};

/// An operator of the model. Tasks do not name it.
struct model_operator {
    std::uint64_t id = 0, type = 0; ///< FlexFlow's number of the type
    std::string name{};
    friend bool operator==(model_operator const&, model_operator const&) = default;
};

/// Parallel duplex links between two vertices, from > to.
struct connection {
    std::uint32_t from = 0, to = 0, links = 0;
    friend bool operator==(connection const&, connection const&) = default;
};

/// A way through the network, both ends included, and the part of the traffic that takes it.
struct path {
    std::vector<std::uint32_t> vertices{};
    float chance = 1;
    friend bool operator==(path const&, path const&) = default;
};
struct vertex_route {
    std::uint32_t from = 0, to = 0;
    std::vector<path> paths{};
    friend bool operator==(vertex_route const&, vertex_route const&) = default;
};

/// The rings in which groups of `size` all-reduce, each by the jumps that lead from a member to the next: their sum is the ring's step.
struct group_rings {
    std::uint64_t size = 0;
    std::vector<std::vector<std::int32_t>> jumps{};
    friend bool operator==(group_rings const&, group_rings const&) = default;
};

/// A file. Vertices 0 to nodes - 1 of the network are nodes, those after them switches.
struct task_graph {
    std::uint32_t gpus_per_node = 1, nodes = 0, switches = 0;
    float gpu_bytes_per_ms = 0, memory_bytes_per_ms = 0; ///< between the GPUs of a node; of the host's memory
    float link_bytes_per_ms = 0;                         ///< of one link of the network, in each direction
    std::vector<connection> connections{};
    std::vector<model_operator> operators{};
    std::vector<task> tasks{};
    std::vector<device> devices{};
    std::vector<vertex_route> routes{};
    std::vector<group_rings> rings{};

    [[nodiscard]] std::uint32_t vertices() const noexcept { return nodes + switches; }
    /// The property of the network device from one vertex to another.
    [[nodiscard]] std::uint64_t pair(std::uint32_t from, std::uint32_t to) const noexcept { return std::uint64_t{from} * vertices() + to; }
    friend bool operator==(task_graph const&, task_graph const&) = default;
};

} // namespace parsearch::flexnet
