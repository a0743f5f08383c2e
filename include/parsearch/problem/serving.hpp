#pragma once
/// Inference under a limit of its latency: which batch serves most.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch {

/// What a pass of inference takes with a batch.
struct served_batch {
    std::int64_t batch = 0; ///< samples
    picoseconds latency{};  ///< of the pass; infinity where nothing that was found fits the memory
    bool within = false;    ///< the limit
    [[nodiscard]] double per_second() const noexcept { return static_cast<double>(batch) / to_seconds(latency); }
};

/// The largest batch that passes within `limit`, as a larger one serves more: batches are doubled from `first` while they are within it, or halved
/// until they are; then the interval between the largest within and the smallest beyond is halved, down to `steps` parts of a doubling.
/// `latency(batch)` plans one batch and answers how long a pass takes, infinity where it does not fit. Answers all that were tried, ascending:
/// `best_of` is the one that serves most. Throws `invalid_input` where `first` or `steps` are not positive. Complexity: O(log(largest / first) + log
/// steps) plans.
///
///     auto const tried = batches_within(50ms, 64, [&](std::int64_t batch) {
///         auto const problem = step_of(batch); // make_problem(models::llama({.sequence = 1, .batch = batch, ...}), ...)
///         auto const found = search::mcmc(problem, data_parallel(problem), rng, {.evaluations = 5000});
///         return problem.feasible(found.best) ? found.cost : cost_traits<picoseconds>::infinity();
///     });
template <std::invocable<std::int64_t> Latency>
[[nodiscard]] std::vector<served_batch> batches_within(picoseconds limit, std::int64_t first, Latency const& latency, std::int64_t steps = 4) {
    if (first < 1) throw invalid_input("batches_within: the first batch is ", first, ": must be at least 1");
    if (steps < 1) throw invalid_input("batches_within: a doubling in ", steps, " steps: must be at least 1");
    constexpr std::int64_t most = std::int64_t{1} << 28; // samples of a model of the zoo
    std::vector<served_batch> out;
    auto const passes = [&](std::int64_t batch) {
        picoseconds const takes = latency(batch);
        out.push_back({batch, takes, takes <= limit && takes < cost_traits<picoseconds>::infinity()});
        return out.back().within;
    };
    std::int64_t within = 0, beyond = 0;
    if (passes(first)) {
        for (within = first; beyond == 0 && within <= most / 2;) (passes(2 * within) ? within : beyond) = 2 * within;
    } else {
        for (beyond = first; within == 0 && beyond > 1;) (passes(beyond / 2) ? within : beyond) = beyond / 2;
    }
    auto const step = std::max<std::int64_t>(1, within / steps);
    while (within > 0 && beyond - within > step) {
        auto const middle = within + std::max<std::int64_t>(1, (beyond - within) / (2 * step)) * step;
        (passes(middle) ? within : beyond) = middle;
    }
    std::ranges::sort(out, {}, &served_batch::batch);
    return out;
}

/// Of `tried` the batch within the limit that serves most samples per second; null where none is within.
[[nodiscard]] served_batch const* best_of(std::vector<served_batch> const& tried) noexcept;

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/serving.ipp>
#endif
