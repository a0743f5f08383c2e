#pragma once
/// How much memory a plan takes on a device, moment by moment.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/report.hpp>

namespace parsearch::pipeline {

/// Bytes from a moment on.
struct memory_step {
    picoseconds time{};
    byte_count bytes = 0;
    friend bool operator==(memory_step const&, memory_step const&) = default;
};

/// The memory of `device` over the iteration that `r` simulated of `plan`, whose micro-batches are of `g`: in the order of time, the first at 0.
/// Weights, gradients, optimizer state and buffers are there from the beginning. An activation comes when the first task that keeps it begins, on
/// that device and of that micro-batch, and goes when the last one's backward ends; what a segment computes again comes with that. What is offloaded
/// goes when its copy to the host ends, and comes when the one back begins. Where backward is cut, what products read and gradients of their outputs
/// go when the gradients of weights are there. It is never more than `r.memory[device]`, which adds up what is alive at different moments. Throws
/// `invalid_input` where plan, graph and report do not belong together. Complexity: O(n log n) in operators times micro-batches, and linear in the
/// tasks of `r`.
[[nodiscard]] std::vector<memory_step> memory_over_time(graph::dense_graph const& g, pipeline_plan const& plan, sim::report const& r,
                                                        std::uint32_t device);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/memory_over_time.ipp>
#endif
