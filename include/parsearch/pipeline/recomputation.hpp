#pragma once
/// Recomputation: segments whose activations are computed again, and the memory that they need.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

namespace detail {

/// A stage and a segment in it.
using stage_segment = std::pair<std::uint32_t, std::uint32_t>;
[[nodiscard]] inline stage_segment segment_at(pipelining const& how, std::size_t op) noexcept { return {how.stage[op], how.segment_of(op)}; }

/// Of each operator, whether its forward runs again: where it computes again, in a segment with another such operator to which a gradient goes back.
[[nodiscard]] std::vector<bool> computed_again(graph::dense_graph const& g, pipelining const& how);

/// Whether edge `e` brings what is computed again something that is not.
[[nodiscard]] inline bool enters(graph::dense_graph const& g, pipelining const& how, graph::edge const& e) {
    return g.operations[e.producer].work == ops::work_class::source || segment_at(how, e.producer) != segment_at(how, e.consumer) ||
           !how.computes_again(e.producer);
}
} // namespace detail

/// By stage, whether any of its operators is offloaded: it runs forward segment by segment, and backward likewise, last first.
[[nodiscard]] std::vector<bool> offloading_stages(graph::dense_graph const& g, pipelining const& how);

/// By operator, a number for its stage and, where it is computed again or in a stage that offloads, its segment: operators of one number receive
/// together what they read alike (a residual that one normalizes and another adds). Empty where all are of one.
[[nodiscard]] std::vector<std::uint32_t> reading_parts(graph::dense_graph const& g, pipelining const& how);

/// Calls `take(device, bytes, stage)` for what operators that are computed again, those with `which(op)`, read of others, and from outside of their
/// segments: what is kept of one micro-batch. `shards(op)` is the `sim::shard_memory` of an operator, `devices(op)` the device of each of its shards.
/// A tensor is counted once per device, at the largest part that an operator there reads, in the first of their stages.
template <class Which, class Shards, class Devices, class Take>
void for_segment_inputs(graph::dense_graph const& g, pipelining const& how, Which const& which, Shards const& shards, Devices const& devices,
                        Take const& take) {
    auto const again = detail::computed_again(g, how);
    struct kept_part {
        byte_count bytes = 0;
        std::uint32_t stage = 0;
    };
    std::map<std::uint32_t, byte_count> read; // by device
    std::map<std::uint32_t, kept_part> most;
    for (std::uint32_t op = 0; op < g.size(); ++op)
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
            most.clear();
            for (auto const number : g.out(op)) {
                auto const& e = g.edges[number];
                if (e.slot != slot || !again[e.consumer] || !which(e.consumer) || !detail::enters(g, how, e)) continue;
                read.clear();
                for (auto const d : devices(e.consumer)) read[d] += shards(e.consumer).inputs[e.input];
                for (auto const& [d, bytes] : read) {
                    auto const stage = how.stage[e.consumer];
                    auto const [at, first] = most.try_emplace(d, kept_part{bytes, stage});
                    if (!first) at->second = {std::max(at->second.bytes, bytes), std::min(at->second.stage, stage)};
                }
            }
            for (auto const& [d, part] : most) take(d, part.bytes, part.stage);
        }
}

/// Calls `take(device, bytes, stage)` for each segment that is computed again: what it keeps of one micro-batch while it runs backward, beside its
/// inputs. `count`: of devices.
template <class Shards, class Devices, class Take>
void for_segments_again(graph::dense_graph const& g, pipelining const& how, Shards const& shards, Devices const& devices, std::size_t count,
                        Take const& take) {
    auto const again = detail::computed_again(g, how);
    std::set<detail::stage_segment> segments;
    for (std::size_t op = 0; op < g.size(); ++op)
        if (again[op]) segments.insert(detail::segment_at(how, op));
    if (segments.empty()) return;
    graph::dense_graph part = g; // in which only that of one segment trains: what the others read is not kept
    for (auto const& e : g.edges)
        if (detail::enters(g, how, e)) part.operations[e.consumer].inputs[e.input].saved = false;
    sim::memory_account account(part, count);
    std::vector<byte_count> sum(count, 0);
    for (auto const& segment : segments) {
        for (std::size_t op = 0; op < g.size(); ++op) part.trains[op] = g.trains[op] && again[op] && detail::segment_at(how, op) == segment;
        account.for_activations(
            shards, devices, [](std::size_t) { return 0U; }, [&](std::uint32_t d, byte_count bytes, std::uint32_t) { sum[d] += bytes; });
        for (std::uint32_t d = 0; d < count; ++d)
            if (auto const bytes = std::exchange(sum[d], 0)) take(d, bytes, segment.first);
    }
}

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/recomputation.ipp>
#endif
