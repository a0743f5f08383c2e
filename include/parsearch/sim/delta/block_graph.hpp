#pragma once
/// Which blocks an iteration has and which wait for which: fixed by the operator graph and the options, whatever the strategy.

#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/input/shared_reads.hpp>

namespace parsearch::sim {

/// Blocks are numbered in program order, so (block, task in its block) orders tasks as their numbers in a `task_graph` do.
/// An arc says that tasks of block `to` may wait for tasks of block `from`; it may lead from a block to itself.
struct block_graph {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct arc {
        std::uint32_t from = 0, to = 0;
    };
    /// What moves along an edge, in one pass.
    struct movement_arcs {
        std::uint32_t block = none;                                                ///< of the movement
        std::uint32_t sender = none, inside = none, receiver = none, local = none; ///< arcs; local: from the sender's block to the receiver's
    };
    /// Where the movement of edge `carrier` may bring the data of a later edge: from its block to the reader, and backward from the reader to it.
    struct carried_arcs {
        std::uint32_t carrier = none, forward = none, backward = none;
    };
    struct operator_arcs {
        std::uint32_t forward = none, backward = none; ///< blocks
        std::uint32_t inside_forward = none, forward_to_backward = none, to_all_backward = none;
    };
    struct class_arcs {
        std::uint32_t sync = none, update = none; ///< blocks
        std::uint32_t from_all_backward = none, inside_sync = none, sync_to_update = none, inside_update = none;
        std::vector<std::uint32_t> to_sync{}, to_update{}; ///< from each member's backward block
    };

    std::vector<operator_arcs> operators;
    std::vector<movement_arcs> forward, backward;   ///< of each edge
    std::vector<std::vector<carried_arcs>> carried; ///< of each edge, one for each edge before it in its group of readers, but for its consumer's own
    std::vector<class_arcs> classes;
    std::uint32_t all_backward = none; ///< block of one barrier, where synchronisation does not overlap with backward
    std::uint32_t blocks = 0;
    std::vector<bool> any; ///< of each block: a task waits for some arc's predecessors, not for one of each arc that binds every dependent
    std::vector<arc> arcs;
    std::vector<std::uint32_t> in, first_in, out, first_out; ///< arc numbers by block

    [[nodiscard]] std::span<std::uint32_t const> into(std::uint32_t block) const noexcept {
        return std::span(in).subspan(first_in[block], first_in[block + 1] - first_in[block]);
    }
    [[nodiscard]] std::span<std::uint32_t const> out_of(std::uint32_t block) const noexcept {
        return std::span(out).subspan(first_out[block], first_out[block + 1] - first_out[block]);
    }
};

/// The blocks of `g`, in the order that `assembler` describes; `readers` are its. `classes` and `class_of` as in `iteration_plan`.
template <class Classes>
[[nodiscard]] block_graph make_block_graph(graph::dense_graph const& g, shared_reads const& readers, Classes const& classes,
                                           std::vector<std::uint32_t> const& class_of, bool training, bool overlap) {
    block_graph b;
    b.operators.resize(g.size());
    b.forward.resize(g.edges.size());
    b.backward.resize(g.edges.size());
    b.carried.resize(g.edges.size());
    b.classes.resize(classes.size());
    auto const source = [&](std::uint32_t op) { return g.operations[op].work == ops::work_class::source; };
    auto const trains = [&](std::uint32_t op) { return training && g.trains[op]; };
    auto const block = [&](bool any) {
        b.any.push_back(any);
        return b.blocks++;
    };
    auto const arc = [&](std::uint32_t from, std::uint32_t to) {
        b.arcs.push_back({from, to});
        return static_cast<std::uint32_t>(b.arcs.size() - 1);
    };
    auto const join = [&](block_graph::movement_arcs& m, std::uint32_t sender, std::uint32_t receiver) {
        m.sender = arc(sender, m.block);
        m.inside = arc(m.block, m.block);
        m.receiver = arc(m.block, receiver);
        m.local = arc(sender, receiver);
    };
    for (auto const op : g.order) {
        if (source(op)) continue;
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (!source(g.edges[e].producer)) b.forward[e].block = block(false);
        auto& mine = b.operators[op];
        mine.forward = block(false);
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (!source(g.edges[e].producer)) join(b.forward[e], b.operators[g.edges[e].producer].forward, mine.forward);
        mine.inside_forward = arc(mine.forward, mine.forward);
    }
    for (std::size_t group = 0; group < readers.size(); ++group)
        for (auto const e : readers[group])
            for (auto const before : readers[group]) {
                if (before == e) break;
                auto const reader = g.edges[e].consumer;
                if (g.edges[before].consumer != reader)
                    b.carried[e].push_back({.carrier = before, .forward = arc(b.forward[before].block, b.operators[reader].forward)});
            }
    std::vector<std::uint32_t> waiting, synchronised;
    for (auto const& members : classes) waiting.push_back(static_cast<std::uint32_t>(members.size()));
    for (auto i = training ? g.order.size() : 0; i-- > 0;) {
        auto const op = g.order[i];
        if (!trains(op)) continue;
        for (auto const e : g.out(op))
            if (g.carries_gradient(g.edges[e])) b.backward[e].block = block(false);
        auto& mine = b.operators[op];
        mine.backward = block(false);
        for (auto const e : g.out(op))
            if (g.carries_gradient(g.edges[e])) join(b.backward[e], b.operators[g.edges[e].consumer].backward, mine.backward);
        for (auto const e : g.out(op))
            for (auto& c : b.carried[e])
                if (b.backward[e].block != block_graph::none)
                    c.backward = arc(b.operators[g.edges[e].consumer].backward, b.backward[c.carrier].block);
        mine.forward_to_backward = arc(mine.forward, mine.backward);
        auto const c = class_of[op];
        if (c == block_graph::none || --waiting[c] > 0) continue;
        synchronised.push_back(c);
        if (overlap) b.classes[c].sync = block(true);
    }
    if (training && !overlap) {
        b.all_backward = block(true);
        for (auto& mine : b.operators)
            if (mine.backward != block_graph::none) mine.to_all_backward = arc(mine.backward, b.all_backward);
        for (auto const c : synchronised) b.classes[c].sync = block(false);
    }
    for (auto const c : synchronised) {
        auto& mine = b.classes[c];
        mine.update = block(true);
        for (auto const op : classes[c]) {
            mine.to_sync.push_back(arc(b.operators[op].backward, mine.sync));
            mine.to_update.push_back(arc(b.operators[op].backward, mine.update));
        }
        if (!overlap) mine.from_all_backward = arc(b.all_backward, mine.sync);
        mine.inside_sync = arc(mine.sync, mine.sync);
        mine.sync_to_update = arc(mine.sync, mine.update);
        mine.inside_update = arc(mine.update, mine.update);
    }
    auto const index = [&](auto const& end_of, std::vector<std::uint32_t>& list, std::vector<std::uint32_t>& first) {
        first.assign(b.blocks + 1, 0);
        for (auto const& a : b.arcs) ++first[end_of(a) + 1];
        for (std::uint32_t i = 0; i < b.blocks; ++i) first[i + 1] += first[i];
        list.resize(b.arcs.size());
        auto at = first;
        for (std::uint32_t a = 0; a < b.arcs.size(); ++a) list[at[end_of(b.arcs[a])]++] = a;
    };
    index([](auto const& a) { return a.to; }, b.in, b.first_in);
    index([](auto const& a) { return a.from; }, b.out, b.first_out);
    return b;
}

} // namespace parsearch::sim
