#pragma once
/// Schedules pipelines: all tasks, or of what repeats one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/folding/steady_phase.hpp>
#include <parsearch/pipeline/folding/task_classes.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/offloading.hpp>
#include <parsearch/pipeline/pipeline_traffic.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/shared_blocks.hpp>
#include <parsearch/pipeline/unroll.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::pipeline {

/// A pipeline to schedule: what `unroller::run` takes, and how links queue. All of it stays where it is while a scheduler is asked about it.
struct pipeline_tasks {
    sim::task_graph const& one;
    graph::dense_graph const& graph;
    std::uint32_t devices;
    pipelining const& how;
    shared_blocks const& shared;
    offload_plan const& offloaded;
    sim::discipline order;
};

/// Holds the schedule of the last pipeline, and keeps its buffers from one to the next. Devices run what they launch in that order.
class folded_scheduler {
  public:
    static constexpr auto unbounded = std::numeric_limits<std::int64_t>::max();

    /// Holds nothing from now on.
    void clear() {
        tasks_.clear(0);
        schedule_ = {};
        origins_.clear();
        alike_ = unrolled_ = false;
        periods_ = 0;
        scheduled_ = 0;
        makespan_ = 0;
    }

    /// Schedules all tasks. False, holding nothing, where the makespan is above `bound`.
    bool run_whole(pipeline_tasks const& p, std::int64_t bound) {
        return afresh([&] { return keep(unroll(p, p.how.micro_batches, bound), bound); });
    }
    /// Those of a graph as it is.
    bool run_as_it_is(sim::task_graph tasks, sim::discipline order, std::int64_t bound) {
        return afresh([&] {
            tasks_ = std::move(tasks);
            for (std::uint32_t t = 0; t < tasks_.size(); ++t) origins_.push_back({.task = t});
            scheduled_ = tasks_.size();
            return keep(scheduler_.run(tasks_, order, schedule_, bound) ? schedule_.makespan : unbounded, bound);
        });
    }
    /// The same answer, from one device of each class, and as many micro-batches as it takes until rounds repeat.
    bool run_folded(pipeline_tasks const& all, std::int64_t bound) {
        return afresh([&] {
            alike_ = class_finder_.find(all.one, all.devices, all.shared, all.offloaded, classes_);
            if (!alike_) return fold_rounds(all, bound);
            auto const shared = fold(all.shared, classes_);
            auto const offloaded = fold(all.offloaded, classes_);
            return fold_rounds({classes_.tasks, all.graph, classes_.devices, all.how, shared, offloaded, all.order}, bound);
        });
    }

    [[nodiscard]] std::int64_t makespan() const noexcept { return makespan_; }
    /// What was scheduled last, which may stand for more.
    [[nodiscard]] sim::task_graph& tasks() noexcept { return tasks_; }
    [[nodiscard]] sim::schedule& schedule() noexcept { return schedule_; }
    [[nodiscard]] std::vector<task_origin> const& origins() const noexcept { return origins_; }
    /// Tasks that were scheduled, tries included that did not repeat.
    [[nodiscard]] std::uint64_t scheduled_tasks() const noexcept { return scheduled_; }

