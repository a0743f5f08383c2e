#pragma once
// What a report tells of a schedule.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/sim/report.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::vector<double> utilisation_of(task_graph const& g, schedule const& s) {
    std::vector<double> busy(g.resources, 0);
    for (std::uint32_t t = 0; t < g.size(); ++t) busy[g.resource[t]] += static_cast<double>(g.duration[t]);
    std::vector<double> out;
    for (auto const b : busy) out.push_back(s.makespan > 0 ? b / static_cast<double>(s.makespan) : 0);
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> critical_path_of(task_graph const& g, schedule const& s) {
    std::vector<std::uint32_t> path;
    if (g.size() == 0) return path;
    // Which task ran before which on a resource.
    constexpr auto none = ~std::uint32_t{0};
    std::vector<std::uint32_t> by_start(g.size()), last(g.resources, none), previous(g.size(), none);
    for (std::uint32_t t = 0; t < g.size(); ++t) by_start[t] = t;
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](auto a, auto b) { return s.start[a] != s.start[b] ? s.start[a] < s.start[b] : s.end[a] < s.end[b]; });
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

} // namespace parsearch::sim
