#pragma once
/// What plans with micro-batches and stages may be, and how long `partition` looks for them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::pipeline {

struct pipeline_plan;

/// Options of `partition`, which always ends by itself. `plan_problem` reads of them what may be chosen.
struct partition_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`
    std::optional<std::uint64_t> evaluations{};     ///< pipelines simulated, at least 1; what operators take is asked beside
    std::optional<std::uint64_t> estimates{};       ///< ways to divide the network that are estimated; what the clock left, a second run repeats
    std::stop_token stop{};                         ///< see `search::budget`

    std::vector<space::flat_strategy> starts{}; ///< to be compared without a pipeline, beside those of experts
    std::uint64_t max_stages = 64;              ///< at least 1
    std::uint64_t max_micro_batches = 64;       ///< at least 1
    std::uint64_t max_interleaved = 8;          ///< stages on each group of devices, at least 1
    bool recomputation = true;                  ///< stages may compute their activations again
    bool offload = true;                        ///< activations may wait for backward on hosts, where devices have a `host_rate`
    bool context_parallel = true;               ///< positions of sequences may be split, where samples are too few
    bool zero_bubble = true;                    ///< backward may be cut in two: `launch_order::zb_h1`, `zb_h2`
    bool sharded_optimizer = true;              ///< devices may share the optimizer's state of weights that several hold
    bool sharded_gradients = true;              ///< and of gradients; needs `sharded_optimizer`, as those below
    bool sharded_parameters = true;             ///< and of parameters, which are gathered block by block
    bool sharded_within_nodes = true;           ///< the same within nodes; needs `sharded_parameters`, too
    bool cuts_anywhere = false;                 ///< stages may begin at any operator, not only between blocks (`stage_places`)
    std::uint64_t beam = 4;                     ///< pipelines that are improved step by step, at least 1
    std::uint64_t progress_interval = 1000;     ///< evaluations from one `search::progress` to the next; 0: none
    /// What a plan costs beside its iterations, not negative, infinity where it is refused; none: nothing. Called with the numbers of its devices, or
    /// with none where it is of all, by several threads at once where a search has several. See `plan_change::surcharge`.
    std::function<picoseconds(pipeline_plan const& plan, std::span<std::size_t const> devices)> surcharge{};
    std::optional<picoseconds> bound{}; ///< a cost that is known from elsewhere: what can not be better by its work is not simulated
};

/// Segments of a stage that searches try at most.
inline constexpr std::uint32_t most_segments = 64;

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(partition_options const& o);

/// `cost`, which is that of `plan` on all devices, and what `o` says that it costs beside its iterations; at most infinity. Throws `invalid_input`
/// where that is negative.
[[nodiscard]] picoseconds with_surcharge(partition_options const& o, pipeline_plan const& plan, picoseconds cost);

/// What plans of a problem may choose: by the options, and by what is simulated. Refers to both.
class plan_rules {
  public:
    /// Complexity: that of `divisible_samples`.
    plan_rules(parallelization const& problem, partition_options const& options)
        : simulation_(&problem.options()), options_(&options), samples_(static_cast<std::uint64_t>(divisible_samples(problem.graph()))),
          most_micro_batches_(std::min<std::uint64_t>({options.max_micro_batches, samples_, std::numeric_limits<std::uint32_t>::max()})) {}

    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
    [[nodiscard]] std::uint64_t most_micro_batches() const noexcept { return most_micro_batches_; }
    [[nodiscard]] bool divide_samples(std::uint64_t micro_batches) const noexcept {
        return micro_batches >= 1 && micro_batches <= most_micro_batches_ && samples_ % micro_batches == 0;
    }
    [[nodiscard]] bool may_recompute() const noexcept { return options_->recomputation && simulation_->training; }
    /// Where devices can, see `stage_builder::may_offload`.
    [[nodiscard]] bool may_offload() const noexcept { return options_->offload && simulation_->training; }
    [[nodiscard]] bool may_shard() const noexcept {
        return options_->sharded_optimizer && simulation_->training && simulation_->synchronisation == sim::synchronisation::all_reduce;
    }
    /// Whether devices of stages on `group` neighbours may share `states`; `within_nodes`: whether these have several nodes, each with several of
    /// them.
    [[nodiscard]] bool may_shard(sharded_states states, std::size_t group, bool within_nodes) const noexcept;
    /// Whether stages may launch in this order, where devices share `states`, and some activations are offloaded or none.
    [[nodiscard]] bool may_run(launch_order order, sharded_states states, bool offloads = false) const noexcept {
        return !cuts_backward(order) || (options_->zero_bubble && simulation_->training && states < sharded_states::gradients && !offloads);
    }

  private:
    sim::simulation_options const* simulation_;
    partition_options const* options_;
    std::uint64_t samples_, most_micro_batches_;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/partition_options.ipp>
#endif
