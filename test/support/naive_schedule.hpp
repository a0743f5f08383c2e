#pragma once
/// The definition of the two queue disciplines, carried out as it stands: guesses are put into the equations until they fit.
/// Nothing here knows queues or heaps; every round looks at every task.

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace support {

/// The task whose head task `t` waits for.
inline std::uint32_t head_of(parsearch::sim::task_graph const& g, std::uint32_t t) {
    return g.ties.empty() ? parsearch::sim::task_tie::none : g.ties[t].task;
}

/// Every task: ready = largest end of its predecessors; on each resource tasks run in the order of the discipline, each from
/// max(ready, end of the one before); barriers wait for no resource. Solved by iteration from all zeros.
inline parsearch::sim::schedule naive_schedule(parsearch::sim::task_graph const& g, parsearch::sim::discipline order) {
    using namespace parsearch;
    sim::schedule s;
    s.ready.assign(g.size(), 0);
    s.start.assign(g.size(), 0);
    s.end.assign(g.size(), 0);
    for (std::size_t round = 0;; ++round) {
        auto const before = std::tuple(s.ready, s.start, s.end);
        for (std::uint32_t t = 0; t < g.size(); ++t) {
            s.ready[t] = 0;
            for (auto const p : g.before(t)) s.ready[t] = std::max(s.ready[t], s.end[p]);
            if (auto const head = head_of(g, t); head != sim::task_tie::none) s.ready[t] = std::max(s.ready[t], s.start[head] + g.ties[head].latency);
            if (g.kind[t] == sim::task_kind::barrier) s.start[t] = s.end[t] = s.ready[t];
        }
        for (std::uint32_t r = 0; r < g.resources; ++r) {
            std::vector<std::pair<std::int64_t, std::uint32_t>> queue;
            for (std::uint32_t t = 0; t < g.size(); ++t)
                if (g.resource[t] == r && g.kind[t] != sim::task_kind::barrier)
                    queue.emplace_back(order == sim::discipline::fifo ? s.ready[t] : 0, t);
            std::sort(queue.begin(), queue.end());
            std::int64_t free_at = 0;
            for (auto const& [key, t] : queue) {
                s.start[t] = std::max(s.ready[t], free_at);
                s.end[t] = free_at = s.start[t] + g.duration[t];
            }
        }
        if (before == std::tuple(s.ready, s.start, s.end)) break;
        if (round > 10 * std::size_t{g.size()} * g.size() + 10) throw invalid_input("no fixed point after ", round, " rounds");
    }
    for (auto const end : s.end) s.makespan = std::max(s.makespan, end);
    return s;
}

/// Where a schedule breaks a rule that holds in every discipline; empty where it does not.
inline std::string broken_rule(parsearch::sim::task_graph const& g, parsearch::sim::schedule const& s) {
    using namespace parsearch;
    std::int64_t last = 0;
    std::vector<std::int64_t> load(g.resources, 0), path(g.size(), 0);
    for (std::uint32_t t = 0; t < g.size(); ++t) {
        std::int64_t ready = 0;
        for (auto const p : g.before(t)) {
            if (p >= t) return text("task ", t, " waits for ", p);
            ready = std::max(ready, s.end[p]);
            path[t] = std::max(path[t], path[p]);
        }
        if (auto const head = head_of(g, t); head != sim::task_tie::none) ready = std::max(ready, s.start[head] + g.ties[head].latency);
        path[t] += g.duration[t];
        if (s.ready[t] != ready) return text("task ", t, " is ready at ", s.ready[t], ", its predecessors end at ", ready);
        if (s.start[t] < s.ready[t]) return text("task ", t, " starts before it is ready");
        if (s.end[t] != s.start[t] + g.duration[t]) return text("task ", t, " runs for another time than its duration");
        last = std::max(last, s.end[t]);
        load[g.resource[t]] += g.duration[t];
        if (path[t] > s.makespan) return text("path to task ", t, " is longer than the makespan");
    }
    if (last != s.makespan) return text("makespan is ", s.makespan, ", the last task ends at ", last);
    for (auto const sum : load)
        if (sum > s.makespan) return text("a resource of load ", sum, " in a makespan of ", s.makespan);
    for (std::uint32_t r = 0; r < g.resources; ++r) {
        std::vector<std::pair<std::int64_t, std::int64_t>> busy;
        for (std::uint32_t t = 0; t < g.size(); ++t)
            if (g.resource[t] == r && g.duration[t] > 0) busy.emplace_back(s.start[t], s.end[t]);
        std::sort(busy.begin(), busy.end());
        for (std::size_t i = 1; i < busy.size(); ++i)
            if (busy[i].first < busy[i - 1].second) return text("two tasks of resource ", r, " overlap at ", busy[i].first);
    }
    return {};
}

} // namespace support
