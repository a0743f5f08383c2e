#pragma once
/// The two queue disciplines: when each task of a task graph runs. See docs/simulation.md for the definition.

#include <cstdint>
#include <limits>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/ready_queue.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::sim {

/// When each task was ready, started and ended, in picoseconds from 0.
struct schedule {
    std::vector<std::int64_t> ready, start, end;
    std::int64_t makespan = 0;
};

/// Simulates task graphs; keeps its buffers from one to the next.
/// ready = largest end of the predecessors (0 without any), no earlier than the head of the task that it is tied to, if any, has left (its start and
/// latency); a resource runs one task at a time in the order of its
/// discipline, each starting at max(ready, end of the one before); makespan = largest end. Times past 64 bits of picoseconds
/// (106 days) stay at the largest value, the cost of what is infeasible. Barriers are on no device or link and
/// start when they are ready: in program order, one that waits would hold up every later collective, wherever it runs.
class scheduler {
  public:
    /// From now on runs throw `interrupted` once `stop` is requested.
    void stop_at(std::stop_token stop) noexcept { stop_ = std::move(stop); }

    /// False, with `out` unfinished, as soon as the makespan is sure to be above `bound`: the work done and still to do on some
    /// resource ends later. Complexity: fifo O(E + V log V), in_order O(V + E).
    ///
    /// `chained`: every task on a resource below it waits for the one before it there, so that nothing is to be decided: under fifo these are
    /// scheduled at once, and only the others are queued. The schedule is the same.
    bool run(task_graph const& g, discipline order, schedule& out, std::int64_t bound = std::numeric_limits<std::int64_t>::max(),
             std::uint32_t chained = 0);

  private:
    /// Starts task `t`; false where its resource will be done after `bound`.
    bool place(task_graph const& g, std::uint32_t t, schedule& out, std::int64_t bound);

    bool run_in_order(task_graph const& g, schedule& out, std::int64_t bound);

    /// Taking tasks globally by (ready, number) is each resource's own order: a successor is ready no earlier than the
    /// task it waits for and has a larger number, so nothing that comes later sorts before what was taken. That holds for what is queued also where
    /// tasks between, which have no choice, are taken before their time.
    bool run_fifo(task_graph const& g, schedule& out, std::int64_t bound, std::uint32_t chained);

    void index_successors(task_graph const& g);

    static constexpr std::uint32_t placed_between_looks = 1024;
    static constexpr std::uint32_t follows = std::uint32_t{1} << 31; ///< marks a successor that waits for the head alone
    std::vector<std::int64_t> free_at_, done_by_;                    ///< of each resource
    ready_queue queue_;
    std::stop_token stop_;
    std::uint32_t placed_ = 0; ///< in all runs
    std::vector<std::uint32_t> at_once_, waits_for_, first_successor_, successors_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/schedule/schedule.ipp>
#endif
