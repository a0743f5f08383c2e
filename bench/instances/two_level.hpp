#pragma once
/// Searches of published systems as two levels of ours: stages outside, the operators or layers of a stage inside.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>

#include "arena.hpp"

namespace bench {

/// Who is told of plans that are better than all before.
using improvement_observer = std::function<void(ps::search::improved<ps::picoseconds> const&)>;

inline search_line const alpa_line{"alpa", "of plans: Alpa's two levels, cuts into stages on submeshes over additive costs of operators"};
inline search_line const galvatron_line{"galvatron", "of plans: Galvatron's two levels, even stages over layers that choose within the memory"};

/// Alpa's two levels (Zheng et al., Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep Learning, OSDI 2022), in our plans.
///
/// For each power of two of micro-batches that divides the samples, with layers that are computed again and without:
/// - Inside (section 4): the operators of a run of layers on a submesh take the configurations of least additive cost, found exactly
///   (`search::additive::minimise`): computation, resharding, and of what comes once (gradients, updates) the part of a micro-batch. Alpa tries
///   logical meshes, with samples on one of their axes. Here samples are split over D, D/2, D/4, ... groups of the D devices, none larger than a node
///   where that can be, and among those of a group the weights as far as they can be, in the smallest groups of several also freely; and at last each
///   operator takes any of at most 20 configurations.
/// - Outside (section 5.2): cuts of at most 16 layers into at most as many stages, each on 1, 2, 4, ... devices of a node or so many nodes, of least
///   sum of the stages' times + (micro-batches - 1) * the slowest: a dynamic program for each bound on the slowest, among the stages that fit with
///   what 1F1B keeps. Stages have at least half, and at most twice, the part of the work that they have of the devices. Of bounds closer than
///   2 % the largest is tried, which allows as much.
///
/// The best cuts for each number of micro-batches are simulated first, then the best of each number of stages, those that are estimated best first.
/// Where the former do not fit, estimates of memory are raised and cuts found again. Not as published: of nodes there are powers of two; the
/// optimizer's state is shared by all weights (ZeRO-1), as a plan has one answer for all, and gradients are not; layers are the blocks of the
/// network, neighbours joined where these are more than 16; times of stages are sums of terms, not measured.
///
/// The answer is the best of `start`, which is simulated first, and of these. Ends by itself (`exhausted`), or by its budget; each simulated plan is
/// an evaluation. Deterministic but for the time: nothing is drawn. The observer is told each improvement. Throws as `partition`. Complexity: for
/// each number of micro-batches and each submesh an exact minimum for each distinct run of layers and way to split samples, and O(layers^2 * stages *
/// devices * submeshes) for each bound.
[[nodiscard]] ps::pipeline::pipeline_result alpa(ps::parallelization const& problem, ps::pipeline::pipeline_plan start, std::mt19937_64& rng,
                                                 ps::pipeline::partition_options const& options, improvement_observer const& observer);

/// Galvatron's two levels (Miao et al., Galvatron: Efficient Transformer Training over Multiple GPUs Using Automatic Parallelism, VLDB 2023; and with
/// layers that are computed again and balanced stages Wang et al., Improving Automatic Parallel Training via Balanced Memory Workload
/// Optimization, TKDE 2024), in our plans.
///
/// For each power of two of stages, on equally many devices each, cut for equal time or for equal memory, and each power of two of micro-batches:
/// each layer of a stage chooses its degree of tensor parallelism among neighbours, data parallelism over the rest, and whether it is computed again,
/// for the least time within the memory of a device, found exactly (theirs is a dynamic program over layers and memory; here it is
/// `dominator_dp` with a budget, of memory in 512ths). A layer's time is that of one replica simulated alone; layers that choose otherwise than those
/// before them pay for the resharding.
///
/// All are simulated, those that are estimated best first; where one does not fit, layers choose again within less. Not as published: states of
/// weights (nothing, the optimizer's, gradients, parameters) are shared by all layers or by none, as a plan has one answer for all; tensor
/// parallelism is always of the nearest neighbours; stages are not balanced between equal time and equal memory; communication does not slow
/// computation down that it runs beside.
///
/// Start, answer, budget, observer and errors as those of `alpa`. Complexity: for each number of stages, of micro-batches and kind of shared states a
/// minimum per stage.
[[nodiscard]] ps::pipeline::pipeline_result galvatron(ps::parallelization const& problem, ps::pipeline::pipeline_plan start, std::mt19937_64& rng,
                                                      ps::pipeline::partition_options const& options, improvement_observer const& observer);

/// Stages, each a run of layers on neighbouring devices.
struct layered_stages {
    std::uint32_t micro_batches = 1;
    ps::pipeline::sharded_states sharded = ps::pipeline::sharded_states::none;
    std::vector<std::size_t> first{};    ///< place in the order of each stage's first operator
    std::vector<std::int32_t> device{};  ///< the first of each stage
    std::vector<std::size_t> layer{};    ///< place of each layer's first operator, those of stages among them
    std::vector<bool> again{};           ///< by layer: computed again
    ps::space::flat_strategy strategy{}; ///< of each operator, counted from the first device of its stage
};

/// What both searches have: the start, a simulator, the best plan and a budget.
class two_level_search {
  public:
    /// Simulates `start`. Refers to all of these.
    two_level_search(std::string_view name, ps::parallelization const& problem, ps::pipeline::partition_options const& options,
                     improvement_observer const& observer, ps::pipeline::pipeline_plan start);
    two_level_search(two_level_search const&) = delete;
    two_level_search& operator=(two_level_search const&) = delete;

    [[nodiscard]] bool over() { return kernel_.due().has_value(); }
    [[nodiscard]] std::int64_t best() const noexcept {
        return feasible_ ? kernel_.best_cost().count() : ps::cost_traits<ps::picoseconds>::infinity().count();
    }
    /// Simulates the plan. Answers 0 where it fits, else how many times the memory that it has the fullest device takes.
    double consider(layered_stages const& s);
    [[nodiscard]] ps::pipeline::pipeline_result finish();

    [[nodiscard]] std::chrono::nanoseconds time_left() const { return kernel_.time_left(); }

    [[nodiscard]] ps::pipeline::detail::stage_builder& builder() noexcept { return builder_; }
    [[nodiscard]] ps::pipeline::plan_rules const& rules() const noexcept { return rules_; }
    /// The powers of two that divide the samples, the most first.
    [[nodiscard]] std::vector<std::uint32_t> micro_batches() const;
    /// Where layers begin, from 0 on: at blocks of the network, or at parts of them where these are too few for so many stages.
    [[nodiscard]] std::vector<std::size_t> layers(std::size_t stages);

  private:
    using observer_type = ps::search::listener<ps::search::improved<ps::picoseconds>>;

    void price(ps::pipeline::pipeline_plan&& plan);
    [[nodiscard]] ps::pipeline::pipeline_plan plan_of(layered_stages const& s);

    ps::parallelization const* problem_;
    improvement_observer observer_;
    observer_type tell_;
    ps::search::kernel<ps::pipeline::pipeline_plan, ps::picoseconds, observer_type> kernel_;
    ps::pipeline::detail::stage_builder builder_;
    ps::pipeline::plan_rules rules_;
    bool feasible_ = false;
};

} // namespace bench
