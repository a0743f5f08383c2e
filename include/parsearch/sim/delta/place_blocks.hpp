#pragma once
/// Puts blocks in their places in an engine.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>

namespace parsearch::sim {

/// Puts an operator's tasks into its blocks.
void place(engine& to, block_graph const& graph, std::uint32_t op, operator_parts const& p);
/// The same of an edge whose data edge `carrier` brings. Where that is another, the tasks there are like those of `p`, and waited for in the same
/// way; nothing is waited for twice by one operator.
void place(engine& to, block_graph const& graph, std::uint32_t number, edge_parts const& p, std::uint32_t carrier);
/// The same of a sharing class.
void place(engine& to, block_graph const& graph, std::uint32_t c, class_parts const& p);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/place_blocks.ipp>
#endif
