#pragma once
/// Simulates pipelines: every task of every micro-batch, with the contention between them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/folding/folded_scheduler.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/pipeline_memory.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_traffic.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>
#include <parsearch/pipeline/unroll.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/task/payload.hpp>
#include <parsearch/sim/task/pricing.hpp>

namespace parsearch::pipeline {

/// The problem of one of `n` micro-batches of `problem`, on which strategies of pipelines of `n` micro-batches are legal. It admits them on any
/// devices (`space_options::admits`): which these are is known of whole plans. Throws as `micro_batch`.
[[nodiscard]] inline parallelization micro_batch_problem(parallelization const& problem, std::int64_t n) {
    return with_graph(problem.anywhere(), micro_batch(problem.graph(), n));
}
/// The same of any part of the batch.
[[nodiscard]] inline parallelization micro_batch_problem(parallelization const& problem, ops::batch_part part) {
    return with_graph(problem.anywhere(), micro_batch(problem.graph(), part));
}

/// Predicts the iteration time of pipelines of one problem: of a `pipelining` and a strategy of its micro-batches. One simulator serves one thread.
///
/// The task graph is that of one micro-batch (docs/simulation.md), unrolled (`unroller`). Devices run what they launch in that order; links follow
/// the problem's discipline. One stage, one micro-batch and nothing computed again, offloaded or cut is a network as it is: what `sim::simulator`
/// simulates, task by task.
///
/// What repeats is scheduled once (`folded_scheduler`). The answers are those of all tasks, which are made when they are asked for.
class pipeline_simulator {
  public:
    /// Throws `invalid_input` where transfers of the problem are others than streaming: unrolling knows no ties between the tasks of a message;
    /// and where samples are balanced.
    explicit pipeline_simulator(parallelization const& problem);

    /// The cost of a pipeline: its makespan, with what `sim::simulation_options::memory` says of devices whose memory is exceeded (infinity where it
    /// rejects). Throws `invalid_input` where `how` or `strategy` does not fit, a device from which activations are offloaded has no `host_rate`, or
    /// the oracle answers a time out of range.
    template <Strategy<space::configuration> S> [[nodiscard]] picoseconds operator()(pipelining const& how, S const& strategy) {
        return within(how, strategy, cost_traits<picoseconds>::infinity()).value();
    }
    /// The same, or nothing where the cost is above `bound`, which takes less time: there is no schedule then.
    template <Strategy<space::configuration> S>
    [[nodiscard]] std::optional<picoseconds> within(pipelining const& how, S const& strategy, picoseconds bound) {
        prepare(how, strategy);
        auto const penalty = sim::memory_cost(work_->options, over_capacity(), work_->topology.size());
        if (penalty > bound) return std::nullopt;
        if (penalty == cost_traits<picoseconds>::infinity()) return penalty;
        auto const unlimited = bound == cost_traits<picoseconds>::infinity();
        if (!run(unlimited ? bound.count() : (bound - penalty).count())) return std::nullopt;
        return sim::total_cost(makespan(), penalty);
    }
    /// The makespan, whatever memory it needs, for the readers below.
    template <Strategy<space::configuration> S> picoseconds simulate(pipelining const& how, S const& strategy) {
        prepare(how, strategy);
        run(folded_scheduler::unbounded);
        return makespan();
    }

    /// Of the last pipeline simulated: its tasks, where they come from, when they ran, memory by device. Where memory was rejected or the cost above
    /// a bound, there are no tasks. Complexity: at the first call, that of scheduling all tasks. Throws `invalid_input` where they are 2^31 or more.
    [[nodiscard]] sim::task_graph const& tasks() {
        unfold();
        return scheduler_.tasks();
    }
    [[nodiscard]] std::vector<task_origin> const& origins() {
        unfold();
        return scheduler_.origins();
    }
    [[nodiscard]] sim::schedule const& schedule() {
        unfold();
        return scheduler_.schedule();
    }
    [[nodiscard]] std::vector<sim::memory_use> const& memory() const noexcept { return memory_; }
    /// How long it takes; 0 where there are no tasks.
    [[nodiscard]] picoseconds makespan() const noexcept { return picoseconds{scheduler_.makespan()}; }
    /// How many tasks were scheduled to tell: far fewer than there are where devices and rounds repeat.
    [[nodiscard]] std::uint64_t scheduled_tasks() const noexcept { return scheduled_; }
    /// How many there are. Complexity: linear in scheduled tasks, and in tasks of a micro-batch.
    [[nodiscard]] std::uint64_t all_tasks() const { return scheduler_.all_tasks(); }
    /// Bytes moved between devices in one iteration, by `traffic_kind`; where there are no tasks, without those for blocks whose weights are shared.
    /// Throws as `plan`.
    [[nodiscard]] std::array<double, sim::traffic_kinds> traffic() const {
        return pipeline_traffic(work_->graph, how_, plan(), sharing_, transfers(), work_->options.training);
    }
    /// How often what moves for blocks whose weights are shared.
    [[nodiscard]] transfer_counts transfers() const { return sharing_.empty() ? transfer_counts{} : scheduler_.transfers(); }
    /// By device, the share of the makespan in which it computes; as `sim::report` has it. Complexity: linear in scheduled tasks.
    [[nodiscard]] std::vector<double> utilisation() const {
        auto out = scheduler_.busy(work_->topology.size());
        for (auto& b : out) b = scheduler_.makespan() > 0 ? b / static_cast<double>(scheduler_.makespan()) : 0;
        return out;
    }
    /// What there is to tell of the last pipeline simulated without its tasks. Throws as `plan`.
    [[nodiscard]] sim::report summary() const {
        auto r = figures();
        r.utilisation = utilisation();
        return r;
    }
    /// All that there is to tell of the last pipeline simulated, whose tasks and schedule it takes along. Throws `invalid_input` before the first.
    [[nodiscard]] sim::report report() &&;
    /// The problem of one of `n` micro-batches, kept. Throws as `micro_batch`.
    [[nodiscard]] parallelization const& micro_batches(std::uint32_t n) { return part(n).problem; }
    /// Of the last pipeline simulated: the plan of one micro-batch.
    [[nodiscard]] sim::iteration_plan const& plan() const {
        if (current_ == 0) throw invalid_input("pipeline_simulator: no pipeline was simulated yet");
        return parts_.at(current_).simulator.plan();
    }
    /// The plan of one of `n` micro-batches under a strategy, which becomes that of `plan`; nothing is unrolled. Throws as `simulate`.
    template <Strategy<space::configuration> S> sim::iteration_plan const& plan_micro_batch(std::uint32_t n, S const& strategy) {
        auto& s = part(n).simulator;
        current_ = n;
        return s.plan(strategy);
    }
    /// Bytes by which devices are exceeded, in all.
    [[nodiscard]] byte_count over_capacity() const noexcept { return sim::bytes_over_capacity(memory_, work_->topology.devices); }
    /// Whether every device can hold what the last pipeline needs of it, or memory is ignored.
    [[nodiscard]] bool fits() const noexcept { return work_->options.memory == sim::memory_policy::ignore || over_capacity() == 0; }

