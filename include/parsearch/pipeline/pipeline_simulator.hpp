#pragma once
/// Simulates pipelines: every task of every micro-batch, with the contention between them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/pipeline_memory.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_traffic.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/recomputation.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>
#include <parsearch/pipeline/folding/steady_phase.hpp>
#include <parsearch/pipeline/folding/task_classes.hpp>
#include <parsearch/pipeline/unroll.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/task/payload.hpp>
#include <parsearch/sim/task/pricing.hpp>

namespace parsearch::pipeline {

/// The problem of one of `n` micro-batches of `problem`, on which strategies of pipelines of `n` micro-batches are legal. Throws as `micro_batch`.
[[nodiscard]] inline parallelization micro_batch_problem(parallelization const& problem, std::int64_t n) {
    return with_graph(problem, micro_batch(problem.graph(), n));
}

/// Predicts the iteration time of pipelines of one problem: of a `pipelining` and a strategy of its micro-batches. One simulator serves one thread.
///
/// The task graph is that of one micro-batch (docs/simulation.md), unrolled (`unroller`). Devices run what they launch in that order; links follow
/// the problem's discipline. One stage, one micro-batch and nothing computed again, offloaded or cut is a network as it is: what `sim::simulator`
/// simulates, task by task.
///
/// What repeats is scheduled once: of devices that do the same one (`task_classes_finder`), of micro-batches as many as it takes until rounds repeat
/// (`steady_phase_finder`). The answers are those of all tasks, which are made when they are asked for.
class pipeline_simulator {
  public:
    /// Throws `invalid_input` where transfers of the problem are others than streaming: unrolling knows no ties between the tasks of a message.
    explicit pipeline_simulator(parallelization const& problem)
        : work_(problem.workload()), problem_(with_graph(problem, problem.graph())), price_(work_->topology, work_->oracle, work_->options) {
        if (auto const m = work_->options.transfers; m != sim::transfer_model::streaming)
            throw invalid_input("pipeline: option 'transfers' of the simulation is ", sim::name_of(m), ": pipelines are simulated with streaming");
    }

    /// The cost of a pipeline: its makespan, with what `sim::simulation_options::memory` says of devices whose memory is exceeded (infinity where it
    /// rejects). Throws `invalid_input` where `how` or `strategy` does not fit, a device from which activations are offloaded has no `host_rate`, or
    /// the oracle answers a time out of range.
    template <Strategy<space::configuration> S> [[nodiscard]] picoseconds operator()(pipelining const& how, S const& strategy) {
        return within(how, strategy, cost_traits<picoseconds>::infinity()).value();
    }
    /// The same, or nothing where the cost is above `bound`, which takes less time: the schedule is unfinished then.
    template <Strategy<space::configuration> S>
    [[nodiscard]] std::optional<picoseconds> within(pipelining const& how, S const& strategy, picoseconds bound) {
        prepare(how, strategy);
        auto const penalty = sim::memory_cost(work_->options, over_capacity(), work_->topology.size());
        if (penalty == cost_traits<picoseconds>::infinity() || penalty > bound) {
            forget_tasks();
            return penalty > bound ? std::nullopt : std::optional(penalty);
        }
        auto const unlimited = bound == cost_traits<picoseconds>::infinity();
        auto const makespan = run(how, unlimited ? bound.count() : (bound - penalty).count());
        if (!makespan) return std::nullopt;
        return sim::total_cost(picoseconds{*makespan}, penalty);
    }
    /// The makespan, whatever memory it needs, for the readers below.
    template <Strategy<space::configuration> S> picoseconds simulate(pipelining const& how, S const& strategy) {
        prepare(how, strategy);
        return picoseconds{*run(how, unbounded)};
    }

