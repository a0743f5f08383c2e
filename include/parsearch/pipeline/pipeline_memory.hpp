#pragma once
/// Memory of a pipeline: as many activations as micro-batches are under way, less where they are computed again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>

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

namespace detail {
/// A stage and a segment in it.
using stage_segment = std::pair<std::uint32_t, std::uint32_t>;
[[nodiscard]] inline stage_segment segment_at(pipelining const& how, std::size_t op) noexcept { return {how.stage[op], how.segment_of(op)}; }

/// The segments that are computed again: of stages that do so, and with an operator to which a gradient goes back. Ascending.
[[nodiscard]] inline std::vector<stage_segment> segments_again(graph::dense_graph const& g, pipelining const& how) {
    std::vector<stage_segment> out;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.trains[op] && how.recomputes(how.stage[op])) out.push_back(segment_at(how, op));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}
/// Whether edge `e` brings a segment something from outside.
[[nodiscard]] inline bool enters(graph::dense_graph const& g, pipelining const& how, graph::edge const& e) {
    return g.operations[e.producer].work == ops::work_class::source || segment_at(how, e.producer) != segment_at(how, e.consumer);
}
} // namespace detail

/// Bytes by device of what operators of segments that are computed again read from outside of them: what is kept of one micro-batch. `shards(op)` is the `sim::shard_memory` of an
/// operator, `devices(op)` the device of each of its shards. A tensor is counted once per device, at the largest part that an operator there reads.
template <class Shards, class Devices>
[[nodiscard]] std::vector<byte_count> segment_inputs(graph::dense_graph const& g, pipelining const& how, Shards const& shards, Devices const& devices, std::size_t count) {
    auto const again = detail::segments_again(g, how);
    std::vector<byte_count> sum(count, 0), most(count, 0), read(count, 0);
    for (std::uint32_t op = 0; op < g.size(); ++op)
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
            for (auto const number : g.out(op)) {
                auto const& e = g.edges[number];
                if (e.slot != slot || !detail::enters(g, how, e) || !std::binary_search(again.begin(), again.end(), detail::segment_at(how, e.consumer))) continue;
                for (auto const d : devices(e.consumer)) read[d] += shards(e.consumer).inputs[e.input];
                for (auto const d : devices(e.consumer))
                    if (auto const bytes = std::exchange(read[d], 0)) most[d] = std::max(most[d], bytes);
            }
            for (std::size_t d = 0; d < count; ++d) sum[d] += std::exchange(most[d], 0);
        }
    return sum;
}

/// Bytes by device of the activations of the largest segment there, among those that are computed again, of one micro-batch, beside its inputs.
template <class Shards, class Devices>
[[nodiscard]] std::vector<byte_count> largest_segment(graph::dense_graph const& g, pipelining const& how, sim::simulation_options const& options, Shards const& shards, Devices const& devices,
                                                      std::size_t count) {
    auto const segments = detail::segments_again(g, how);
    std::vector<byte_count> most(count, 0);
    if (segments.empty()) return most;
    graph::dense_graph part = g; // in which only one segment trains: what the others read is not kept
    for (auto const& e : g.edges)
        if (detail::enters(g, how, e)) part.operations[e.consumer].inputs[e.input].saved = false;
    sim::memory_account account(part, count);
    std::vector<sim::memory_use> use;
    for (auto const& segment : segments) {
        for (std::size_t op = 0; op < g.size(); ++op) part.trains[op] = g.trains[op] && detail::segment_at(how, op) == segment;
        account.add_up(options, std::vector<sim::class_plan>{}, shards, devices, use);
        for (std::size_t d = 0; d < count; ++d) most[d] = std::max(most[d], use[d].activations);
    }
    return most;
}

/// Turns `use`, the memory of one micro-batch by device, into that of the pipeline. A device that runs several stages is taken to have as many micro-batches under way as the one
/// with the most, in all of them: an upper bound. Of stages that compute again a device keeps the inputs of their segments, of the micro-batches under way, and the activations of one
/// segment; where only some of its stages do, all is kept.
template <class Shards, class Devices>
void spread_over_micro_batches(graph::dense_graph const& g, pipelining const& how, sim::simulation_options const& options, sim::iteration_plan const& plan, Shards const& shards,
                               Devices const& devices, std::vector<sim::memory_use>& use) {
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
    if (!how.sharded_optimizer) return;
    std::vector<double> state(use.size(), 0);
    auto const states = sim::cost_of(options.optimizer).states;
    for (auto const& c : plan.classes)
        for (auto const& h : c.sync.held) state[h.device] += static_cast<double>(sim::optimizer_memory(h, states)) * own_share(c.sync, h);
    for (std::size_t d = 0; d < use.size(); ++d) use[d].optimizer = static_cast<byte_count>(state[d] + 0.5);
}

} // namespace parsearch::pipeline
