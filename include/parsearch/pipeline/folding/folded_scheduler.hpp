#pragma once
/// Schedules pipelines: all tasks, or of what repeats one.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
    void clear();

    /// Schedules all tasks. False, holding nothing, where the makespan is above `bound`.
    bool run_whole(pipeline_tasks const& p, std::int64_t bound) {
        return afresh([&] { return keep(unroll(p, p.how.micro_batches, bound), bound); });
    }
    /// Those of a graph as it is.
    bool run_as_it_is(sim::task_graph tasks, sim::discipline order, std::int64_t bound);
    /// The same answer, from one device of each class, and as many micro-batches as it takes until rounds repeat. `all.one` is that of the call
    /// before, or `forget_classes` was called since.
    bool run_folded(pipeline_tasks const& all, std::int64_t bound);
    void forget_classes() noexcept { classes_known_ = false; }

    [[nodiscard]] std::int64_t makespan() const noexcept { return makespan_; }
    /// What was scheduled last, which may stand for more.
    [[nodiscard]] sim::task_graph& tasks() noexcept { return tasks_; }
    [[nodiscard]] sim::schedule& schedule() noexcept { return schedule_; }
    [[nodiscard]] std::vector<task_origin> const& origins() const noexcept { return origins_; }
    /// Tasks that were scheduled, tries included that did not repeat.
    [[nodiscard]] std::uint64_t scheduled_tasks() const noexcept { return scheduled_; }

    /// Tasks of the pipeline. Complexity: linear in what was scheduled, and in tasks of a micro-batch.
    [[nodiscard]] std::uint64_t all_tasks() const;
    /// By device, of `devices`, picoseconds in which it computes. Complexity: linear in what was scheduled.
    [[nodiscard]] std::vector<double> busy(std::size_t devices) const;
    /// What moves for blocks whose weights are shared.
    [[nodiscard]] transfer_counts transfers() const;

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
    std::int64_t unroll(pipeline_tasks const& p, std::uint32_t micro_batches, std::int64_t bound);

    bool fold_rounds(pipeline_tasks const& p, std::int64_t bound);

    /// Picoseconds that some device computes at least in each micro-batch.
    static std::int64_t least_work(pipeline_tasks const& p);

    /// Numbers of micro-batches whose rounds may repeat, while those are much fewer than all.
    static std::vector<std::uint32_t> trials(pipelining const& how);
    /// Micro-batches after which launches repeat.
    static std::uint32_t unit_of(pipelining const& how) { return how.interleaved > 1 ? how.launching().groups() : 1; }

    std::optional<steady_phase> unroll_fewer(pipeline_tasks const& p, std::uint32_t micro_batches);

    static constexpr std::uint32_t longest_period = 8; ///< units
    sim::task_graph tasks_;
    std::vector<task_origin> origins_;
    sim::schedule schedule_;
    bool unrolled_ = false; ///< these are tasks of micro-batches
    bool alike_ = false;    ///< and classes of them
    task_classes classes_;
    bool classes_known_ = false, any_alike_ = false; ///< of tasks alone; whether there are fewer than tasks
    steady_phase phase_{};                           ///< its periods are left out
    std::uint32_t periods_ = 0;                      ///< as often
    std::uint64_t scheduled_ = 0;
    std::int64_t makespan_ = 0;
    task_classes_finder class_finder_;
    steady_phase_finder phase_finder_;
    unroller unroller_;
    sim::scheduler scheduler_;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/folding/folded_scheduler.ipp>
#endif
