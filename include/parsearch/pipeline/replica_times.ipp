#pragma once
// What one micro-batch takes on one replica of a network: what estimates of pipelines are put together from.

#include <algorithm>
#include <numeric>
#include <set>

#include <parsearch/core/cost.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/pipeline/replica_times.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::pipeline::detail {

/// Bytes on a device of what is kept of an operator's outputs until backward, and beside them.
PARSEARCH_INLINE byte_count activations_of(graph::dense_graph const& g, std::uint32_t op, space::flat_strategy const& strategy) {
    auto const own = sim::memory_of(g.operations[op], strategy[op].degrees());
    byte_count sum = g.trains[op] ? own.saved : 0;
    for (std::uint32_t slot = 0; slot < own.outputs.size(); ++slot) {
        byte_count kept = g.operations[op].outputs[slot].saved && g.trains[op] ? own.outputs[slot] : 0;
        for (auto const number : g.out(op)) {
            auto const& e = g.edges[number];
            if (e.slot == slot && g.trains[e.consumer] && g.operations[e.consumer].inputs[e.input].saved)
                kept = std::max(kept, sim::memory_of(g.operations[e.consumer], strategy[e.consumer].degrees()).inputs[e.input]);
        }
        sum += kept;
    }
    return sum;
}

/// Bytes on a device of an operator's inputs and outputs, and their gradients.
PARSEARCH_INLINE byte_count buffers_of(graph::dense_graph const& g, std::uint32_t op, space::flat_strategy const& strategy, bool training) {
    if (g.operations[op].work == ops::work_class::view) return 0;
    auto const own = sim::memory_of(g.operations[op], strategy[op].degrees());
    byte_count sum = 0;
    for (auto const b : own.inputs) sum += b;
    for (auto const b : own.outputs) sum += b;
    return training && g.trains[op] ? 2 * sum : sum;
}

/// Adds what waits on device 0 for gradients of weights, by place; a tensor once in a block.
PARSEARCH_INLINE void add_waiting(graph::dense_graph const& g, std::span<std::size_t const> place, std::span<std::uint32_t const> blocks,
                                  space::flat_strategy const& strategy, std::vector<waiting_bytes>& to) {
    std::vector<sim::shard_memory> shards;
    std::vector<std::vector<std::uint32_t>> devices;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& c = strategy[op];
        shards.push_back(sim::memory_of(g.operations[op], c.degrees()));
        auto& of_op = devices.emplace_back();
        for (std::int64_t n = 0; n < c.shards(); ++n) of_op.push_back(static_cast<std::uint32_t>(c.device(n)));
    }
    auto const same_block = [&](graph::edge const& a, graph::edge const& b) { return blocks[place[a.consumer]] == blocks[place[b.consumer]]; };
    for_waiting(
        g, same_block, [&](std::size_t op) -> auto const& { return shards[op]; }, [&](std::size_t op) -> auto const& { return devices[op]; },
        [&](std::uint32_t d, waiting_bytes const& b, std::uint32_t op) {
            if (d == 0) to[place[op]] += b;
        });
}

