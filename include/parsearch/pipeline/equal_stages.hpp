#pragma once
/// Pipelines of equal stages, what is estimated of them, and what a device of one keeps of a micro-batch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/replica_times.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace parsearch::pipeline {

/// A pipeline of equal stages: each runs on `devices / groups()` neighbours, with operators divided as `split` says and data parallelism over the
/// rest.
struct equal_stages {
    std::uint32_t stages = 1;
    std::uint32_t interleaved = 1; ///< stages on each group of devices, see `launch_rule`
    std::uint32_t micro_batches = 1;
    space::neighbour_split split{};
    launch_order order = launch_order::one_f_one_b;
    sharded_states sharded = sharded_states::none;
    std::uint32_t segments = 0; ///< of each stage, which it computes again; 0: it keeps its activations
    std::uint32_t kept = 0; ///< of these, the last (with `offloaded`: evenly), which keep their activations all the same; all: none is computed again
    std::uint32_t offloaded = 0; ///< and those, evenly among them, that keep what they keep on the host
    std::uint32_t joined = 0;    ///< blocks at either end of a stage with sharded gradients, see `stage_places::blocks`
    bool fitted = false;         ///< cut so that stages fit, where those that keep their activations may: see `stage_estimator::fitted`

    [[nodiscard]] launch_rule launching() const noexcept { return {order, stages, micro_batches, interleaved}; }
    [[nodiscard]] std::uint32_t groups() const noexcept { return launching().groups(); }
    [[nodiscard]] bool recomputes() const noexcept { return segments > kept; }
    friend bool operator==(equal_stages const&, equal_stages const&) = default;
};

/// An estimate of a pipeline.
struct stage_estimate {
    std::int64_t time = 0;  ///< picoseconds
    byte_count memory = 0;  ///< of the fullest device
    byte_count missing = 0; ///< bytes by which a device of its stage is exceeded, at most
};

/// Where stages begin, and which compute again.
struct fitted_stages {
    std::vector<std::size_t> first; ///< place of each stage's first operator in the topological order, without graph inputs
    std::vector<bool> recompute;    ///< by stage
};

namespace detail {

/// Bytes that a device of a stage keeps of a micro-batch until backward.
struct kept_bytes {
    byte_count here = 0, offloaded = 0;
    byte_count largest = 0; ///< of a segment that is offloaded
    byte_count last = 0;    ///< of the last segment, where that is
};

/// Those of the operators from place `begin` to `end`, as `how` has it; `again`: their stage computes again. Where some are offloaded segment by
/// segment, with the cuts of `narrow_cuts`. Complexity: linear in operators.
[[nodiscard]] kept_bytes kept_bytes_of(replica_times const& one, std::size_t begin, std::size_t end, equal_stages const& how, bool again);
} // namespace detail

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/equal_stages.ipp>
#endif
