#pragma once
/// Puts blocks in their places in an engine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>

namespace parsearch::sim {

/// Puts an operator's tasks into its blocks.
inline void place(engine& to, block_graph const& graph, std::uint32_t op, operator_parts const& p) {
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
/// The same of an edge whose data edge `carrier` brings. Where that is another, the tasks there are like those of `p`, and waited for in the same
/// way; nothing is waited for twice by one operator.
inline void place(engine& to, block_graph const& graph, std::uint32_t number, edge_parts const& p, std::uint32_t carrier) {
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
/// The same of a sharing class.
inline void place(engine& to, block_graph const& graph, std::uint32_t c, class_parts const& p) {
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

/// Calls `f(block, tasks, classes of the tasks where it folds)` for each block in program order. An edge may have none, or another for a carrier.
template <class Operators, class Edges, class Carriers, class Classes, class F>
void for_blocks(block_graph const& graph, Operators const& operators, Edges const& edges, Carriers const& carriers, Classes const& classes,
                task_list const& all_backward, F const& f) {
    std::vector<std::pair<task_list const*, std::vector<std::uint32_t> const*>> blocks(graph.blocks);
    auto const set = [&](std::uint32_t block, task_list const& tasks, std::vector<std::uint32_t> const& fold) {
        if (block != block_graph::none) blocks[block] = {&tasks, &fold};
    };
    std::vector<std::uint32_t> const one(1, 0);
    set(graph.all_backward, all_backward, one);
    for (std::size_t op = 0; op < operators.size(); ++op) {
        set(graph.operators[op].forward, operators[op]->parts.forward, operators[op]->fold_forward);
        set(graph.operators[op].backward, operators[op]->parts.backward, operators[op]->fold_backward);
    }
    for (std::size_t e = 0; e < edges.size(); ++e)
        if (edges[e] && carriers[e] == e) {
            set(graph.forward[e].block, edges[e]->parts.forward, edges[e]->fold_forward);
            set(graph.backward[e].block, edges[e]->parts.backward, edges[e]->fold_backward);
        }
    for (std::size_t c = 0; c < classes.size(); ++c) {
        set(graph.classes[c].sync, classes[c]->parts.sync, classes[c]->fold_sync);
        set(graph.classes[c].update, classes[c]->parts.update, classes[c]->fold_update);
    }
    for (std::uint32_t b = 0; b < graph.blocks; ++b)
        if (blocks[b].first) f(b, *blocks[b].first, *blocks[b].second);
}

} // namespace parsearch::sim
