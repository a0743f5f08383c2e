#pragma once
/// ZeRO: devices that hold copies of a weight share the optimizer's state of it, or gradients and parameters, too (Rajbhandari et al., SC 2020,
/// section 5).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// What sharded parameters move (`pipelining::sharded_parameters`).
enum class block_transfer : std::uint8_t {
    none,
    gather, ///< weights, to where they are used
    reduce  ///< gradients, added up and scattered
};

/// The part of the weights on one device whose optimizer state it keeps itself: all of what it alone holds, and its share of what others hold too.
/// From 0 to 1.
[[nodiscard]] inline double own_share(sim::sync_plan const& plan, sim::held_weights const& held) noexcept {
    double shared = 0, own = 0;
    for (auto const group : held.groups) {
        auto const elements = static_cast<double>(plan.groups[group].elements);
        shared += elements;
        own += elements / static_cast<double>(plan.groups[group].devices.size());
    }
    auto const all = static_cast<double>(held.elements);
    return all > 0 ? (all - shared + own) / all : 1;
}

/// Turns `use`, the memory by device, into that with a sharded optimizer.
inline void shard_optimizer_memory(sim::simulation_options const& options, sim::iteration_plan const& plan, std::vector<sim::memory_use>& use) {
    std::vector<double> state(use.size(), 0);
    auto const states = sim::cost_of(options.optimizer).states;
    for (auto const& c : plan.classes)
        for (auto const& h : c.sync.held) state[h.device] += static_cast<double>(sim::optimizer_memory(h, states)) * own_share(c.sync, h);
    for (std::size_t d = 0; d < use.size(); ++d) use[d].optimizer = static_cast<byte_count>(state[d] + 0.5);
}

/// Turns `use`, the memory by device in training, into that with sharded parameters and gradients: of each a device keeps its share, and beside it
/// has the two largest blocks whole: one in use, one on its way.
inline void shard_parameter_memory(pipelining const& how, sim::iteration_plan const& plan, std::vector<sim::memory_use>& use) {
    std::vector<double> kept(use.size(), 0);
    std::vector<std::map<std::uint32_t, double>> gathered(use.size()); // by block: bytes of others
    for (auto const& c : plan.classes) {
        std::set<std::uint32_t> blocks;
        for (auto const op : c.members) blocks.insert(how.block_of(op));
        for (auto const& h : c.sync.held) {
            auto const bytes = static_cast<double>(h.bytes), own = bytes * own_share(c.sync, h);
            kept[h.device] += own;
            for (auto const b : blocks) gathered[h.device][b] += bytes - own;
        }
    }
    for (std::size_t d = 0; d < use.size(); ++d) {
        double first = 0, second = 0;
        for (auto const& [block, bytes] : gathered[d]) {
            second = std::max(second, std::min(first, bytes));
            first = std::max(first, bytes);
        }
        // What two blocks have in common is there once.
        use[d].weights = use[d].gradients = std::min(use[d].weights, static_cast<byte_count>(kept[d] + first + second + 0.5));
    }
}

/// Turns the updates of `tasks`, which `sim::assembler` made of `plan`, into those of a sharded optimizer: each device updates its share.
inline void shard_updates(sim::iteration_plan const& plan, sim::task_graph& tasks) {
    for (std::uint32_t t = 0; t < tasks.size(); ++t)
        if (tasks.kind[t] == sim::task_kind::update) {
            auto const& sync = plan.classes[plan.class_of[tasks.label[t].op]].sync;
            double const volatile own =
                static_cast<double>(tasks.duration[t]) * own_share(sync, sync.held[tasks.label[t].number]); // volatile: not fused with the rounding
            tasks.duration[t] = static_cast<std::int64_t>(own + 0.5);
        }
}

} // namespace parsearch::pipeline
