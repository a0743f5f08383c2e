#pragma once
/// The blocks of a strategy in the places that a block graph has for them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/sim/delta/block_bounds.hpp>
#include <parsearch/sim/delta/block_cache.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>
#include <parsearch/sim/task/shard_layout.hpp>

namespace support {

/// What lies where, by block and by arc; nothing where a strategy has nothing for a place.
struct placed_blocks {
    std::vector<parsearch::sim::task_list const*> tasks;
    std::vector<parsearch::sim::dependence const*> waits;
    std::vector<parsearch::sim::operator_blocks*> operators; ///< these by operator, edge and class
    std::vector<parsearch::sim::edge_blocks const*> edges;
    std::vector<std::uint32_t> carriers; ///< of edges
    std::vector<parsearch::sim::class_blocks const*> classes;
    std::shared_ptr<parsearch::sim::task_list const> all_backward;
};

template <class Workload> parsearch::sim::block_graph block_graph_of(Workload const& w) {
    return parsearch::sim::make_block_graph(w.graph, w.readers, w.classes, w.class_of, w.options.training, w.options.overlap);
}

/// Says what of an edge's `parts` lies where: `put(block, tasks, backward)` and `join(arc, dependence)`.
template <class Put, class Join>
void lay_out_edge(parsearch::sim::block_graph const& g, std::uint32_t e, std::uint32_t carrier, parsearch::sim::edge_parts const& parts,
                  Put const& put, Join const& join) {
    bool by_another = false;
    for (auto const& c : g.carried[e]) {
        if (c.carrier != carrier) continue;
        by_another = true;
        join(c.forward, parts.consumer_waits);
        join(c.backward, parts.backward_waits);
    }
    if (by_another || carrier == e) {
        join(g.forward[e].local, parts.consumer_local);
        join(g.backward[e].local, parts.producer_local);
    }
    if (carrier != e) return;
    put(g.forward[e].block, parts.forward, false);
    join(g.forward[e].sender, parts.forward_waits);
    join(g.forward[e].inside, parts.inside_forward);
    join(g.forward[e].receiver, parts.consumer_waits);
    put(g.backward[e].block, parts.backward, true);
    join(g.backward[e].sender, parts.backward_waits);
    join(g.backward[e].inside, parts.inside_backward);
    join(g.backward[e].receiver, parts.producer_waits);
}

/// Of each edge, the first before it in program order that brings the same parts of its tensor to the same devices, one of its own operator before
/// others, or itself.
template <class Workload> std::vector<std::uint32_t> carriers_of(Workload const& w, std::vector<parsearch::sim::operator_blocks*> const& operators) {
    using namespace parsearch;
    auto const& g = w.graph;
    std::vector<std::uint32_t> out, place(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
        out.push_back(e);
        auto const& mine = g.edges[e];
        if (g.operations[mine.producer].work == ops::work_class::source) continue;
        auto const passed_on = [&](graph::edge const& of) { return g.operations[of.consumer].inputs[of.input].passed_on; };
        auto const read = [&](graph::edge const& of) {
            auto const& c = operators[of.consumer]->configuration;
            std::vector<std::int64_t> devices;
            for (std::int64_t n = 0; n < c.shards(); ++n) devices.push_back(c.device(n));
            return std::pair(devices, sim::layout_of_input(g.operations[of.consumer], g.operations[of.consumer].inputs[of.input], c.degrees()));
        };
        auto const when = [&](std::uint32_t of) { return std::pair(place[g.edges[of].consumer], g.edges[of].input); };
        for (std::uint32_t other = 0; other < g.edges.size(); ++other) {
            auto const& its = g.edges[other];
            auto const better = [&](std::uint32_t of) { return std::pair(g.edges[of].consumer != mine.consumer || of == e, when(of)); };
            if (its.producer == mine.producer && its.slot == mine.slot && g.carries_gradient(its) == g.carries_gradient(mine) &&
                passed_on(its) == passed_on(mine) && (!passed_on(mine) || its.consumer == mine.consumer) && when(other) < when(e) &&
                better(other) < better(out.back()) && read(its) == read(mine))
                out.back() = other;
        }
    }
    return out;
}

/// Takes the blocks of `s` from `cache`.
template <class Cache, class Strategy> placed_blocks place_blocks(Cache& cache, parsearch::sim::block_graph const& g, Strategy const& s) {
    using namespace parsearch;
    auto const& w = cache.input();
    constexpr auto none = sim::block_graph::none;
    placed_blocks out;
    out.tasks.resize(g.blocks);
    out.waits.resize(g.arcs.size());
    auto const put = [&](std::uint32_t block, sim::task_list const& tasks) {
        if (block != none) out.tasks[block] = &tasks;
    };
    auto const join = [&](std::uint32_t arc, sim::dependence const& d) {
        if (arc != none) out.waits[arc] = &d;
    };
    for (std::uint32_t op = 0; op < w.graph.size(); ++op) {
        out.operators.push_back(&cache.of_operator(op, s[op]));
        auto& b = *out.operators.back();
        cache.build(op, b);
        auto const& at = g.operators[op];
        auto const& parts = b.parts;
        put(at.forward, parts.forward);
        put(at.backward, parts.backward);
        join(at.inside_forward, parts.inside_forward);
        join(at.forward_to_backward, parts.backward_waits_forward);
        join(at.to_all_backward, parts.all_backward_waits);
    }
    for (std::uint32_t e = 0; e < w.graph.edges.size(); ++e) {
        auto const& edge = w.graph.edges[e];
        if (w.graph.operations[edge.producer].work == ops::work_class::source) {
            out.edges.push_back(nullptr);
            continue;
        }
        out.edges.push_back(&cache.of_edge(e, *out.operators[edge.producer], *out.operators[edge.consumer]));
    }
    out.carriers = carriers_of(w, out.operators);
    for (std::uint32_t e = 0; e < w.graph.edges.size(); ++e)
        if (out.edges[e])
            lay_out_edge(
                g, e, out.carriers[e], out.edges[e]->parts, [&](auto block, auto const& tasks, bool) { put(block, tasks); }, join);
    for (std::uint32_t c = 0; c < w.classes.size(); ++c) {
        out.classes.push_back(&cache.of_class(c, [&](std::uint32_t op) -> sim::operator_blocks const& { return *out.operators[op]; }));
        auto const& b = out.classes.back()->parts;
        auto const& at = g.classes[c];
        put(at.sync, b.sync);
        put(at.update, b.update);
        for (std::size_t m = 0; m < at.to_sync.size(); ++m) join(at.to_sync[m], b.sync_waits[m]);
        for (std::size_t m = 0; m < at.to_update.size(); ++m) join(at.to_update[m], b.update_waits[m]);
        join(at.from_all_backward, b.sync_waits_all);
        join(at.inside_sync, b.inside_sync);
        join(at.sync_to_update, b.update_waits_sync);
        join(at.inside_update, b.inside_update);
    }
    if (g.all_backward != none) {
        auto barrier = std::make_shared<sim::task_list>();
        barrier->add(cache.resources().barrier(), 0);
        out.all_backward = barrier;
        out.tasks[g.all_backward] = barrier.get();
    }
    return out;
}

/// All that bounds need of them.
template <class Cache>
void note_facts(parsearch::sim::path_bounds& bounds, Cache& cache, parsearch::sim::block_graph const& g, placed_blocks const& placed) {
    constexpr auto none = parsearch::sim::block_graph::none;
    auto const& edges = cache.input().graph.edges;
    for (std::uint32_t op = 0; op < placed.operators.size(); ++op) {
        auto const& b = *placed.operators[op];
        auto& facts = bounds.of_operator(op);
        facts = {b.shape->shortest_forward, b.shape->shortest_backward, 0, 0, !b.parts.inside_forward.empty(), b.everywhere};
        for (std::size_t n = 0; n < b.plan.devices.size(); ++n)
            if (b.plan.devices[n] == 0) {
                if (g.operators[op].forward != none) facts.forward_here += b.parts.forward.duration[n];
                if (g.operators[op].backward != none) facts.backward_here += b.parts.backward.duration[n];
            }
    }
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
        if (!placed.edges[e]) continue;
        auto const &from = *placed.operators[edges[e].producer], &to = *placed.operators[edges[e].consumer];
        auto const& shape = cache.shape_of_edge(e, from, to);
        auto const& parts = placed.edges[e]->parts;
        auto const n = from.plan.devices.size();
        auto const aligned = to.plan.devices.size() == n && parts.forward.size() + parts.backward.size() == 0 && parts.consumer_local.aligned == n &&
                             parts.producer_local.aligned == n;
        bounds.of_edge(e) = {shape.every_consumer, shape.every_producer, aligned};
    }
    for (std::uint32_t c = 0; c < placed.classes.size(); ++c) {
        auto const& b = *placed.classes[c];
        auto const all = std::find(b.every.begin(), b.every.end(), false) == b.every.end();
        bounds.of_class(c) = {all ? b.shortest : 0, b.shortest_update, b.parts.sync.size() > 0 && all, b.every.size() > 1};
    }
}

} // namespace support
