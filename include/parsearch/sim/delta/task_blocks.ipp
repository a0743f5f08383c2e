#pragma once
// The task graph in blocks: the tasks of one operator, edge or class in one pass, and which tasks of one block wait for which of another.

#include <parsearch/sim/delta/task_blocks.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE dependence dependence_builder::make(std::uint32_t dependents, std::uint32_t predecessors, bool each) {
    dependence d{.each = each};
    if (pairs_.empty()) return d;
    if (!std::is_sorted(pairs_.begin(), pairs_.end())) std::sort(pairs_.begin(), pairs_.end());
    std::uint32_t same = 0;
    while (same < pairs_.size() && pairs_[same].first == same && pairs_[same].second == same) ++same;
    if (same == pairs_.size()) {
        d.aligned = same;
    } else {
        d.first_before.assign(dependents + 1, 0);
        d.first_after.assign(predecessors + 1, 0);
        for (auto const& [to, from] : pairs_) ++d.first_before[to + 1], ++d.first_after[from + 1];
        for (std::uint32_t i = 0; i < dependents; ++i) d.first_before[i + 1] += d.first_before[i];
        for (std::uint32_t i = 0; i < predecessors; ++i) d.first_after[i + 1] += d.first_after[i];
        d.before.resize(pairs_.size());
        d.after.resize(pairs_.size());
        at_.assign(d.first_after.begin(), d.first_after.end());
        for (std::size_t i = 0; i < pairs_.size(); ++i) {
            d.before[i] = pairs_[i].second;
            d.after[at_[pairs_[i].second]++] = pairs_[i].first;
        }
    }
    pairs_.clear();
    return d;
}

} // namespace parsearch::sim

namespace parsearch::sim::detail {

PARSEARCH_INLINE std::pair<std::uint32_t, std::uint32_t> add_collective(task_list& tasks, dependence_builder& inside, std::span<hop const> links,
                                                                        resource_numbers const& r) {
    auto const begin = tasks.add(r.barrier(), 0);
    for (auto const& h : links) inside.add(tasks.add(r.link(h.link), h.duration), begin);
    auto const end = tasks.add(r.barrier(), 0);
    if (links.empty()) inside.add(end, begin);
    for (auto t = begin + 1; t < end; ++t) inside.add(end, t);
    return {begin, end};
}

PARSEARCH_INLINE void build_direction(edge_plan const& p, direction const& way, resource_numbers const& r, task_list& tasks, dependence& waits,
                                      dependence& inside, dependence& receiver_waits, dependence& local, bool every_receiver) {
    dependence_builder from, in, to, here;
    auto const& table = *p.table;
    std::vector<std::uint32_t> ends;
    for (auto const& c : p.collectives) {
        auto const [begin, end] = add_collective(tasks, in, way.gradient ? c.backward : c.forward, r);
        for (auto const shard : way.gradient ? c.consumers : c.producers) from.add(begin, shard);
        ends.push_back(end);
    }
    auto const first_message = tasks.size();
    auto const& hops = way.gradient ? p.backward : p.forward;
    auto const& first = way.gradient ? p.first_backward : p.first_forward;
    for (std::uint32_t i = 0; i < table.pairs.size(); ++i)
        for (auto h = first[i]; h < first[i + 1]; ++h)
            from.add(tasks.add(r.link(hops[h].link), hops[h].duration), way.gradient ? table.pairs[i].consumer : table.pairs[i].producer);
    // A shard's pairs are all in one collective or none.
    auto const receive = [&](std::uint32_t shard, std::uint32_t pair) {
        if (auto const c = p.collective_of[pair]; c >= 0) {
            to.add(shard, ends[static_cast<std::size_t>(c)]);
            return false;
        }
        if (first[pair] == first[pair + 1]) here.add(shard, way.gradient ? table.pairs[pair].consumer : table.pairs[pair].producer);
        for (auto h = first[pair]; h < first[pair + 1]; ++h) to.add(shard, first_message + h);
        return true;
    };
    auto const& firsts = way.gradient ? table.first_of_producer : table.first_of_consumer;
    for (std::uint32_t shard = 0; shard + 1 < firsts.size(); ++shard)
        for (auto i = firsts[shard]; i < firsts[shard + 1]; ++i)
            if (!receive(shard, way.gradient ? table.by_producer[i] : i)) break;
    waits = from.make(tasks.size(), way.from_tasks, true);
    inside = in.make(tasks.size(), tasks.size());
    receiver_waits = to.make(way.to_tasks, tasks.size());
    local = here.make(way.to_tasks, way.from_tasks, every_receiver);
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE void build_operator(operator_blocks& b, bool trains, std::span<std::uint32_t const> kind_of_device, resource_numbers const& r) {
    auto const& p = b.plan;
    auto const shards = static_cast<std::uint32_t>(p.devices.size());
    for (auto const d : p.devices) {
        b.parts.forward.add(d, p.forward[kind_of_device[d]]);
        if (trains) b.parts.backward.add(d, p.backward[kind_of_device[d]]);
    }
    dependence_builder inside, results;
    for (std::uint32_t n = 0; n < shards; ++n) results.add(n, n);
    for (auto const& sum : p.partial_outputs) {
        auto const [begin, end] = detail::add_collective(b.parts.forward, inside, sum.forward, r);
        for (auto const shard : sum.producers) {
            inside.add(begin, shard);
            results.add(shard, end);
        }
    }
    b.parts.devices = p.devices;
    b.parts.inside_forward = inside.make(b.parts.forward.size(), b.parts.forward.size());
    b.work = b.parts.forward.work() + b.parts.backward.work();
    if (!trains) return;
    b.parts.backward_waits_forward = results.make(shards, b.parts.forward.size(), true);
    for (std::uint32_t n = 0; n < shards; ++n) inside.add(0, n);
    b.parts.all_backward_waits = inside.make(1, shards);
}

PARSEARCH_INLINE void build_edge(edge_blocks& b, edge_shape const& shape, operator_blocks const& producer, operator_blocks const& consumer,
                                 bool gradients, resource_numbers const& r) {
    if (!b.plan.table) return;
    detail::build_direction(b.plan, {false, producer.parts.forward.size(), consumer.parts.forward.size()}, r, b.parts.forward, b.parts.forward_waits,
                            b.parts.inside_forward, b.parts.consumer_waits, b.parts.consumer_local, shape.every_consumer);
    if (gradients)
        detail::build_direction(b.plan, {true, consumer.parts.backward.size(), producer.parts.backward.size()}, r, b.parts.backward,
                                b.parts.backward_waits, b.parts.inside_backward, b.parts.producer_waits, b.parts.producer_local,
                                shape.every_producer);
    b.work = b.parts.forward.work() + b.parts.backward.work();
}

} // namespace parsearch::sim
