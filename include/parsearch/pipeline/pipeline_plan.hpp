#pragma once
/// A pipeline with its strategy, and how it reads.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::pipeline {

/// A pipeline and a strategy of its micro-batches: what `partition` finds.
struct pipeline_plan {
    using cost_type = picoseconds;
    pipelining how;
    space::flat_strategy strategy; ///< of one of `how.micro_batches` micro-batches: legal on `micro_batch_problem(problem, how.micro_batches)`
    std::vector<std::uint32_t> tensor_parallel{}; ///< by stage: degree of tensor parallelism; the rest of its devices is data parallel. Empty where
                                                  ///< the strategy is none of these
    std::uint32_t expert_parallel = 1;            ///< neighbours over which the experts of mixtures are split, see `space::neighbour_split`
    std::uint32_t context_parallel = 1;           ///< groups of `tensor_parallel` neighbours over which positions of sequences are split
    std::uint32_t context_heads = 1;              ///< of these, over how many attention has heads in place of positions

    [[nodiscard]] std::uint32_t most_tensor_parallel() const noexcept {
        return tensor_parallel.empty() ? 1 : *std::max_element(tensor_parallel.begin(), tensor_parallel.end());
    }
    friend bool operator==(pipeline_plan const&, pipeline_plan const&) = default;
};

/// A plan, and the devices of a problem that it is on.
struct placed_plan {
    pipeline_plan plan;                 ///< of `on_devices(problem, devices)`
    std::vector<std::size_t> devices{}; ///< ascending; empty: all
    /// The numbers of its devices, of a problem with so many.
    [[nodiscard]] std::vector<std::size_t> numbers(std::size_t all) const {
        if (!devices.empty()) return devices;
        std::vector<std::size_t> out(all);
        std::iota(out.begin(), out.end(), std::size_t{0});
        return out;
    }
    friend bool operator==(placed_plan const&, placed_plan const&) = default;
};

/// How many segments of stage `s`, or of all, offload what some operator keeps, and how many there are.
[[nodiscard]] std::pair<std::size_t, std::size_t> offloaded_segments(pipelining const& how, std::optional<std::uint32_t> s = {});

/// A textbook plan in a few words: "tensor 4 x pipeline 2 x data 8, 32 micro-batches, sharded optimizer, computed again". `devices`: of the cluster
/// of one of `replicas` (`simulation_options::replicas`).
[[nodiscard]] std::string short_name(pipeline_plan const& plan, std::size_t devices, std::size_t replicas = 1);

/// Runs of operators in topological order, by first and last name, with devices and degrees: a line per stage, after one that says how the pipeline
/// runs. Throws `invalid_input` where the plan is not one of `problem`.
[[nodiscard]] std::string to_string(parallelization const& problem, pipeline_plan const& plan);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/pipeline_plan.ipp>
#endif
