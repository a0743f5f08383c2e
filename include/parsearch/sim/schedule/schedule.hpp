#pragma once
/// The two queue disciplines: when each task of a task graph runs. See docs/simulation.md for the definition.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
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
             std::uint32_t chained = 0) {
        auto const n = g.size();
        out.ready.assign(n, 0);
        out.start.resize(n);
        out.end.resize(n);
        out.makespan = 0;
        done_by_.assign(g.resources, 0);
        for (std::uint32_t t = 0; t < n; ++t)
            if (g.kind[t] != task_kind::barrier) done_by_[g.resource[t]] = saturating_sum(done_by_[g.resource[t]], g.duration[t]);
        for (auto const t : done_by_)
            if (t > bound) return false;
        free_at_.assign(g.resources, 0);
        return order == discipline::in_order ? run_in_order(g, out, bound) : run_fifo(g, out, bound, chained);
    }

  private:
    /// Starts task `t`; false where its resource will be done after `bound`.
    bool place(task_graph const& g, std::uint32_t t, schedule& out, std::int64_t bound) {
        if (++placed_ % placed_between_looks == 0) require_running(stop_);
        auto const r = g.resource[t];
        auto start = out.ready[t];
        if (g.kind[t] != task_kind::barrier) {
            start = std::max(start, free_at_[r]);
            done_by_[r] = saturating_sum(done_by_[r], start - free_at_[r]); // idle until then
            free_at_[r] = saturating_sum(start, g.duration[t]);
        }
        out.start[t] = start;
        out.end[t] = saturating_sum(start, g.duration[t]);
        out.makespan = std::max(out.makespan, out.end[t]);
        return done_by_[r] <= bound && out.end[t] <= bound;
    }

    bool run_in_order(task_graph const& g, schedule& out, std::int64_t bound) {
        for (std::uint32_t t = 0; t < g.size(); ++t) {
            for (auto const p : g.before(t)) out.ready[t] = std::max(out.ready[t], out.end[p]);
            if (!g.ties.empty() && g.ties[t].task != task_tie::none)
                out.ready[t] = std::max(out.ready[t], saturating_sum(out.start[g.ties[t].task], g.ties[g.ties[t].task].latency));
            if (!place(g, t, out, bound)) return false;
        }
        return true;
    }

    /// Taking tasks globally by (ready, number) is each resource's own order: a successor is ready no earlier than the
    /// task it waits for and has a larger number, so nothing that comes later sorts before what was taken. That holds for what is queued also where
    /// tasks between, which have no choice, are taken before their time.
    bool run_fifo(task_graph const& g, schedule& out, std::int64_t bound, std::uint32_t chained) {
        index_successors(g);
        queue_.clear();
        at_once_.clear();
        auto const enqueue = [&](std::uint32_t t) {
            if (g.resource[t] < chained) at_once_.push_back(t);
            else queue_.push(out.ready[t], t);
        };
        for (std::uint32_t t = g.size(); t-- > 0;) // of those taken at once the least then comes first
            if (waits_for_[t] == 0) enqueue(t);
        while (!at_once_.empty() || !queue_.empty()) {
            auto const t = at_once_.empty() ? queue_.pop() : at_once_.back();
            if (!at_once_.empty()) at_once_.pop_back();
            if (!place(g, t, out, bound)) return false;
            for (auto i = first_successor_[t]; i < first_successor_[t + 1]; ++i) {
                auto const s = successors_[i] & ~follows;
                auto const left = successors_[i] & follows ? saturating_sum(out.start[t], g.ties[t].latency) : out.end[t];
                out.ready[s] = std::max(out.ready[s], left);
                if (--waits_for_[s] == 0) enqueue(s);
            }
        }
        return true;
    }

    void index_successors(task_graph const& g) {
        auto const n = g.size();
        if (n >= follows) throw invalid_input("a task graph of ", n, " tasks: at most ", follows - 1, " can be scheduled");
        auto const tied = static_cast<std::uint32_t>(g.ties.size());
        waits_for_.resize(n);
        first_successor_.assign(n + std::size_t{2}, 0);
        for (auto const p : g.predecessors) ++first_successor_[p + 2];
        for (auto const& tie : g.ties)
            if (tie.task != task_tie::none) ++first_successor_[tie.task + 2];
        for (std::uint32_t t = 0; t < n; ++t) first_successor_[t + 2] += first_successor_[t + 1];
        successors_.resize(first_successor_[n + 1]);
        for (std::uint32_t t = 0; t < n; ++t) {
            waits_for_[t] = g.first_predecessor[t + 1] - g.first_predecessor[t];
            for (auto const p : g.before(t)) successors_[first_successor_[p + 1]++] = t;
            if (t >= tied || g.ties[t].task == task_tie::none) continue;
            ++waits_for_[t];
            successors_[first_successor_[g.ties[t].task + 1]++] = t | follows;
        }
    }

    static constexpr std::uint32_t placed_between_looks = 1024;
    static constexpr std::uint32_t follows = std::uint32_t{1} << 31; ///< marks a successor that waits for the head alone
    std::vector<std::int64_t> free_at_, done_by_;                    ///< of each resource
    ready_queue queue_;
    std::stop_token stop_;
    std::uint32_t placed_ = 0; ///< in all runs
    std::vector<std::uint32_t> at_once_, waits_for_, first_successor_, successors_;
};

} // namespace parsearch::sim
