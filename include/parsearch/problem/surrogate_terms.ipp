#pragma once
// The terms of an additive cost that resembles the simulated one.

#include <map>

#include <parsearch/problem/surrogate_terms.hpp>

namespace parsearch {

PARSEARCH_INLINE operator_term surrogate_terms::of_operator(std::uint32_t op, space::configuration const& c) {
    auto const& w = planner_.input();
    if (w.graph.operations[op].work == ops::work_class::source) return {};
    require_time();
    sim::operator_plan p;
    planner_.plan_operator(op, c, p);
    std::map<std::uint32_t, std::int64_t> busy; // by device
    std::map<std::uint32_t, std::int64_t> shards;
    for (auto const d : p.devices) {
        auto const kind = w.topology.kind[d];
        busy[d] = saturating_sum(busy[d], saturating_sum(p.forward[kind], p.backward[kind]));
        ++shards[d];
    }
    std::int64_t moved = 0, synchronised = 0, most = 0;
    for (auto const& partial : p.partial_outputs)
        moved = saturating_sum(moved, loads_.busiest([&](auto const& f) { std::for_each(partial.forward.begin(), partial.forward.end(), f); }));
    if (auto const number = w.class_of[op]; w.options.training && number != sim::iteration_plan::none && w.classes[number].size() == 1) {
        sim::class_plan weights{.members = {op}};
        planner_.plan_class([&](std::uint32_t) -> auto const& { return c; }, [&](std::uint32_t) -> auto const& { return p; }, weights);
        synchronised = loads_.busiest([&](auto const& f) {
            for (auto const& hops : weights.all_reduce) std::for_each(hops.begin(), hops.end(), f);
            for (auto const& server : weights.servers)
                for (auto const& client : server.clients) {
                    std::for_each(client.push.begin(), client.push.end(), f);
                    std::for_each(client.pull.begin(), client.pull.end(), f);
                }
        });
        for (std::size_t i = 0; i < weights.update.size(); ++i)
            if (auto const t = weights.update[i]; t != sim::class_plan::no_update) {
                auto& sum = busy[weights.sync.held[i].device];
                sum = saturating_sum(sum, t);
            }
    }
    std::int64_t longest = 0;
    for (auto const& [d, t] : busy) longest = std::max(longest, t);
    for (auto const& [d, n] : shards) most = std::max(most, n);
    return {picoseconds{saturating_sum(longest, moved)}, picoseconds{synchronised}, most * kept_by_shard(op, c)};
}

PARSEARCH_INLINE std::vector<picoseconds> surrogate_terms::of_edge(std::uint32_t number, std::span<space::configuration const> from,
                                                                   std::span<space::configuration const> to) {
    auto const& g = planner_.input().graph;
    auto const& e = g.edges[number];
    std::vector<picoseconds> out(from.size() * to.size());
    if (g.operations[e.producer].work == ops::work_class::source) return out;
    std::vector<sim::operator_plan> made(from.size()), read(to.size());
    for (std::size_t i = 0; i < from.size(); ++i) planner_.place_operator(e.producer, from[i], made[i]);
    bool const passed_on = g.operations[e.consumer].inputs[e.input].passed_on; // then what its reader takes matters
    for (std::size_t j = 0; j < to.size(); ++j)
        if (passed_on) planner_.plan_operator(e.consumer, to[j], read[j]);
        else planner_.place_operator(e.consumer, to[j], read[j]);
    std::vector<bool> brought(to.size(), false);
    for (std::size_t j = 0; j < to.size(); ++j) brought[j] = is_brought(number, to[j]);
    for (std::size_t i = 0; i < from.size(); ++i) {
        require_time();
        for (std::size_t j = 0; j < to.size(); ++j) {
            if (brought[j]) continue;
            auto const p = planner_.plan_edge(number, from[i], made[i], to[j], read[j]);
            auto const awaited = [&](std::vector<sim::hop> const& messages, std::vector<sim::hop> sim::collective_plan::*pass) {
                return loads_.busiest([&](auto const& f) {
                    std::for_each(messages.begin(), messages.end(), f);
                    for (auto const& c : p.collectives)
                        if (c.awaited) std::for_each((c.*pass).begin(), (c.*pass).end(), f);
                });
            };
            auto const there = awaited(p.forward, &sim::collective_plan::forward), back = awaited(p.backward, &sim::collective_plan::backward);
            out[i * to.size() + j] = picoseconds{saturating_sum(there, back)};
        }
    }
    if (planner_.table_bytes() > most_remembered) planner_.forget(); // there may be one for each thread
    return out;
}

PARSEARCH_INLINE bool surrogate_terms::is_brought(std::uint32_t number, space::configuration const& to) {
    auto const& readers = planner_.input().readers;
    auto const group = readers.group_of(number);
    if (group == sim::shared_reads::none) return false;
    auto const& edges = planner_.input().graph.edges;
    auto const layout = [&](std::uint32_t e) { return planner_.layout_of_input(edges[e].consumer, edges[e].input, to); };
    auto const before = readers[group].first(static_cast<std::size_t>(std::ranges::find(readers[group], number) - readers[group].begin()));
    return std::ranges::any_of(before, [&](std::uint32_t e) { return edges[e].consumer == edges[number].consumer && layout(e) == layout(number); });
}

PARSEARCH_INLINE byte_count surrogate_terms::kept_by_shard(std::uint32_t op, space::configuration const& c) const {
    auto const& operation = planner_.input().graph.operations[op];
    if (operation.work == ops::work_class::view) return 0;
    auto const cut = ops::cut_dim(operation, c.degrees());
    if (!cut) return kept_by_shard(op, operation, c.degrees());
    auto const most = ops::on_most_samples(operation, c.degrees(), *cut);
    return kept_by_shard(op, most.op, most.degrees());
}

PARSEARCH_INLINE byte_count surrogate_terms::kept_by_shard(std::uint32_t op, ops::operation const& operation,
                                                           std::span<std::int32_t const> degrees) const {
    auto const& w = planner_.input();
    auto const box = ops::middle_shard(operation, degrees);
    sim::held_weights held;
    for (auto const& weight : operation.weights) {
        auto const elements = ops::shard_elements(weight, box);
        if (weight.cache) {
            held.cache += elements * ops::size_of(weight.type);
            continue;
        }
        held.elements += elements;
        held.bytes += elements * ops::size_of(weight.type);
        held.gradients += elements * sim::gradient_size(w.options.gradients, weight.type);
    }
    auto sum = sim::weight_memory(held, w.options, sim::cost_of(w.options.optimizer).states);
    if (!w.options.training || !w.graph.trains[op]) return sum;
    auto const kept = [&](ops::operand const& o) { return o.saved ? ops::shard_elements(o, box) * ops::size_of(o.type) : 0; };
    for (auto const& o : operation.inputs) sum += kept(o);
    for (auto const& o : operation.outputs) sum += kept(o);
    return sum + static_cast<byte_count>(ops::work_of_shard(operation.saved_bytes, operation, degrees));
}

} // namespace parsearch
