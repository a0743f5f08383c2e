#pragma once
/// Memory of a pipeline: as many activations as micro-batches are under way, less where they are computed again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// Turns `use`, the memory of one micro-batch by device, into that of the pipeline. A device that runs several stages is taken to have as many
/// micro-batches under way as the one with the most, in all of them: an upper bound. Of stages that compute again a device keeps the inputs of their
/// segments, of the micro-batches under way, and the activations of one segment; where only some of its stages do, all is kept.
template <class Shards, class Devices>
void spread_over_micro_batches(graph::dense_graph const& g, pipelining const& how, sim::simulation_options const& options,
                               sim::iteration_plan const& plan, Shards const& shards, Devices const& devices, std::vector<sim::memory_use>& use) {
    if (!options.training) return;
    std::vector<std::uint32_t> under_way(use.size(), 0);
    std::vector<bool> again(use.size(), true);
    for (std::size_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        auto const s = how.stage[op];
        for (auto const d : devices(op)) {
            under_way[d] = std::max(under_way[d], in_flight(how.order, how.stages, how.micro_batches, s));
            again[d] = again[d] && (how.recomputes(s) || !g.trains[op]);
        }
    }
    auto const inputs = segment_inputs(g, how, shards, devices, use.size());
    auto const segment = largest_segment(g, how, options, shards, devices, use.size());
    for (std::size_t d = 0; d < use.size(); ++d)
        if (under_way[d] > 0) use[d].activations = again[d] ? inputs[d] * under_way[d] + segment[d] : use[d].activations * under_way[d];
    if (how.sharded_optimizer) shard_optimizer_memory(options, plan, use);
    if (how.sharded_parameters) shard_parameter_memory(how, plan, use);
}

} // namespace parsearch::pipeline
