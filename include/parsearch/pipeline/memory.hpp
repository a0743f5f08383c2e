#pragma once
/// Memory of a pipeline: as many activations as micro-batches are under way, less where they are computed again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/assemble.hpp>
#include <parsearch/sim/memory.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::pipeline {

/// The part of the weights on one device whose optimizer state it keeps itself: all of what it alone holds, and its share of what others hold too. From 0 to 1.
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

/// Bytes by device of what operators of stages that compute again read from outside of their stage: what these keep of one micro-batch. `devices(op)` is the device of each shard.
/// A tensor that several operators read is counted once per device, at its largest part there.
template <Strategy<space::configuration> S, class Devices>
[[nodiscard]] std::vector<byte_count> stage_inputs(graph::dense_graph const& g, pipelining const& how, S const& strategy, Devices const& devices, std::size_t count) {
    std::vector<byte_count> sum(count, 0), tensor(count), read(count);
    for (std::uint32_t op = 0; op < g.size(); ++op)
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
            std::fill(tensor.begin(), tensor.end(), 0);
            for (auto const number : g.out(op)) {
                auto const& e = g.edges[number];
                auto const s = how.stage[e.consumer];
                bool const inside = g.operations[op].work != ops::work_class::source && how.stage[op] == s;
                if (e.slot != slot || inside || !how.recomputes(s)) continue;
                space::configuration const& c = configuration_of(strategy, e.consumer);
                auto const bytes = sim::memory_of(g.operations[e.consumer], c.degrees()).inputs[e.input];
                std::fill(read.begin(), read.end(), 0);
                for (auto const d : devices(e.consumer)) read[d] += bytes;
                for (std::size_t d = 0; d < count; ++d) tensor[d] = std::max(tensor[d], read[d]);
            }
            for (std::size_t d = 0; d < count; ++d) sum[d] += tensor[d];
        }
    return sum;
}

/// Turns `use`, the memory of one micro-batch by device, into that of the pipeline. A device that runs several stages is taken to have as many micro-batches under way as the one
/// with the most, in all of them: an upper bound. `inputs` as of `stage_inputs`. Of a stage that computes again a device keeps its inputs of the micro-batches under way and all activations of one.
template <class Devices>
void spread_over_micro_batches(graph::dense_graph const& g, pipelining const& how, sim::simulation_options const& options, sim::iteration_plan const& plan,
                               std::span<byte_count const> inputs, Devices const& devices, std::vector<sim::memory_use>& use) {
    std::vector<std::uint32_t> under_way(use.size(), 0);
    std::vector<bool> again(use.size(), true);
    for (std::size_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        auto const s = how.stage[op];
        for (auto const d : devices(op)) {
            under_way[d] = std::max(under_way[d], in_flight(how.order, how.stages, how.micro_batches, s));
            again[d] = again[d] && how.recomputes(s);
        }
    }
    for (std::size_t d = 0; d < use.size(); ++d) {
        if (!options.training || under_way[d] == 0) continue;
        auto const all = use[d].activations * under_way[d];
        use[d].activations = again[d] ? std::min(all, use[d].activations + inputs[d] * under_way[d]) : all;
    }
    if (!options.training || !how.sharded_optimizer) return;
    std::vector<double> state(use.size(), 0);
    auto const states = sim::cost_of(options.optimizer).states;
    for (auto const& c : plan.classes)
        for (auto const& h : c.sync.held) state[h.device] += static_cast<double>(sim::optimizer_memory(h, states)) * own_share(c.sync, h);
    for (std::size_t d = 0; d < use.size(); ++d) use[d].optimizer = static_cast<byte_count>(state[d] + 0.5);
}

} // namespace parsearch::pipeline
