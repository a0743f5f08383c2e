#pragma once
// What a report tells of a schedule.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/sim/report.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE resource_tasks tasks_by_resource(task_graph const& g, schedule const& s) {
    resource_tasks out{.tasks = std::vector<std::uint32_t>(g.size()), .first = std::vector<std::size_t>(g.resources + 2, 0)};
    auto& first = out.first;
    for (auto const r : g.resource) ++first[r + 2];
    std::partial_sum(first.begin(), first.end(), first.begin());
    for (std::uint32_t t = 0; t < g.size(); ++t) out.tasks[first[g.resource[t] + 1]++] = t;
    first.pop_back();
    auto const before = [&](auto a, auto b) { return s.start[a] != s.start[b] ? s.start[a] < s.start[b] : s.end[a] < s.end[b]; };
    for (std::uint32_t r = 0; r < g.resources; ++r) {
        auto const begin = out.tasks.begin() + static_cast<std::ptrdiff_t>(first[r]),
                   end = out.tasks.begin() + static_cast<std::ptrdiff_t>(first[r + 1]);
        if (!std::is_sorted(begin, end, before)) std::stable_sort(begin, end, before);
    }
    return out;
}

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
    std::vector<std::uint32_t> previous(g.size(), none);
    auto const rows = tasks_by_resource(g, s);
    for (std::size_t i = 1; i < rows.tasks.size(); ++i)
        if (auto const t = rows.tasks[i], p = rows.tasks[i - 1]; g.resource[t] == g.resource[p]) previous[t] = p;
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

namespace parsearch::sim {

PARSEARCH_INLINE double report::idle_share() const noexcept {
    double sum = 0;
    std::size_t used = 0;
    for (std::size_t d = 0; d < memory.size(); ++d)
        if (utilisation[d] > 0) {
            sum += utilisation[d];
            ++used;
        }
    return used > 0 ? 1 - sum / static_cast<double>(used) : 0;
}

} // namespace parsearch::sim
