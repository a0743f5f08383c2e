#pragma once
/// ZeRO: devices that hold copies of a weight share the optimizer's state of it (Rajbhandari et al., SC 2020, section 5.1).

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

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
