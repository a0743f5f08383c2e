#pragma once
/// What a pipeline moves between devices.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// Bytes moved between devices in one iteration, by `traffic_kind`. `one` is the plan of a micro-batch of `g`, `carriers` as of `shared_transfers`,
/// or empty, `transfers` what sharded parameters move. What moves within a segment that is computed again moves again; gradients of weights move once
/// for all micro-batches. Complexity: linear in operators and edges.
[[nodiscard]] inline std::array<double, sim::traffic_kinds> pipeline_traffic(graph::dense_graph const& g, pipelining const& how,
                                                                             std::span<std::uint32_t const> carriers, sim::iteration_plan const& one,
                                                                             std::span<std::pair<std::uint32_t, block_transfer> const> transfers,
                                                                             bool training) {
    constexpr auto gradient = static_cast<std::size_t>(sim::traffic_kind::gradient);
    constexpr auto partial = static_cast<std::size_t>(sim::traffic_kind::partial_sum);
    constexpr auto weights = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    std::array<double, sim::traffic_kinds> sum{};
    auto const again = detail::computed_again(g, how);
    auto const passes = [&](std::size_t op) { return training && again[op] ? 2.0 : 1.0; }; // forward ones of one micro-batch
    for (std::uint32_t e = 0; e < one.edges.size(); ++e) {
        if (!carriers.empty() && carriers[e] != e) continue;
        auto const forward = detail::enters(g, how, g.edges[e]) ? 1.0 : passes(g.edges[e].consumer);
        for (std::size_t k = 0; k < sim::traffic_kinds; ++k) sum[k] += one.edges[e].bytes[k] * (k == gradient ? 1 : forward);
    }
    for (std::size_t op = 0; op < one.operators.size(); ++op) sum[partial] += one.operators[op].partial_bytes * passes(op);
    for (auto& s : sum) s *= how.micro_batches;
    sum[weights] = sim::traffic_of(one, training)[weights];
    if (!training || !how.sharded_parameters) return sum;
    std::map<std::pair<std::uint32_t, block_transfer>, double> volume; // of one transfer
    for (auto const& c : one.classes) {
        double half = 0;
        for (auto const& group : c.sync.groups)
            half +=
                sim::collective_volume(collective_kind::all_reduce, static_cast<double>(group.bytes), static_cast<double>(group.devices.size())) / 2;
        std::set<std::uint32_t> readers;
        for (auto const op : c.members) readers.insert(how.block_of(op));
        for (auto const b : readers) volume[{b, block_transfer::gather}] += half;
        volume[{how.block_of(c.members.front()), block_transfer::reduce}] += half;
    }
    sum[weights] = 0;
    for (auto const& t : transfers) sum[weights] += volume.at(t);
    return sum;
}

} // namespace parsearch::pipeline
