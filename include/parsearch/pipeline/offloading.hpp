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
/// `devices(op)` the device of each of its shards, `count` the number of devices. Complexity: O(edges * shards) for each such segment.
template <class Shards, class Devices>
[[nodiscard]] offload_plan offloaded_parts(graph::dense_graph const& g, pipelining const& how, Shards const& shards, Devices const& devices,
                                           std::size_t count) {
    offload_plan out;
    if (!how.offloads()) return out;
    auto const again = detail::computed_again(g, how);
    std::map<detail::stage_segment, std::uint32_t> first; // operator
    for (auto const op : g.order)
        if (how.offloads(op) && (again[op] || (g.trains[op] && !how.computes_again(op)))) first.try_emplace(detail::segment_at(how, op), op);
    graph::dense_graph part = g;
    sim::memory_account account(part, count);
    for (auto const& [segment, op] : first) {
        auto const of_segment = [&](std::size_t o) { return how.offloads(o) && detail::segment_at(how, o) == segment; };
        for (std::size_t o = 0; o < g.size(); ++o) part.trains[o] = g.trains[o] && !how.computes_again(o) && of_segment(o);
        auto const add = [&](std::uint32_t d, byte_count bytes, std::uint32_t) {
            auto& of_device = out[{d, segment}];
            of_device.bytes += bytes;
            of_device.op = op;
        };
        account.for_activations(
            shards, devices, [](std::size_t) { return 0U; }, add);
        for_segment_inputs(g, how, of_segment, shards, devices, add);
    }
    std::erase_if(out, [](auto const& p) { return p.second.bytes == 0; });
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