  private:
    struct micro {
        parallelization problem;
        sim::simulator simulator;
    };

    /// What the tasks of a micro-batch come from: of one of so many the task graph made as that number, and what of its updates is shared.
    struct tasks_source {
        std::uint32_t micro_batches = 0;
        std::uint64_t assembled = 0;
        sharded_states sharded{};
        friend bool operator==(tasks_source const&, tasks_source const&) = default;
    };

    [[nodiscard]] sim::report figures() const;

    micro& part(std::uint32_t n);

    /// What a transfer of a block carries of its first weights.
    void describe_transfer(sim::task_label const& who, block_transfer moves, sim::payload& carried) const;

    template <class S> void prepare(pipelining const& how, S const& strategy) {
        validate(how, work_->graph);
        auto const& options = work_->options;
        if (how.sharded >= sharded_states::optimizer && options.synchronisation == sim::synchronisation::parameter_server)
            throw invalid_input("pipeline: a sharded optimizer with parameter servers: each server keeps the only state already, must be all_reduce");
        if (how.sharded >= sharded_states::gradients && options.training && !options.overlap)
            throw invalid_input("pipeline: sharded ", how.sharded == sharded_states::gradients ? "gradients" : "parameters",
                                " without 'overlap': gradients are reduced while others are computed, must be true");
        scheduler_.clear(); // what follows may throw
        folded_ = false;
        auto& now = part(how.micro_batches);
        auto& s = now.simulator;
        try {
            (void)s.assemble(strategy, reading_parts(now.problem.graph(), how));
        } catch (invalid_input const& e) {
            if (how.micro_batches == 1) throw;
            throw invalid_input(e.what(), "; a strategy of a pipeline is one of its micro-batches, here of one of ", how.micro_batches);
        }
        current_ = how.micro_batches;
        tasks_source const source{current_, s.assembled(), how.sharded};
        bool const anew = one_is_ != source;
        if (anew) {
            one_is_.reset();
            one_ = s.tasks();
            scheduler_.forget_classes();
        }
        auto const& g = now.problem.graph();
        auto const devices = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return s.plan().operators[op].devices; };
        memory_ = s.memory();
        share_all_weights(how, s.plan());
        auto const shards = [&](std::size_t op) -> sim::shard_memory const& { return s.shards()[op]; };
        offloaded_ = options.training ? offloaded_parts(g, how, shards, devices, work_->topology.size()) : offload_plan{};
        validate(offloaded_, g, work_->topology.devices);
        for (auto& [where, part] : offloaded_) part.time = price_.host_copy(part.bytes, where.first);
        spread_over_micro_batches(g, how, options, s.plan(), sharing_, offloaded_, shards, devices, memory_);
        if (anew && how.sharded >= sharded_states::optimizer) shard_updates(s.plan(), sharing_, one_);
        one_is_ = source;
        how_ = how;
    }

    void share_all_weights(pipelining const& how, sim::iteration_plan const& plan);

    /// False where the makespan is above `bound`.
    bool run(std::int64_t bound);
    [[nodiscard]] pipeline_tasks pipeline() const;
    void unfold();

    static constexpr std::uint32_t least_to_fold = 4, devices_to_fold = 16; ///< micro-batches, devices: with fewer, finding takes longer
    std::shared_ptr<sim::workload const> work_;
    parallelization problem_;
    std::map<std::uint32_t, micro> parts_;
    std::uint32_t current_ = 0; ///< micro-batches of the last pipeline; 0: none yet
    pipelining how_{};          ///< the last one
    sim::pricing price_;
    sharing_plan sharing_{};               ///< of its gradients or parameters
    shared_blocks shared_{};               ///< and the blocks that move for it
    offload_plan offloaded_{};             ///< its activations on hosts
    sim::task_graph one_;                  ///< of one micro-batch
    std::optional<tasks_source> one_is_{}; ///< where another pipeline may use it again
    folded_scheduler scheduler_;
    bool folded_ = false; ///< it holds what repeats in the last pipeline once
    std::uint64_t scheduled_ = 0;
    std::vector<sim::memory_use> memory_;
};

/// The simulation of `plan`; of a `plain` one it is that of its strategy, whatever the transfers. Throws as the simulators.
[[nodiscard]] sim::report simulate(parallelization const& problem, pipeline_plan const& plan);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/pipeline_simulator.ipp>
#endif
