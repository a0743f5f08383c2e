#pragma once
// The two queue disciplines: when each task of a task graph runs. See docs/simulation.md for the definition.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE bool scheduler::run(task_graph const& g, discipline order, schedule& out, std::int64_t bound, std::uint32_t chained) {
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

PARSEARCH_INLINE bool scheduler::place(task_graph const& g, std::uint32_t t, schedule& out, std::int64_t bound) {
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

PARSEARCH_INLINE bool scheduler::run_in_order(task_graph const& g, schedule& out, std::int64_t bound) {
    for (std::uint32_t t = 0; t < g.size(); ++t) {
        for (auto const p : g.before(t)) out.ready[t] = std::max(out.ready[t], out.end[p]);
        if (!g.ties.empty() && g.ties[t].task != task_tie::none)
            out.ready[t] = std::max(out.ready[t], saturating_sum(out.start[g.ties[t].task], g.ties[g.ties[t].task].latency));
        if (!place(g, t, out, bound)) return false;
    }
    return true;
}

PARSEARCH_INLINE bool scheduler::run_fifo(task_graph const& g, schedule& out, std::int64_t bound, std::uint32_t chained) {
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

PARSEARCH_INLINE void scheduler::index_successors(task_graph const& g) {
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

} // namespace parsearch::sim
