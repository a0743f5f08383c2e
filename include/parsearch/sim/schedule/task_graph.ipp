#pragma once
// The task graph: what runs on which resource for how long, and what waits for what.

#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void task_graph::clear(std::uint32_t resource_count) {
    resource.clear();
    duration.clear();
    kind.clear();
    label.clear();
    predecessors.clear();
    first_predecessor.assign(1, 0);
    ties.clear();
    resources = resource_count;
}

PARSEARCH_INLINE std::uint32_t task_graph::add(std::uint32_t on, std::int64_t picoseconds, task_kind what, task_label who) {
    auto const number = size();
    resource.push_back(on);
    duration.push_back(picoseconds);
    kind.push_back(what);
    label.push_back(who);
    first_predecessor.push_back(static_cast<std::uint32_t>(predecessors.size()));
    return number;
}

} // namespace parsearch::sim