    /// Of the last pipeline simulated: its tasks, where they come from, when they ran, memory by device. Where memory was rejected or the cost above
    /// a bound, there are no tasks. Complexity: at the first call, that of scheduling all tasks.
    [[nodiscard]] sim::task_graph const& tasks() {
        unfold();
        return tasks_;
    }
    [[nodiscard]] std::vector<task_origin> const& origins() {
        unfold();
        return origins_;
    }
    [[nodiscard]] sim::schedule const& schedule() {
        unfold();
        return schedule_;
    }
    [[nodiscard]] std::vector<sim::memory_use> const& memory() const noexcept { return memory_; }
    /// Of the last pipeline simulated, tasks that were scheduled: fewer than there are where devices or rounds repeat.
    [[nodiscard]] std::size_t scheduled_tasks() const noexcept { return scheduled_; }
    /// And how many there are. Complexity: linear in scheduled tasks, and in tasks of a micro-batch.
    [[nodiscard]] std::uint64_t all_tasks() const {
        if (!folded_) return tasks_.size();
        std::vector<std::uint64_t> alike(in_classes_ ? classes_.tasks.size() : one_.size(), 1), on(tasks_.resources, 1); // of a class
        if (in_classes_) {
            std::ranges::fill(alike, 0);
            for (auto const c : classes_.of_task) ++alike[c];
            std::ranges::fill(on, 0);
            for (auto const c : classes_.of_resource) ++on[c];
        }
        auto const count = [&](std::uint32_t first, std::uint32_t last) {
            std::uint64_t sum = 0;
            for (auto t = first; t < last; ++t) {
                auto const& from = origins_[t];
                if (from.moves != block_transfer::none) sum += tasks_.kind[t] == sim::task_kind::barrier ? 1 : on[tasks_.resource[t]];
                else sum += from.copies != host_copy::none ? on[tasks_.label[t].number] : alike[from.task]; // copies have the number of their device
            }
            return sum;
        };
        auto const& first = unroller_.first_tasks();
        return count(0, tasks_.size()) + (periods_ > 0 ? periods_ * count(first[phase_.launch], first[phase_.launch + phase_.launches]) : 0);
    }
    /// Of the last pipeline simulated: bytes moved between devices in one iteration, by `traffic_kind`. Throws as `plan`.
    [[nodiscard]] std::array<double, sim::traffic_kinds> traffic() const {
        return pipeline_traffic(work_->graph, how_, plan(), sharing_, transfers_, work_->options.training);
    }
    /// By device, the share of the makespan in which it computes; as `sim::report` has it. Complexity: linear in scheduled tasks.
    [[nodiscard]] std::vector<double> utilisation() const {
        std::vector<double> busy(tasks_.resources, 0);
        auto const add = [&](std::uint32_t first, std::uint32_t last, double times) {
            for (auto t = first; t < last; ++t) busy[tasks_.resource[t]] += times * static_cast<double>(tasks_.duration[t]);
        };
        add(0, tasks_.size(), 1);
        if (folded_ && periods_ > 0) {
            auto const& first = unroller_.first_tasks();
            add(first[phase_.launch], first[phase_.launch + phase_.launches], static_cast<double>(periods_));
        }
        std::vector<double> out;
        for (std::uint32_t d = 0; d < work_->topology.size(); ++d)
            out.push_back(makespan_ > 0 ? busy[folded_ && in_classes_ ? classes_.of_resource[d] : d] / static_cast<double>(makespan_) : 0);
        return out;
    }
    /// And how often what moves for blocks whose weights are shared.
    [[nodiscard]] transfer_counts const& transfers() const noexcept { return transfers_; }
    /// How long it takes; 0 where there are no tasks.
    [[nodiscard]] picoseconds makespan() const noexcept { return picoseconds{makespan_}; }
    /// What there is to tell of the last pipeline simulated without its tasks. Throws as `plan`.
    [[nodiscard]] sim::report summary() const {
        sim::report r;
        r.makespan = makespan();
        r.utilisation = utilisation();
        r.traffic = traffic();
        r.memory = memory_;
        return r;
    }
    /// All that there is to tell of the last pipeline simulated, whose tasks and schedule it takes along. Throws `invalid_input` before the first.
    [[nodiscard]] sim::report report() && {
        unfold();
        require_simulated();
        auto r = summary();
        auto const& part = parts_.at(current_).problem;
        r.carried = sim::payloads(plan(), part.graph(), tasks_, part.options());
        for (std::uint32_t t = 0; t < tasks_.size(); ++t) {
            auto const& from = origins_[t];
            auto const kind = tasks_.kind[t];
            bool const of_block = from.moves != block_transfer::none;
            bool const weights = kind == sim::task_kind::transfer || kind == sim::task_kind::collective
                                     ? tasks_.label[t].traffic == sim::traffic_kind::weight_gradient
                                     : kind == sim::task_kind::update;
            bool const each = of_block ? from.moves == block_transfer::reduce ||
                                             (from.moves == block_transfer::gather && how_.sharded >= sharded_states::parameters)
                                       : !weights; // micro-batch
            auto const what = of_block                              ? sim::task_part::of_block
                              : from.copies == host_copy::to_host   ? sim::task_part::to_host
                              : from.copies == host_copy::from_host ? sim::task_part::from_host
                              : from.again                          ? sim::task_part::again
                              : from.weights                        ? sim::task_part::weight_gradients
                                                                    : sim::task_part::whole;
            r.runs.push_back({each ? from.micro_batch : sim::task_run::once, what});
            if (from.copies != host_copy::none) {
                auto const& who = tasks_.label[t];
                r.carried[t].bytes = offloaded_.at({who.number, detail::segment_at(how_, who.op)}).bytes;
            }
            if (of_block && kind == sim::task_kind::collective) describe_transfer(tasks_.label[t], from.moves, r.carried[t]);
        }
        r.tasks = std::exchange(tasks_, {});
        r.schedule = std::exchange(schedule_, {});
        origins_.clear();
        r.utilisation = sim::utilisation_of(r.tasks, r.schedule); // of links, too
        r.critical_path = sim::critical_path_of(r.tasks, r.schedule);
        return r;
    }
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

