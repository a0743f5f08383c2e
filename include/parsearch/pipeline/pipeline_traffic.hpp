#pragma once
/// What a pipeline moves between devices.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// What moves for blocks whose weights are shared: how often, by block.
using transfer_counts = std::map<std::pair<std::uint32_t, block_transfer>, std::uint64_t>;

/// Bytes moved between devices in one iteration, by `traffic_kind`. `one` is the plan of a micro-batch of `g`, `sharing` and
/// `transfers` how weights are shared and what moves for it. What moves within a segment that is computed again moves again;
/// gradients of weights move once for all micro-batches. Complexity: linear in operators and edges.
[[nodiscard]] std::array<double, sim::traffic_kinds> pipeline_traffic(graph::dense_graph const& g, pipelining const& how,
                                                                      sim::iteration_plan const& one, sharing_plan const& sharing,
                                                                      transfer_counts const& transfers, bool training);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/pipeline_traffic.ipp>
#endif
