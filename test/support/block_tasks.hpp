#pragma once
/// Blocks as one task graph.

#include <cstdint>
#include <vector>

#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace support {

/// Predecessors of dependent `i`, whichever way they are written.
inline std::vector<std::uint32_t> predecessors_of(parsearch::sim::dependence const& d, std::uint32_t i) {
    if (d.empty()) return {};
    if (d.aligned) return i < d.aligned ? std::vector<std::uint32_t>{i} : std::vector<std::uint32_t>{};
    auto const all = d.predecessors(i);
    return {all.begin(), all.end()};
}

/// The number of the first task of each block, and of all tasks.
inline std::vector<std::uint32_t> first_tasks(std::vector<parsearch::sim::task_list const*> const& tasks) {
    std::vector<std::uint32_t> first{0};
    for (auto const* list : tasks) first.push_back(first.back() + (list ? list->size() : 0));
    return first;
}

/// Blocks one after the other as one task graph. Tasks have no labels, and those on the last resource are barriers.
inline parsearch::sim::task_graph flatten(parsearch::sim::block_graph const& g, std::vector<parsearch::sim::task_list const*> const& tasks,
                                          std::vector<parsearch::sim::dependence const*> const& waits, parsearch::sim::resource_numbers r) {
    using namespace parsearch;
    auto const first = first_tasks(tasks);
    sim::task_graph out;
    out.clear(r.size());
    for (std::uint32_t b = 0; b < g.blocks; ++b)
        for (std::uint32_t i = 0; i < first[b + 1] - first[b]; ++i) {
            for (std::uint32_t a = 0; a < g.arcs.size(); ++a)
                if (g.arcs[a].to == b && waits[a])
                    for (auto const p : predecessors_of(*waits[a], i)) out.after(first[g.arcs[a].from] + p);
            auto const on = tasks[b]->resource[i];
            out.add(on, tasks[b]->duration[i], on == r.barrier() ? sim::task_kind::barrier : sim::task_kind::forward, {});
        }
    return out;
}

} // namespace support