    micro& part(std::uint32_t n) {
        if (auto const at = parts_.find(n); at != parts_.end()) return at->second;
        auto p = micro_batch_problem(problem_, n);
        auto s = p.simulator();
        return parts_.emplace(n, micro{std::move(p), std::move(s)}).first->second;
    }

    /// What a transfer of a block carries of its first weights.
    void describe_transfer(sim::task_label const& who, block_transfer moves, sim::payload& carried) const {
        auto const c = plan().class_of[who.op];
        auto const parts = static_cast<std::uint32_t>(sharing_[c][who.number].parts);
        bool const across = moves == block_transfer::all_reduce;
        carried.collective = across                            ? collective_kind::all_reduce
                             : moves == block_transfer::gather ? collective_kind::all_gather
                                                               : collective_kind::reduce_scatter;
        if (moves == block_transfer::gather) carried.bytes = plan().classes[c].sync.groups[who.number].bytes;
        if (across) carried.bytes /= parts;
        carried.devices = across ? carried.devices / parts : parts;
    }

    void require_simulated() const {
        if (tasks_.size() == 0) throw invalid_input("pipeline_simulator: no pipeline was simulated yet");
    }

    template <class S> void prepare(pipelining const& how, S const& strategy) {
        validate(how, work_->graph);
        auto const& options = work_->options;
        if (how.sharded >= sharded_states::optimizer && options.synchronisation == sim::synchronisation::parameter_server)
            throw invalid_input("pipeline: a sharded optimizer with parameter servers: each server keeps the only state already, must be all_reduce");
        if (how.sharded >= sharded_states::gradients && options.training && !options.overlap)
            throw invalid_input("pipeline: sharded ", how.sharded == sharded_states::gradients ? "gradients" : "parameters",
                                " without 'overlap': gradients are reduced while others are computed, must be true");
        auto& now = part(how.micro_batches);
        auto& s = now.simulator;
        try {
            one_ = s.assemble(strategy, reading_parts(now.problem.graph(), how));
        } catch (invalid_input const& e) {
            if (how.micro_batches == 1) throw;
            throw invalid_input(e.what(), "; a strategy of a pipeline is one of its micro-batches, here of one of ", how.micro_batches);
        }
        current_ = how.micro_batches;
        auto const& g = now.problem.graph();
        auto const devices = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return s.plan().operators[op].devices; };
        memory_ = s.memory();
        shards_.clear();
        for (std::size_t op = 0; op < g.size(); ++op) shards_.push_back(sim::memory_of(g.operations[op], configuration_of(strategy, op).degrees()));
        share_all_weights(how, s.plan());
        auto const shards = [&](std::size_t op) -> sim::shard_memory const& { return shards_[op]; };
        offloaded_ = options.training ? offloaded_parts(g, how, shards, devices, work_->topology.size()) : offload_plan{};
        validate(offloaded_, g, work_->topology.devices);
        for (auto& [where, part] : offloaded_) part.time = price_.host_copy(part.bytes, where.first);
        spread_over_micro_batches(g, how, options, s.plan(), sharing_, offloaded_, shards, devices, memory_);
        if (how.sharded >= sharded_states::optimizer) shard_updates(s.plan(), sharing_, one_);
        shared_ = {};
        if (!sharing_.empty())
            shared_ = blocks_with_shared_weights(one_, s.plan(), static_cast<std::uint32_t>(work_->topology.size()), how, sharing_);
        how_ = how;
    }