PARSEARCH_INLINE replica_times replica_times_of(parallelization const& problem, std::span<std::uint32_t const> order,
                                                std::span<std::uint32_t const> blocks, ops::batch_part samples, space::neighbour_split by) {
    auto const part = micro_batch_problem(problem, samples);
    auto const& g = part.graph();
    std::vector<std::size_t> place(g.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    auto const strategy = split_among_neighbours(part, by.replica(), by);
    auto simulate = part.simulator();
    auto tasks = simulate.assemble(strategy);
    auto const updates = tasks.duration;
    auto const once = [&](std::uint32_t t) { // for all micro-batches
        return tasks.kind[t] == sim::task_kind::update ||
               (by.replica() > by.tensor && tasks.label[t].traffic == sim::traffic_kind::weight_gradient &&
                (tasks.kind[t] == sim::task_kind::transfer || tasks.kind[t] == sim::task_kind::collective));
    };
    for (std::uint32_t t = 0; t < tasks.size(); ++t)
        if (once(t)) tasks.duration[t] = 0;
    sim::schedule when;
    sim::scheduler{}.run(tasks, part.options().discipline, when);
    auto const n = order.size();
    replica_times out{.forward = std::vector<std::int64_t>(n, 0),
                      .backward = std::vector<std::int64_t>(n, 0),
                      .busy = std::vector<std::int64_t>(n, 0),
                      .weight_gradients = std::vector<std::int64_t>(n, 0),
                      .update = std::vector<std::int64_t>(n, 0),
                      .weights = std::vector<byte_count>(n, 0),
                      .cache = std::vector<byte_count>(n, 0),
                      .gradients = std::vector<byte_count>(n, 0),
                      .optimizer = std::vector<byte_count>(n, 0),
                      .activations = std::vector<byte_count>(n, 0),
                      .waiting = std::vector<waiting_bytes>(n),
                      .own = std::vector<double>(n, 1),
                      .experts = {},
                      .borrowed = std::vector<byte_count>(n, 0),
                      .crossing = {},
                      .buffers = std::vector<byte_count>(n, 0),
                      .home = std::vector<std::size_t>(n, 0)};
    auto const of_experts = by.experts > 1 ? space::has_experts(g) : std::vector<bool>(g.size(), false);
    for (auto const op : order) out.experts.push_back(of_experts[op]);
    std::iota(out.home.begin(), out.home.end(), std::size_t{0});
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto const i = place[tasks.label[t].op];
        if (tasks.kind[t] == sim::task_kind::forward) out.forward[i] = std::max(out.forward[i], when.end[t]);
        if (tasks.kind[t] == sim::task_kind::backward) out.backward[i] = std::max(out.backward[i], when.end[t]);
        if (tasks.kind[t] == sim::task_kind::update) out.update[i] = std::max(out.update[i], updates[t]);
    }
    for (std::size_t i = 0; i < n; ++i) {
        auto const& p = simulate.plan().operators[order[i]];
        auto const kind = part.topology().kind[p.devices.front()];
        bool const backward = g.trains[order[i]] && part.options().training;
        out.busy[i] = saturating_sum(p.forward[kind], backward ? p.backward[kind] : 0);
        if (backward) out.weight_gradients[i] = weight_gradient_time(p.backward[kind], weight_gradient_share(g, order[i]));
        out.activations[i] = activations_of(g, order[i], strategy);
        out.buffers[i] = buffers_of(g, order[i], strategy, part.options().training);
        if (i > 0) out.forward[i] = std::max(out.forward[i], out.forward[i - 1]);
    }
    for (auto i = n; i-- > 0;) {
        auto& done = out.backward[i];
        done = std::max<std::int64_t>(done - out.forward[n - 1], 0);
        if (i + 1 < n) done = std::max(done, out.backward[i + 1]);
    }
    if (part.options().training) add_waiting(g, place, blocks, strategy, out.waiting);
    auto const states = sim::cost_of(part.options().optimizer).states;
    for (auto const& c : simulate.plan().classes) {
        if (c.sync.held.empty()) continue;
        auto const i = place[c.members.front()];
        out.weights[i] = c.sync.held.front().bytes;
        out.cache[i] = c.sync.held.front().cache;
        out.gradients[i] = c.sync.held.front().gradients;
        std::set<std::uint32_t> in{blocks[i]};
        for (auto const op : c.members) out.home[place[op]] = i;
        for (auto const op : c.members)
            if (in.insert(blocks[place[op]]).second) out.borrowed[place[op]] += out.weights[i];
        out.optimizer[i] = sim::optimizer_memory(c.sync.held.front(), states);
        out.own[i] = own_share(c.sync, c.sync.held.front());
    }
    // A tensor is counted at its producer; the sum over all is the simulator's.
    auto const& use = simulate.memory().front();
    auto const all = std::accumulate(out.activations.begin(), out.activations.end(), byte_count{0});
    for (auto& a : out.activations)
        a = all > 0 ? static_cast<byte_count>(static_cast<double>(use.activations) * (static_cast<double>(a) / static_cast<double>(all))) : 0;
    out.crossing = graph::crossing_sums(g, order, [&](auto op, auto slot) { return ops::bytes_of(g.operations[op].outputs[slot]) / by.replica(); });
    return out;
}

} // namespace parsearch::pipeline::detail
