#pragma once
/// States of weights that the devices with copies of them share (`sharded_states`): what a device keeps, and what they move.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::pipeline {

/// What moves of a block whose gradients, or parameters too, are shared.
enum class block_transfer : std::uint8_t {
    none,
    gather,    ///< weights, to where they are used
    reduce,    ///< gradients, added up and scattered
    all_reduce ///< gradients of parts, added up between nodes
};

/// How the devices of a sync group share its weights.
struct weight_sharing {
    std::size_t parts = 1;             ///< of each copy: each device with the copy keeps one
    std::vector<sim::hop> weights{};   ///< of all-reduces as large as the copies, each among the devices that have it: gathering takes half
    std::vector<sim::hop> gradients{}; ///< the same of gradients: reducing takes half
    std::vector<sim::hop> across{};    ///< of all-reduces of gradients of parts, each among the devices that keep it; empty where there is one copy
};

/// That of each sync group of `c`. All devices of a group have one copy together; within nodes those of each node do, but where some nodes have more
/// of them than others. Complexity: that of pricing the collectives.
[[nodiscard]] std::vector<weight_sharing> share_weights(sim::class_plan const& c, sharded_states sharded, topology::dense_topology const& t,
                                                        sim::pricing& price);
/// By sharing class and sync group; empty where none is shared.
using sharing_plan = std::vector<std::vector<weight_sharing>>;
/// That of class `c` of `plan`; of an empty one nothing.
[[nodiscard]] inline std::span<weight_sharing const> sharing_of(sharing_plan const& plan, std::size_t c) noexcept {
    return plan.empty() ? std::span<weight_sharing const>{} : std::span<weight_sharing const>(plan[c]);
}

/// The part of the weights on one device whose optimizer state it keeps itself: all of what it alone holds, and its share of what others hold too.
/// `sharing`: of the plan's groups; empty: all devices of a group have one copy. From 0 to 1.
[[nodiscard]] double own_share(sim::sync_plan const& plan, sim::held_weights const& held, std::span<weight_sharing const> sharing = {}) noexcept;

/// Turns `use`, the memory by device, into that with a sharded optimizer.
void shard_optimizer_memory(sim::simulation_options const& options, sim::iteration_plan const& plan, sharing_plan const& sharing,
                            std::vector<sim::memory_use>& use);

/// Turns `use`, the memory by device in training, into that with sharded gradients, or parameters too: of each a device keeps its share, and beside
/// it has the two largest blocks whole: one in use, one on its way.
void shard_block_memory(pipelining const& how, sim::iteration_plan const& plan, sharing_plan const& sharing, std::vector<sim::memory_use>& use);

/// Turns synchronisation and updates of `tasks`, which `sim::assembler` made of `plan`, into those of a sharded optimizer: each device updates its
/// share, and what is gathered is weights, half of an all-reduce as large as they are.
void shard_updates(sim::iteration_plan const& plan, sharing_plan const& sharing, sim::task_graph& tasks);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/zero_sharding.ipp>
#endif
