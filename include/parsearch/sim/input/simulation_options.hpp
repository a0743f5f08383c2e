#pragma once
/// What is simulated: policies and their defaults.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::sim {

/// In which order a resource runs its tasks.
enum class discipline : std::uint8_t {
    fifo,    ///< by (ready time, task number): FlexFlow's assumption A3, ties decided
    in_order ///< by task number, as launches on a CUDA stream: the schedule is a longest path
};
[[nodiscard]] constexpr std::string_view name_of(discipline d) noexcept { return d == discipline::fifo ? "fifo" : "in_order"; }

/// How data move between shards.
enum class movement : std::uint8_t {
    pairwise,   ///< one message per pair of overlapping shards, as FlexFlow
    collective, ///< regular patterns among three devices or more as collectives, the rest pairwise
    grouped     ///< the rest, too: messages along an edge whose shards hang together as one all-to-all-v, as a group of sends and receives in NCCL
};
[[nodiscard]] constexpr std::string_view name_of(movement m) noexcept {
    constexpr std::array<std::string_view, 3> names{"pairwise", "collective", "grouped"};
    return names[static_cast<std::size_t>(m)];
}

/// How a message takes the links of its route, and what happens where messages and collectives meet on a link.
enum class transfer_model : std::uint8_t {
    streaming,         ///< it streams through all links at once; a link carries one at a time
    store_and_forward, ///< link after link, each when the one before has all of it; a link carries one at a time
    cut_through,       ///< in segments, each on the next link as soon as its head is there (FlexNet); a link carries one segment at a time
    fair_sharing       ///< all that is on its way flows at once, at max-min fair rates
};
[[nodiscard]] constexpr std::string_view name_of(transfer_model m) noexcept {
    constexpr std::array<std::string_view, 4> names{"streaming", "store_and_forward", "cut_through", "fair_sharing"};
    return names[static_cast<std::size_t>(m)];
}

/// How replicas of a weight agree on its gradient.
enum class synchronisation : std::uint8_t {
    all_reduce,      ///< among the devices that hold the weight; each updates its copy
    parameter_server ///< gradients to one of the devices, which updates and sends the weight back (FlexFlow without NCCL)
};
[[nodiscard]] constexpr std::string_view name_of(synchronisation s) noexcept {
    return s == synchronisation::all_reduce ? "all_reduce" : "parameter_server";
}

/// What a strategy that needs more memory than a device has costs.
enum class memory_policy : std::uint8_t {
    ignore,   ///< its makespan
    penalise, ///< its makespan and `memory_penalty` per byte over, of the device that is most, for each device
    reject    ///< infinity: it is infeasible
};
[[nodiscard]] constexpr std::string_view name_of(memory_policy p) noexcept {
    constexpr std::array<std::string_view, 3> names{"ignore", "penalise", "reject"};
    return names[static_cast<std::size_t>(p)];
}

/// The update rule, which sets the memory and work that each parameter costs.
enum class optimizer : std::uint8_t { sgd, momentum, adam };
[[nodiscard]] constexpr std::string_view name_of(optimizer o) noexcept {
    constexpr std::array<std::string_view, 3> names{"sgd", "momentum", "adam"};
    return names[static_cast<std::size_t>(o)];
}

/// What an optimizer keeps and does per parameter: values of 4 bytes kept, flops of an update.
struct optimizer_cost {
    std::int64_t states = 0;
    double flops = 0;
};
[[nodiscard]] constexpr optimizer_cost cost_of(optimizer o) noexcept {
    // Flops of p -= lr*g; m = b*m + g, p -= lr*m; Adam's (Kingma & Ba 2015, algorithm 1) two moments, their corrections and the step.
    constexpr std::array<optimizer_cost, 3> costs{{{0, 2}, {1, 4}, {2, 14}}};
    return costs[static_cast<std::size_t>(o)];
}

/// In which type gradients of weights are kept, added up over micro-batches, and reduced over replicas.
enum class gradient_type : std::uint8_t {
    of_weights,  ///< that of the weights
    f32_of_bf16, ///< f32 where weights are bf16, whose sums lose too much: Megatron-LM without --grad-reduce-in-bf16 (arguments.py: "bfloat16
                 ///< requires gradient accumulation and all-reduce to be done in fp32"), torchtitan (mixed_precision_reduce = "float32"), DeepSpeed
                 ///< (grad_accum_dtype); those of f16 are scaled, and stay
    f32          ///< f32 where weights are f16 or bf16
};
[[nodiscard]] constexpr std::string_view name_of(gradient_type g) noexcept {
    constexpr std::array<std::string_view, 3> names{"of_weights", "f32_of_bf16", "f32"};
    return names[static_cast<std::size_t>(g)];
}
/// Bytes of a gradient of a weight of type `weight`.
[[nodiscard]] constexpr byte_count gradient_size(gradient_type g, ops::dtype weight) noexcept {
    bool const widened = weight == ops::dtype::bf16 ? g != gradient_type::of_weights : weight == ops::dtype::f16 && g == gradient_type::f32;
    return ops::size_of(widened ? ops::dtype::f32 : weight);
}

/// Options of the simulation.
struct simulation_options {
    sim::movement movement = sim::movement::collective;
    sim::discipline discipline = sim::discipline::fifo;
    bool training = true; ///< false: forward only
    sim::synchronisation synchronisation = sim::synchronisation::all_reduce;
    bool overlap = true; ///< false: gradients are synchronised after the last backward task (FlexFlow without --overlap)
    sim::optimizer optimizer = sim::optimizer::sgd;
    gradient_type gradients = gradient_type::f32_of_bf16;
    sim::memory_policy memory = sim::memory_policy::penalise;
    double memory_penalty = 1000;  ///< picoseconds per byte over, see `memory_cost` (1000: one second per GB)
    double memory_kept_free = 0.1; ///< share of each device's memory that a plan must leave, for what is not simulated: fragmentation, the buffers of
                                   ///< kernels and collectives, the runtime; from 0 to less than 1
    byte_count context_memory = 0; ///< bytes of each device that the runtime holds beside that share. 0: they are within it. A CUDA context has
                                   ///< some hundred MB, NCCL 0.7 GB for each group of more than two A100 (nccl, issue 964); 1.6 were seen (864)
    bool balanced = false; ///< where devices are of several kinds: samples in as many parts as there are devices, or runs of equally many neighbours,
                           ///< are divided as these are fast, see `balance_samples`
    transfer_model transfers = transfer_model::streaming;
    byte_count segment = byte_count{1} << 20; ///< bytes of a segment under `cut_through`; the last of a message may have fewer
    std::uint32_t replicas = 1; ///< the graph and the topology are one of so many replicas on a larger cluster, which do the same on other samples
                                ///< and add up their gradients: see `topology::require_like_nodes` for which clusters can be told by a part
    friend bool operator==(simulation_options const&, simulation_options const&) = default;
};

/// Bytes that a plan may use of a device with `memory`: without the share kept free and `context_memory`. No limit stays none.
[[nodiscard]] inline byte_count usable_memory(byte_count memory, simulation_options const& o) noexcept {
    if (memory == std::numeric_limits<byte_count>::max()) return memory;
    return std::max<byte_count>(0, memory - static_cast<byte_count>(static_cast<double>(memory) * o.memory_kept_free) - o.context_memory);
}

} // namespace parsearch::sim