    /// Tasks of the pipeline. Complexity: linear in what was scheduled, and in tasks of a micro-batch.
    [[nodiscard]] std::uint64_t all_tasks() const {
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
    /// By device, of `devices`, picoseconds in which it computes. Complexity: linear in what was scheduled.
    [[nodiscard]] std::vector<double> busy(std::size_t devices) const {
        std::vector<double> of_resource(tasks_.resources, 0);
        for_each_times([&](std::uint32_t t, std::uint64_t times) {
            of_resource[tasks_.resource[t]] += static_cast<double>(times) * static_cast<double>(tasks_.duration[t]);
        });
        std::vector<double> out(devices, 0);
        for (std::size_t d = 0; d < devices && tasks_.size() > 0; ++d) out[d] = of_resource[alike_ ? classes_.of_resource[d] : d];
        return out;
    }
    /// What moves for blocks whose weights are shared.
    [[nodiscard]] transfer_counts transfers() const {
        transfer_counts out;
        if (!unrolled_) return out;
        auto const& all = unroller_.transfers();
        auto const [first, last] = in_period(unroller_.first_transfers());
        for (std::size_t i = 0; i < all.size(); ++i) out[all[i]] += 1 + (i >= first && i < last ? periods_ : 0);
        return out;
    }

  private:
    /// What belongs to a period that is left out `periods_` times. `first`: of each launch, and behind.
    template <class T> [[nodiscard]] std::pair<T, T> in_period(std::vector<T> const& first) const {
        if (periods_ == 0) return {};
        return {first[phase_.launch], first[phase_.launch + phase_.launches]};
    }
    /// Calls `take(task, times)`: how often tasks of what was scheduled come in the pipeline, on one device of a class.
    template <class Take> void for_each_times(Take const& take) const {
        auto const [first, last] = in_period(unroller_.first_tasks());
        for (std::uint32_t t = 0; t < tasks_.size(); ++t) take(t, 1 + (t >= first && t < last ? std::uint64_t{periods_} : 0));
    }

    template <class F> bool afresh(F const& f) {
        clear();
        try {
            return f();
        } catch (...) {
            clear();
            throw;
        }
    }
    bool keep(std::int64_t makespan, std::int64_t bound) {
        makespan_ = makespan;
        if (makespan > bound) clear();
        return makespan <= bound;
    }

    /// The makespan; `unbounded` where it is above `bound`.
    std::int64_t unroll(pipeline_tasks const& p, std::uint32_t micro_batches, std::int64_t bound) {
        auto how = p.how;
        how.micro_batches = micro_batches;
        unroller_.run(p.one, p.graph, p.devices, how, p.shared, p.offloaded, p.order == sim::discipline::fifo, tasks_, origins_);
        unrolled_ = true;
        scheduled_ += tasks_.size();
        return scheduler_.run(tasks_, p.order, schedule_, bound, p.devices) ? schedule_.makespan : unbounded;
    }

    bool fold_rounds(pipeline_tasks const& p, std::int64_t bound) {
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

    /// Picoseconds that some device computes at least in each micro-batch.
    static std::int64_t least_work(pipeline_tasks const& p) {
        std::vector<std::int64_t> of_device(p.devices, 0);
        for (std::uint32_t t = 0; t < p.one.size(); ++t)
            if (auto const kind = p.one.kind[t]; kind == sim::task_kind::forward || kind == sim::task_kind::backward)
                of_device[p.one.resource[t]] = saturating_sum(of_device[p.one.resource[t]], p.one.duration[t]);
        return std::ranges::max(of_device);
    }

    /// Numbers of micro-batches whose rounds may repeat, while those are much fewer than all.
    static std::vector<std::uint32_t> trials(pipelining const& how) {
        std::vector<std::uint32_t> out;
        if (how.order == launch_order::gpipe) return out;
        auto const unit = unit_of(how);
        auto under_way = how.launching().groups();
        for (std::uint32_t s = 0; s < how.stages; ++s) under_way = std::max(under_way, in_flight(how.launching(), s));
        auto const least = (how.offloads() ? 3 : 2) * under_way + 6 * unit; // until all stages are under way, and until the first has ended
        for (auto n = least; n <= how.micro_batches / 2; n += n / 5 * 3 + unit) out.push_back((n + unit - 1) / unit * unit);
        return out;
    }
    /// Micro-batches after which launches repeat.
    static std::uint32_t unit_of(pipelining const& how) { return how.interleaved > 1 ? how.launching().groups() : 1; }

    std::optional<steady_phase> unroll_fewer(pipeline_tasks const& p, std::uint32_t micro_batches) {
        unroll(p, micro_batches, unbounded);
        auto const chained = p.order == sim::discipline::fifo ? p.devices : tasks_.resources - 1;
        return phase_finder_.find({tasks_, origins_, unroller_.launched(), unroller_.first_tasks(), schedule_, chained}, micro_batches,
                                  unit_of(p.how), longest_period);
    }

    static constexpr std::uint32_t longest_period = 8; ///< units
    sim::task_graph tasks_;
    std::vector<task_origin> origins_;
    sim::schedule schedule_;
    bool unrolled_ = false; ///< these are tasks of micro-batches
    bool alike_ = false;    ///< and classes of them
    task_classes classes_;
    steady_phase phase_{};      ///< its periods are left out
    std::uint32_t periods_ = 0; ///< as often
    std::uint64_t scheduled_ = 0;
    std::int64_t makespan_ = 0;
    task_classes_finder class_finder_;
    steady_phase_finder phase_finder_;
    unroller unroller_;
    sim::scheduler scheduler_;
};

} // namespace parsearch::pipeline
