#pragma once
/// Activations on the host: what segments keep there between forward and backward, and how long it takes over the link.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::pipeline {

/// Which way a task copies what a segment keeps.
enum class host_copy : std::uint8_t { none, to_host, from_host };

/// What a device has of a segment that is offloaded, of one micro-batch.
struct offloaded_part {
    byte_count bytes = 0;
    std::int64_t time = 0; ///< picoseconds of a copy, one way
    std::uint32_t op = 0;  ///< the first operator that keeps any of it, in topological order
};
/// By device, then stage and segment.
using offload_plan = std::map<std::pair<std::uint32_t, detail::stage_segment>, offloaded_part>;

/// What is offloaded, without times: of each segment what its offloaded operators keep until backward, those that compute again of what they read
/// from outside. A tensor is there once per device and segment, at its largest part. `shards(op)` is the `sim::shard_memory` of an operator,
/// `devices(op)` the device of each of its shards, `count` the number of devices. Complexity: O(edges * shards), and that of sorting them.
template <class Shards, class Devices>
[[nodiscard]] offload_plan offloaded_parts(graph::dense_graph const& g, pipelining const& how, Shards const& shards, Devices const& devices,
                                           std::size_t count) {
    offload_plan out;
    if (!how.offloads()) return out;
    auto const again = detail::computed_again(g, how);
    std::map<detail::stage_segment, std::uint32_t> first; // operator
    for (auto const op : g.order)
        if (how.offloads(op) && (again[op] || (g.trains[op] && !how.computes_again(op)))) first.try_emplace(detail::segment_at(how, op), op);
    segment_keepers kept(how);
    auto const add = [&](auto const& keepers) { kept.add(keepers); };
    sim::for_kept_tensors(
        g, [&](std::uint32_t op, graph::edge const*) { return how.offloads(op) && !how.computes_again(op); }, add);
    for_segment_inputs(
        g, how, again, [&](std::uint32_t op) { return how.offloads(op); }, add);
    sim::memory_account account(g, count);
    std::move(kept).add_up(account, shards, devices, [&](std::uint32_t d, byte_count bytes, detail::stage_segment const& segment) {
        out[{d, segment}] = {.bytes = bytes, .op = first.at(segment)};
    });
    return out;
}

/// Adds to `use`, bytes of activations by device, what `parts` have there around their use: twice the largest segment, as one is used while another
/// moves, but no more than of all micro-batches under way. Complexity: linear in parts.
void add_offloaded(offload_plan const& parts, pipelining const& how, std::vector<byte_count>& use);

/// Throws `invalid_input` naming the device and the rule where `parts` are on a device that does not say how fast it copies to its host.
void validate(offload_plan const& parts, graph::dense_graph const& g, std::vector<device_description> const& devices);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/offloading.ipp>
#endif
