#pragma once
/// What a simulation tells: timeline, utilisation, critical path, traffic, memory.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/sim/memory.hpp>
#include <parsearch/sim/payload.hpp>
#include <parsearch/sim/schedule.hpp>
#include <parsearch/sim/task_graph.hpp>

namespace parsearch::sim {

/// The simulation of one strategy.
struct report {
    picoseconds makespan{};
    task_graph tasks;
    sim::schedule schedule;
    std::vector<payload> carried;                   ///< by task: bytes and collective of what moves
    std::vector<double> utilisation;                ///< busy share of the makespan, by resource: devices, then links, then barriers
    std::vector<std::uint32_t> critical_path;       ///< tasks, first to last, each starting when the one before ends
    std::array<double, traffic_kinds> traffic{};    ///< bytes moved between devices in one iteration, by `traffic_kind`
    std::vector<memory_use> memory;                 ///< by device

    /// Bytes on the fullest device.
    [[nodiscard]] byte_count peak_memory() const noexcept {
        byte_count most = 0;
        for (auto const& m : memory) most = std::max(most, m.total());
        return most;
    }
    /// Bytes moved between devices in one iteration.
    [[nodiscard]] double bytes_moved() const noexcept {
        double sum = 0;
        for (auto const b : traffic) sum += b;
        return sum;
    }
};

/// Busy share of the makespan of each resource; 0 where the makespan is 0.
[[nodiscard]] inline std::vector<double> utilisation_of(task_graph const& g, schedule const& s) {
    std::vector<double> busy(g.resources, 0);
    for (std::uint32_t t = 0; t < g.size(); ++t) busy[g.resource[t]] += static_cast<double>(g.duration[t]);
    std::vector<double> out;
    for (auto const b : busy) out.push_back(s.makespan > 0 ? b / static_cast<double>(s.makespan) : 0);
    return out;
}

/// A chain of tasks without a gap from time 0 to the makespan: each starts when the one before it in the chain ends (under `cut_through`, when its head
/// has left), be that a task it waits for or the one before on its resource; under `fair_sharing`, its latency later. Dependencies come first where both
/// end then, and smaller numbers.
[[nodiscard]] inline std::vector<std::uint32_t> critical_path_of(task_graph const& g, schedule const& s) {
    std::vector<std::uint32_t> path;
    if (g.size() == 0) return path;
    // Which task ran before which on a resource.
    constexpr auto none = ~std::uint32_t{0};
    std::vector<std::uint32_t> by_start(g.size()), last(g.resources, none), previous(g.size(), none);
    for (std::uint32_t t = 0; t < g.size(); ++t) by_start[t] = t;
    std::stable_sort(by_start.begin(), by_start.end(), [&](auto a, auto b) {
        return s.start[a] != s.start[b] ? s.start[a] < s.start[b] : s.end[a] < s.end[b];
    });
    for (auto const t : by_start) {
        previous[t] = last[g.resource[t]];
        last[g.resource[t]] = t;
    }
    auto at = static_cast<std::uint32_t>(std::find(s.end.begin(), s.end.end(), s.makespan) - s.end.begin());
    for (;;) {
        path.push_back(at);
        auto const tie = g.ties.empty() ? task_tie{} : g.ties[at];
        // What flows has no other task before it on its links: it starts when it is ready, and its latency has passed.
        bool const shared = tie.task != task_tie::none && g.ties[tie.task].task == tie.task;
        auto const since = shared ? s.ready[at] : s.start[at];
        if (since == 0) break;
        auto const waits_for = g.before(at);
        auto const found = std::find_if(waits_for.begin(), waits_for.end(), [&](auto p) { return s.end[p] == since; });
        if (found != waits_for.end()) at = *found;
        else if (!shared && tie.task != task_tie::none && saturating_sum(s.start[tie.task], g.ties[tie.task].latency) == since) at = tie.task;
        else at = previous[at];
    }
    std::reverse(path.begin(), path.end());
    return path;
}

/// Simulates `s` with `simulator` and copies everything out. A strategy that does not fit the memory is simulated all the same.
template <class Simulator, class S> [[nodiscard]] report make_report(Simulator& simulator, S const& s) {
    report r;
    r.makespan = simulator.simulate(s);
    r.tasks = simulator.tasks();
    r.schedule = simulator.schedule();
    r.carried = payloads(simulator.plan(), simulator.input().graph, r.tasks, simulator.input().options);
    r.utilisation = utilisation_of(r.tasks, r.schedule);
    r.critical_path = critical_path_of(r.tasks, r.schedule);
    r.traffic = simulator.traffic();
    r.memory = simulator.memory();
    return r;
}

} // namespace parsearch::sim
