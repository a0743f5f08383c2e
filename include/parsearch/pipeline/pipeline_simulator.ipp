#pragma once
// Simulates pipelines: every task of every micro-batch, with the contention between them.

#include <algorithm>

#include <parsearch/pipeline/pipeline_simulator.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE pipeline_simulator::pipeline_simulator(parallelization const& problem)
    : work_(problem.workload()), problem_(with_graph(problem, problem.graph())), price_(work_->topology, work_->oracle, work_->options) {
    if (auto const m = work_->options.transfers; m != sim::transfer_model::streaming)
        throw invalid_input("pipeline: option 'transfers' of the simulation is ", sim::name_of(m), ": pipelines are simulated with streaming");
    if (work_->options.balanced)
        throw invalid_input("pipeline: option 'balanced' of the simulation is true: stages and micro-batches divide samples evenly");
}

PARSEARCH_INLINE sim::report pipeline_simulator::report() && {
    auto const& tasks = this->tasks();
    if (tasks.size() == 0) throw invalid_input("pipeline_simulator: no pipeline was simulated yet");
    auto r = figures();
    auto const& part = parts_.at(current_).problem;
    r.carried = sim::payloads(plan(), part.graph(), tasks, part.options());
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto const& from = origins()[t];
        auto const kind = tasks.kind[t];
        bool const of_block = from.moves != block_transfer::none;
        bool const weights = kind == sim::task_kind::transfer || kind == sim::task_kind::collective
                                 ? tasks.label[t].traffic == sim::traffic_kind::weight_gradient
                                 : kind == sim::task_kind::update;
        bool const each =
            of_block ? from.moves == block_transfer::reduce || (from.moves == block_transfer::gather && how_.sharded >= sharded_states::parameters)
                     : !weights; // micro-batch
        auto const what = of_block                              ? sim::task_part::of_block
                          : from.copies == host_copy::to_host   ? sim::task_part::to_host
                          : from.copies == host_copy::from_host ? sim::task_part::from_host
                          : from.again                          ? sim::task_part::again
                          : from.weights                        ? sim::task_part::weight_gradients
                                                                : sim::task_part::whole;
        r.runs.push_back({each ? from.micro_batch : sim::task_run::once, what});
        if (from.copies != host_copy::none) {
            auto const& who = tasks.label[t];
            r.carried[t].bytes = offloaded_.at({who.number, detail::segment_at(how_, who.op)}).bytes;
        }
        if (of_block && kind == sim::task_kind::collective) describe_transfer(tasks.label[t], from.moves, r.carried[t]);
    }
    r.tasks = std::exchange(scheduler_.tasks(), {});
    r.schedule = std::exchange(scheduler_.schedule(), {});
    scheduler_.clear();
    r.utilisation = sim::utilisation_of(r.tasks, r.schedule); // of links, too
    r.critical_path = sim::critical_path_of(r.tasks, r.schedule);
    return r;
}

PARSEARCH_INLINE sim::report pipeline_simulator::figures() const {
    sim::report r;
    r.makespan = makespan();
    r.traffic = traffic();
    r.memory = memory_;
    return r;
}

PARSEARCH_INLINE pipeline_simulator::micro& pipeline_simulator::part(std::uint32_t n) {
    if (auto const at = parts_.find(n); at != parts_.end()) return at->second;
    auto p = micro_batch_problem(problem_, n);
    auto s = p.simulator();
    return parts_.emplace(n, micro{std::move(p), std::move(s)}).first->second;
}

PARSEARCH_INLINE void pipeline_simulator::describe_transfer(sim::task_label const& who, block_transfer moves, sim::payload& carried) const {
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

PARSEARCH_INLINE void pipeline_simulator::share_all_weights(pipelining const& how, sim::iteration_plan const& plan) {
    sharing_.clear();
    bool const any = std::ranges::any_of(plan.classes, [](auto const& c) { return !c.sync.groups.empty(); });
    if (how.sharded < sharded_states::gradients || !work_->options.training || !any) return;
    for (auto const& c : plan.classes) sharing_.push_back(share_weights(c, how.sharded, work_->topology, price_));
}

PARSEARCH_INLINE bool pipeline_simulator::run(std::int64_t bound) {
    auto const devices = static_cast<std::uint32_t>(work_->topology.size());
    shared_ = sharing_.empty() ? shared_blocks{} : blocks_with_shared_weights(one_, plan(), devices, how_, sharing_);
    bool const as_it_is = how_.runs_once() && sharing_.empty();
    if (as_it_is) one_is_.reset(); // it is moved
    bool const folds = !as_it_is && (how_.micro_batches >= least_to_fold || devices >= devices_to_fold);
    bool const ended = as_it_is ? scheduler_.run_as_it_is(std::exchange(one_, {}), work_->options.discipline, bound)
                       : folds  ? scheduler_.run_folded(pipeline(), bound)
                                : scheduler_.run_whole(pipeline(), bound);
    folded_ = folds && ended;
    scheduled_ = scheduler_.scheduled_tasks();
    return ended;
}

PARSEARCH_INLINE pipeline_tasks pipeline_simulator::pipeline() const {
    return {one_,
            parts_.at(how_.micro_batches).problem.graph(),
            static_cast<std::uint32_t>(work_->topology.size()),
            how_,
            shared_,
            offloaded_,
            work_->options.discipline};
}

PARSEARCH_INLINE void pipeline_simulator::unfold() {
    if (!std::exchange(folded_, false)) return;
    constexpr auto most = std::uint64_t{1} << 31;
    if (auto const n = scheduler_.all_tasks(); n >= most) {
        folded_ = true;
        throw invalid_input("pipeline: ", n, " tasks: must be fewer than ", most, " to be made one by one");
    }
    scheduler_.run_whole(pipeline(), folded_scheduler::unbounded);
}

PARSEARCH_INLINE sim::report simulate(parallelization const& problem, pipeline_plan const& plan) {
    if (plan.how.plain()) return parsearch::simulate(problem, plan.strategy);
    pipeline_simulator simulator(problem);
    simulator.simulate(plan.how, plan.strategy);
    return std::move(simulator).report();
}

} // namespace parsearch::pipeline
