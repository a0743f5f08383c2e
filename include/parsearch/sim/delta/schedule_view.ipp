#pragma once
// A view of the delta simulator: the schedule and memory of a strategy, on all resources or on one of each class of resources.

#include <parsearch/sim/delta/schedule_view.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE schedule_view::schedule_view(block_graph const& g, graph::dense_graph const& network, std::size_t class_count,
                                              simulation_options const& options, resource_numbers const& r, bool folds)
    : folded(folds), schedule(g, r, options.discipline), memory(network, r.devices, class_count, options), graph_(&g),
      old_operators_(network.size(), 0), old_edges_(network.edges.size(), 0), old_classes_(class_count, 0) {
    for (auto const& c : g.classes)
        if (c.update != block_graph::none) schedule.count(c.update, false);
    if (g.all_backward == block_graph::none) return;
    all_backward->add(r.barrier(), 0);
    schedule.set_tasks(g.all_backward, all_backward.get());
}

PARSEARCH_INLINE void schedule_view::is_up_to_date() noexcept {
    auto const forget = [](std::vector<std::uint32_t>& list, std::vector<char>& old) {
        for (auto const i : list) old[i] = 0;
        list.clear();
    };
    forget(operators_, old_operators_);
    forget(edges_, old_edges_);
    forget(classes_, old_classes_);
}

} // namespace parsearch::sim
