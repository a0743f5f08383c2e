#pragma once
/// Memory of a pipeline: as many activations as micro-batches are under way, less where they are computed again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/weight_gradients.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// Bytes by device of activations at the fullest moment of what each launches. A device keeps them of all micro-batches under way; of a stage that
/// computes again it keeps the inputs of segments, and the activations of one segment while that runs backward. Where backward is cut, what products
/// read and the gradients of their outputs wait for gradients of weights. A tensor that several of its stages
/// keep is there once, for as long as the first of them needs it. What is offloaded is not counted: `add_offloaded` does. Complexity: O(edges *
/// shards), that of sorting segments, and what is launched for each device that runs several stages.
template <class Shards, class Devices>
[[nodiscard]] std::vector<byte_count> activations_under_way(graph::dense_graph const& g, pipelining const& how, Shards const& shards,
                                                            Devices const& devices, std::size_t count) {
    struct stage_bytes {
        byte_count kept = 0, beside = 0; ///< of each micro-batch; while the stage runs backward
        byte_count left = 0;             ///< from then on, until gradients of weights are there
    };
    std::vector<std::map<std::uint32_t, stage_bytes>> on(count); // by stage
    auto const again = detail::computed_again(g, how);
    sim::memory_account account(g, count);
    auto const add = [&](auto const& keepers) {
        account.for_largest(
            keepers, shards, devices, [&](std::uint32_t op) { return how.stage[op]; },
            [&](std::uint32_t d, byte_count bytes, std::uint32_t s) { on[d][s].kept += bytes; });
    };
    sim::for_kept_tensors(
        g, [&](std::uint32_t op, graph::edge const*) { return !how.computes_again(op) && !how.offloads(op); }, add);
    for_segment_inputs(
        g, how, again, [&](std::uint32_t op) { return !how.offloads(op); }, add);
    kept_again(g, how, again).add_up(account, shards, devices, [&](std::uint32_t d, byte_count bytes, detail::stage_segment const& segment) {
        auto& beside = on[d][segment.first].beside;
        beside = std::max(beside, bytes);
    });
    if (cuts_backward(how.order)) {
        auto const kept_by = [&](graph::edge const& e) { // for as long, what it reads
            bool const runs_again = again[e.consumer], outside = runs_again && detail::enters(g, how, e);
            return std::tuple(how.stage[e.consumer], runs_again, outside, runs_again && !outside ? how.segment_of(e.consumer) : 0);
        };
        for_waiting(
            g, [&](graph::edge const& a, graph::edge const& b) { return kept_by(a) == kept_by(b); }, shards, devices,
            [&](std::uint32_t d, waiting_bytes const& b, std::uint32_t op) {
                auto& of_stage = on[d][how.stage[op]];
                of_stage.left += b.total();
                of_stage.beside += b.rising(again[op]);
            });
    }
    std::vector<byte_count> out(count, 0);
    std::vector<launch> all;
    std::map<std::vector<std::uint32_t>, std::vector<launch>> orders; // by stages
    for (std::size_t d = 0; d < count; ++d) {
        if (on[d].size() == 1 && !cuts_backward(how.order)) {
            auto const& [s, bytes] = *on[d].begin();
            out[d] = bytes.kept * in_flight(how.launching(), s) + bytes.beside;
            continue;
        }
        if (on[d].empty()) continue;
        std::vector<std::uint32_t> stages;
        for (auto const& [s, bytes] : on[d]) stages.push_back(s);
        auto const [at, first] = orders.try_emplace(std::move(stages));
        if (all.empty()) all = launches(how.launching());
        if (first)
            for (auto const& l : all)
                if (on[d].contains(l.stage)) at->second.push_back(l);
        out[d] = fullest_moment(
            at->second, [&](std::uint32_t s) { return on[d].at(s).kept; }, [&](std::uint32_t s) { return on[d].at(s).beside; },
            [&](std::uint32_t s) { return on[d].at(s).left; });
    }
    return out;
}

/// Turns `use`, the memory of one micro-batch by device, into that of the pipeline, whose weights are shared as `sharing` says, and which offloads
/// `parts`. `shards(op)` is the `sim::shard_memory` of an operator, `devices(op)` the device of each of its shards.
template <class Shards, class Devices>
void spread_over_micro_batches(graph::dense_graph const& g, pipelining const& how, sim::simulation_options const& options,
                               sim::iteration_plan const& plan, sharing_plan const& sharing, offload_plan const& parts, Shards const& shards,
                               Devices const& devices, std::vector<sim::memory_use>& use) {
    for (auto& of_device : use) of_device.cache *= how.micro_batches; // each has its own
    if (!options.training) return;
    auto activations = activations_under_way(g, how, shards, devices, use.size());
    add_offloaded(parts, how, activations);
    for (std::size_t d = 0; d < use.size(); ++d) use[d].activations = activations[d];
    if (how.sharded >= sharded_states::optimizer) shard_optimizer_memory(options, plan, sharing, use);
    if (how.sharded >= sharded_states::gradients) shard_block_memory(how, plan, sharing, use);
}

} // namespace parsearch::pipeline
