#pragma once
// Schedules pipelines: all tasks, or of what repeats one.

#include <algorithm>

#include <parsearch/pipeline/folding/folded_scheduler.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void folded_scheduler::clear() {
    tasks_.clear(0);
    for (auto* times : {&schedule_.ready, &schedule_.start, &schedule_.end}) times->clear();
    schedule_.makespan = 0;
    origins_.clear();
    alike_ = unrolled_ = false;
    periods_ = 0;
    scheduled_ = 0;
    makespan_ = 0;
}

PARSEARCH_INLINE bool folded_scheduler::run_as_it_is(sim::task_graph tasks, sim::discipline order, std::int64_t bound) {
    return afresh([&] {
        tasks_ = std::move(tasks);
        for (std::uint32_t t = 0; t < tasks_.size(); ++t) origins_.push_back({.task = t});
        scheduled_ = tasks_.size();
        return keep(scheduler_.run(tasks_, order, schedule_, bound) ? schedule_.makespan : unbounded, bound);
    });
}

PARSEARCH_INLINE bool folded_scheduler::run_folded(pipeline_tasks const& all, std::int64_t bound) {
    return afresh([&] {
        bool const tasks_alone = all.shared.blocks.empty() && all.offloaded.empty();
        if (!std::exchange(classes_known_, false) || !tasks_alone)
            any_alike_ = class_finder_.find(all.one, all.devices, all.shared, all.offloaded, classes_);
        classes_known_ = tasks_alone;
        alike_ = any_alike_;
        if (!alike_) return fold_rounds(all, bound);
        auto const shared = fold(all.shared, classes_);
        auto const offloaded = fold(all.offloaded, classes_);
        return fold_rounds({classes_.tasks, all.graph, classes_.devices, all.how, shared, offloaded, all.order}, bound);
    });
}

PARSEARCH_INLINE std::uint64_t folded_scheduler::all_tasks() const {
    std::uint64_t sum = 0;
    if (!alike_) {
        for_each_times([&](std::uint32_t, std::uint64_t times) { sum += times; });
        return sum;
    }
    std::vector<std::uint64_t> of_class(classes_.tasks.size(), 0), on(tasks_.resources, 0);
    for (auto const c : classes_.of_task) ++of_class[c];
    for (auto const c : classes_.of_resource) ++on[c];
    for_each_times([&](std::uint32_t t, std::uint64_t times) {
        auto const& from = origins_[t];
        if (from.moves != block_transfer::none) sum += times * (tasks_.kind[t] == sim::task_kind::barrier ? 1 : on[tasks_.resource[t]]);
        else sum += times * (from.copies != host_copy::none ? on[tasks_.label[t].number] : of_class[from.task]); // a copy's number is its device
    });
    return sum;
}

PARSEARCH_INLINE std::vector<double> folded_scheduler::busy(std::size_t devices) const {
    std::vector<double> of_resource(tasks_.resources, 0);
    for_each_times([&](std::uint32_t t, std::uint64_t times) {
        of_resource[tasks_.resource[t]] += static_cast<double>(times) * static_cast<double>(tasks_.duration[t]);
    });
    std::vector<double> out(devices, 0);
    for (std::size_t d = 0; d < devices && tasks_.size() > 0; ++d) out[d] = of_resource[alike_ ? classes_.of_resource[d] : d];
    return out;
}

PARSEARCH_INLINE transfer_counts folded_scheduler::transfers() const {
    transfer_counts out;
    if (!unrolled_) return out;
    auto const& all = unroller_.transfers();
    auto const [first, last] = in_period(unroller_.first_transfers());
    for (std::size_t i = 0; i < all.size(); ++i) out[all[i]] += 1 + (i >= first && i < last ? periods_ : 0);
    return out;
}

PARSEARCH_INLINE std::int64_t folded_scheduler::unroll(pipeline_tasks const& p, std::uint32_t micro_batches, std::int64_t bound) {
    auto how = p.how;
    how.micro_batches = micro_batches;
    unroller_.run(p.one, p.graph, p.devices, how, p.shared, p.offloaded, p.order == sim::discipline::fifo, tasks_, origins_);
    unrolled_ = true;
    scheduled_ += tasks_.size();
    return scheduler_.run(tasks_, p.order, schedule_, bound, p.devices) ? schedule_.makespan : unbounded;
}

PARSEARCH_INLINE bool folded_scheduler::fold_rounds(pipeline_tasks const& p, std::int64_t bound) {
    auto const all = p.how.micro_batches;
    if (least_work(p) > bound / all) return keep(unbounded, bound);
    for (auto fewer : trials(p.how)) {
        auto phase = unroll_fewer(p, fewer);
        if (!phase) continue;
        // Periods must make up for all the others. There is at least one: a period is less than half of what is unrolled, that at most half of
        // all.
        auto const period = phase->micro_batches;
        if (auto const more = (all - fewer) % period; more > 0) {
            fewer += more;
            phase = unroll_fewer(p, fewer);
            if (!phase || phase->micro_batches != period) break;
        }
        phase_ = *phase;
        periods_ = (all - fewer) / period;
        bool const ends = phase_.time <= (unbounded - schedule_.makespan) / periods_;
        return keep(ends ? schedule_.makespan + periods_ * phase_.time : unbounded, bound);
    }
    return keep(unroll(p, all, bound), bound);
}

PARSEARCH_INLINE std::int64_t folded_scheduler::least_work(pipeline_tasks const& p) {
    std::vector<std::int64_t> of_device(p.devices, 0);
    for (std::uint32_t t = 0; t < p.one.size(); ++t)
        if (auto const kind = p.one.kind[t]; kind == sim::task_kind::forward || kind == sim::task_kind::backward)
            of_device[p.one.resource[t]] = saturating_sum(of_device[p.one.resource[t]], p.one.duration[t]);
    return std::ranges::max(of_device);
}

PARSEARCH_INLINE std::vector<std::uint32_t> folded_scheduler::trials(pipelining const& how) {
    std::vector<std::uint32_t> out;
    if (how.order == launch_order::gpipe) return out;
    auto const unit = unit_of(how);
    auto under_way = how.launching().groups();
    for (std::uint32_t s = 0; s < how.stages; ++s) under_way = std::max(under_way, in_flight(how.launching(), s));
    auto const least = (how.offloads() ? 3 : 2) * under_way + 6 * unit; // until all stages are under way, and until the first has ended
    for (auto n = least; n <= how.micro_batches / 2; n += n / 5 * 3 + unit) out.push_back((n + unit - 1) / unit * unit);
    return out;
}

PARSEARCH_INLINE std::optional<steady_phase> folded_scheduler::unroll_fewer(pipeline_tasks const& p, std::uint32_t micro_batches) {
    unroll(p, micro_batches, unbounded);
    auto const chained = p.order == sim::discipline::fifo ? p.devices : tasks_.resources - 1;
    return phase_finder_.find({tasks_, origins_, unroller_.launched(), unroller_.first_tasks(), schedule_, chained}, micro_batches, unit_of(p.how),
                              longest_period);
}

} // namespace parsearch::pipeline
