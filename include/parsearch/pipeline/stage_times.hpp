#pragma once
/// What stages take for a micro-batch, and when they are done with all of them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/pipeline/launch_order.hpp>

namespace parsearch::pipeline {

/// A stage and one micro-batch, in picoseconds.
struct stage_times {
    std::int64_t forward = 0, backward = 0;
    std::int64_t weights = 0; ///< gradients of weights, where backward is cut; `backward` is the rest then
    std::int64_t again = 0;   ///< forward that is computed once more, ahead of backward
    std::int64_t ahead = 0;   ///< the part of `again` that need not wait for gradients
    std::int64_t message = 0; ///< from the stage before, and back to it
    std::int64_t head = 0;    ///< before the first forward: weights are gathered
    std::int64_t tail = 0;    ///< behind the last backward: gradients are reduced
};

/// When each of `stages`, as many as `r` has, is done with its last micro-batch: each group of devices runs what it launches in that order.
/// Complexity: linear in launches.
[[nodiscard]] std::vector<std::int64_t> ends_of(std::span<stage_times const> stages, launch_rule const& r, bool training);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/stage_times.ipp>
#endif