    void share_all_weights(pipelining const& how, sim::iteration_plan const& plan) {
        sharing_.clear();
        bool const any = std::ranges::any_of(plan.classes, [](auto const& c) { return !c.sync.groups.empty(); });
        if (how.sharded < sharded_states::gradients || !work_->options.training || !any) return;
        for (auto const& c : plan.classes) sharing_.push_back(share_weights(c, how.sharded, work_->topology, price_));
    }

    static constexpr auto unbounded = std::numeric_limits<std::int64_t>::max();

    void forget_tasks() {
        tasks_.clear(0);
        schedule_ = {};
        origins_.clear();
        transfers_.clear();
        folded_ = in_classes_ = false;
        periods_ = 0;
        scheduled_ = 0;
        makespan_ = 0;
    }

    /// The makespan; nothing where it is above `bound`.
    std::optional<std::int64_t> run(pipelining const& how, std::int64_t bound) {
        forget_tasks();
        if (may_fold(how)) {
            makespan_ = run_folded(how, bound);
            folded_ = true;
        } else {
            makespan_ = run_whole(how, bound) ? schedule_.makespan : unbounded;
        }
        count_transfers();
        if (makespan_ > bound) {
            forget_tasks();
            return {};
        }
        return makespan_;
    }

    /// Whether something may repeat that takes longer to schedule than to find.
    [[nodiscard]] bool may_fold(pipelining const& how) const {
        return how.micro_batches >= least_to_fold || (work_->topology.size() >= devices_to_fold && !(how.runs_once() && sharing_.empty()));
    }
    void count_transfers() {
        if (sharing_.empty()) return;
        auto const& all = unroller_.transfers();
        for (auto const& t : all) ++transfers_[t];
        if (periods_ == 0) return;
        auto const& first = unroller_.first_transfers();
        for (auto i = first[phase_.launch]; i < first[phase_.launch + phase_.launches]; ++i) transfers_[all[i]] += periods_;
    }

    /// All tasks; false where the makespan is above `bound`.
    bool run_whole(pipelining const& how, std::int64_t bound) {
        folded_ = false;
        auto const devices = static_cast<std::uint32_t>(work_->topology.size());
        if (how.runs_once() && sharing_.empty()) {
            std::swap(tasks_, one_);
            origins_.clear();
            for (std::uint32_t t = 0; t < tasks_.size(); ++t) origins_.push_back({.task = t});
            scheduled_ = tasks_.size();
            return scheduler_.run(tasks_, work_->options.discipline, schedule_, bound);
        }
        return unroll(how, {&one_, devices, &shared_, &offloaded_}, bound);
    }
    void unfold() {
        if (!folded_) return;
        auto const scheduled = scheduled_;
        run_whole(how_, unbounded);
        scheduled_ = scheduled;
    }

    /// What is unrolled: tasks of a micro-batch, or classes of them.
    struct micro_batch_tasks {
        sim::task_graph const* tasks;
        std::uint32_t devices;
        shared_blocks const* shared;
        offload_plan const* offloaded;
    };
    /// Devices run what they launch in that order. False where the makespan is above `bound`.
    bool unroll(pipelining const& how, micro_batch_tasks const& one, std::int64_t bound) {
        auto const order = work_->options.discipline;
        unroller_.run(*one.tasks, parts_.at(current_).problem.graph(), one.devices, how, *one.shared, *one.offloaded, order == sim::discipline::fifo,
                      tasks_, origins_);
        scheduled_ += tasks_.size();
        return scheduler_.run(tasks_, order, schedule_, bound, one.devices);
    }

