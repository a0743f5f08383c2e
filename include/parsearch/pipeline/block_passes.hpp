#pragma once
/// What a stage takes whose weights move block by block.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::pipeline {

/// A block of a stage and one micro-batch, in picoseconds.
struct block_times {
    double forward = 0, backward = 0; ///< of devices
    double gather = 0;                ///< weights, on every visit, on the busiest link
    double reduce = 0;                ///< gradients, behind each backward, on that link
    double once = 0;                  ///< behind the reduction of the last micro-batch, on that link
    double across = 0;                ///< behind that reduction as well, on other links
    friend bool operator==(block_times const&, block_times const&) = default;
};

/// A micro-batch among others, in picoseconds.
struct block_passes {
    double forward = 0, backward = 0;
    double head = 0; ///< before the first forward
    double tail = 0; ///< behind the last backward
};

/// Visits of `blocks`, at least one, as `unroller` has them, forward and backward in turn: on the link the gradients of a visit are reduced when it
/// is over, then weights gathered for the visit after the next, which waits for both. Of two rounds the second counts, and what the first takes
/// longer. Complexity: linear.
[[nodiscard]] block_passes passes_of(std::span<block_times const> blocks);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/block_passes.ipp>
#endif
