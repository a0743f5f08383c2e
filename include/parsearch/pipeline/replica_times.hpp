#pragma once
/// What one micro-batch takes on one replica of a network: what estimates of pipelines are put together from.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/pipeline/weight_gradients.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace parsearch::pipeline::detail {

/// One micro-batch on the devices of one replica, by place in the order of operators.
struct replica_times {
    std::vector<std::int64_t> forward;          ///< end of the forward pass of the operators up to here
    std::vector<std::int64_t> backward;         ///< from the end of all forward passes to that of the backward passes down to here
    std::vector<std::int64_t> busy;             ///< computation of a device, both ways
    std::vector<std::int64_t> weight_gradients; ///< of that, what may be computed later: see `weight_gradient_share`
    std::vector<std::int64_t> update;
    std::vector<byte_count> weights, cache, gradients, optimizer, activations;
    std::vector<waiting_bytes> waiting; ///< for gradients of weights, if they are
    std::vector<double> own;            ///< the part of the weights that a device of the replica would keep the optimizer's state of
    std::vector<bool> experts;          ///< whether its experts are split
    std::vector<byte_count> borrowed;   ///< weights that it reads, and that are counted at an operator of another block
    std::vector<byte_count> crossing;   ///< bytes that cross before it, a device's share
    std::vector<byte_count> buffers;    ///< inputs and outputs while it runs
    std::vector<std::size_t> home;      ///< place of the operator at which its weights are counted
};

/// A part of the batch of `problem` on the devices of one replica, whose operators are divided as `by` says. `order`: the
/// operators with work, in topological order; `blocks`: of each of them, its block. Complexity: that of one simulation on `by.replica()` devices.
[[nodiscard]] replica_times replica_times_of(parallelization const& problem, std::span<std::uint32_t const> order,
                                             std::span<std::uint32_t const> blocks, ops::batch_part samples, space::neighbour_split by);

} // namespace parsearch::pipeline::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/replica_times.ipp>
#endif