    /// The makespan, or something above `bound`.
    std::int64_t run_folded(pipelining const& how, std::int64_t bound) {
        micro_batch_tasks one{&one_, static_cast<std::uint32_t>(work_->topology.size()), &shared_, &offloaded_};
        shared_blocks shared;
        offload_plan offloaded;
        if (class_finder_.run(one_, one.devices, shared_, offloaded_, classes_)) {
            shared = fold(shared_, classes_);
            offloaded = fold(offloaded_, classes_);
            one = {&classes_.tasks, classes_.devices, &shared, &offloaded};
            in_classes_ = true;
        }
        for (auto fewer : trials(how)) {
            auto phase = unroll_fewer(how, one, fewer);
            if (!phase) continue;
            // Periods must make up for all the others.
            auto const period = phase->micro_batches;
            if (auto const more = (how.micro_batches - fewer) % period; more > 0) {
                fewer += more;
                phase = unroll_fewer(how, one, fewer);
                if (!phase || phase->micro_batches != period) break;
            }
            phase_ = *phase;
            periods_ = (how.micro_batches - fewer) / period;
            return phase_.time > (unbounded - schedule_.makespan) / periods_ ? unbounded : schedule_.makespan + periods_ * phase_.time;
        }
        return unroll(how, one, bound) ? schedule_.makespan : unbounded;
    }

    /// Numbers of micro-batches whose rounds may repeat, while those are much fewer than all.
    static std::vector<std::uint32_t> trials(pipelining const& how) {
        std::vector<std::uint32_t> out;
        if (how.order == launch_order::gpipe) return out;
        auto const groups = how.launching().groups();
        auto const unit = how.interleaved > 1 ? groups : 1;
        std::uint32_t under_way = groups;
        for (std::uint32_t s = 0; s < how.stages; ++s) under_way = std::max(under_way, in_flight(how.launching(), s));
        auto const least = (how.offloads() ? 3 : 2) * under_way + 6 * unit; // until all stages are under way, and until the first has ended
        for (auto n = least; n <= how.micro_batches / 2; n = n * 8 / 5) out.push_back((n + unit - 1) / unit * unit);
        return out;
    }
    std::optional<steady_phase> unroll_fewer(pipelining const& how, micro_batch_tasks const& one, std::uint32_t micro_batches) {
        auto fewer = how;
        fewer.micro_batches = micro_batches;
        unroll(fewer, one, unbounded);
        auto const chained = work_->options.discipline == sim::discipline::fifo ? one.devices : tasks_.resources - 1;
        return phase_finder_({tasks_, origins_, unroller_.launched(), unroller_.first_tasks(), schedule_, chained}, micro_batches,
                             how.interleaved > 1 ? how.launching().groups() : 1, longest_period);
    }

    static constexpr std::uint32_t least_to_fold = 4, devices_to_fold = 16; ///< micro-batches, devices
    static constexpr std::uint32_t longest_period = 8;                      ///< units
    std::shared_ptr<sim::workload const> work_;
    parallelization problem_;
    std::map<std::uint32_t, micro> parts_;
    std::uint32_t current_ = 0; ///< micro-batches of the last pipeline; 0: none yet
    pipelining how_{};          ///< the last one
    sim::pricing price_;
    sharing_plan sharing_{};   ///< of its gradients or parameters
    shared_blocks shared_{};   ///< and the blocks that move for it
    offload_plan offloaded_{}; ///< its activations on hosts
    sim::task_graph one_, tasks_;
    std::vector<task_origin> origins_;
    // Of the last pipeline:
    bool folded_ = false;       ///< these are not all of its tasks,
    bool in_classes_ = false;   ///< but classes of them,
    steady_phase phase_{};      ///< and of its periods
    std::uint32_t periods_ = 0; ///< as many more are left out
    std::int64_t makespan_ = 0;
    transfer_counts transfers_;
    std::size_t scheduled_ = 0;
    task_classes classes_;
    task_classes_finder class_finder_;
    steady_phase_finder phase_finder_;
    unroller unroller_;
    sim::scheduler scheduler_;
    sim::schedule schedule_;
    std::vector<sim::shard_memory> shards_;
    std::vector<sim::memory_use> memory_;
};

/// The simulation of `plan`; of a `plain` one it is that of its strategy, whatever the transfers. Throws as the simulators.
[[nodiscard]] inline sim::report simulate(parallelization const& problem, pipeline_plan const& plan) {
    if (plan.how.plain()) return parsearch::simulate(problem, plan.strategy);
    pipeline_simulator simulator(problem);
    simulator.simulate(plan.how, plan.strategy);
    return std::move(simulator).report();
}

} // namespace parsearch::pipeline
