#pragma once
// Puts blocks in their places in an engine.

#include <algorithm>

#include <parsearch/sim/delta/place_blocks.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void place(engine& to, block_graph const& graph, std::uint32_t op, operator_parts const& p) {
    auto const& at = graph.operators[op];
    if (at.forward == block_graph::none) return;
    to.set_tasks(at.forward, &p.forward);
    to.set_dependence(at.inside_forward, &p.inside_forward);
    if (at.backward == block_graph::none) return;
    to.set_tasks(at.backward, &p.backward);
    to.set_dependence(at.forward_to_backward, &p.backward_waits_forward);
    if (at.to_all_backward == block_graph::none) return;
    to.set_dependence(at.to_all_backward, &p.all_backward_waits);
}

PARSEARCH_INLINE void place(engine& to, block_graph const& graph, std::uint32_t number, edge_parts const& p, std::uint32_t carrier) {
    auto const& carried = graph.carried[number];
    bool const own = carrier == number, reads = own || std::ranges::find(carried, carrier, &block_graph::carried_arcs::carrier) != carried.end();
    auto const set = [&](block_graph::movement_arcs const& at, task_list const& tasks, dependence const& sender, dependence const& inside,
                         dependence const& receiver, dependence const& local) {
        if (at.block == block_graph::none) return;
        to.set_tasks(at.block, own ? &tasks : nullptr);
        to.set_dependence(at.sender, own ? &sender : nullptr);
        to.set_dependence(at.inside, own ? &inside : nullptr);
        to.set_dependence(at.receiver, own ? &receiver : nullptr);
        to.set_dependence(at.local, reads ? &local : nullptr);
    };
    set(graph.forward[number], p.forward, p.forward_waits, p.inside_forward, p.consumer_waits, p.consumer_local);
    set(graph.backward[number], p.backward, p.backward_waits, p.inside_backward, p.producer_waits, p.producer_local);
    for (auto const& c : carried) {
        to.set_dependence(c.forward, c.carrier == carrier ? &p.consumer_waits : nullptr);
        if (c.backward != block_graph::none) to.set_dependence(c.backward, c.carrier == carrier ? &p.backward_waits : nullptr);
    }
}

PARSEARCH_INLINE void place(engine& to, block_graph const& graph, std::uint32_t c, class_parts const& p) {
    auto const& at = graph.classes[c];
    if (at.update == block_graph::none) return;
    to.set_tasks(at.sync, &p.sync);
    to.set_tasks(at.update, &p.update);
    for (std::size_t m = 0; m < at.to_sync.size(); ++m) {
        to.set_dependence(at.to_sync[m], &p.sync_waits[m]);
        to.set_dependence(at.to_update[m], &p.update_waits[m]);
    }
    if (at.from_all_backward != block_graph::none) to.set_dependence(at.from_all_backward, &p.sync_waits_all);
    to.set_dependence(at.inside_sync, &p.inside_sync);
    to.set_dependence(at.sync_to_update, &p.update_waits_sync);
    to.set_dependence(at.inside_update, &p.inside_update);
}

} // namespace parsearch::sim
