#pragma once
// Puts the task graph of one training iteration together from the plans of its operators, edges and weights.

#include <parsearch/core/interruption.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::array<double, traffic_kinds> traffic_of(iteration_plan const& plan, bool training) noexcept {
    std::array<double, traffic_kinds> sum{};
    for (auto const& e : plan.edges)
        for (std::size_t k = 0; k < traffic_kinds; ++k) sum[k] += e.bytes[k];
    for (auto const& p : plan.operators) sum[static_cast<std::size_t>(traffic_kind::partial_sum)] += p.partial_bytes;
    if (training)
        for (auto const& c : plan.classes)
            for (auto const& g : c.sync.groups) // there and back: sums of gradients, or weights that a server has updated
                sum[static_cast<std::size_t>(traffic_kind::weight_gradient)] +=
                    static_cast<double>(g.holders() - 1) * static_cast<double>(g.gradients + (c.servers.empty() ? g.gradients : g.bytes));
    return sum;
}

PARSEARCH_INLINE void assembler::run(iteration_plan const& plan, bool training, bool overlap, task_graph& out, std::stop_token const& stop) {
    plan_ = &plan;
    stop_ = stop;
    tasks_ = &out;
    out.clear(static_cast<std::uint32_t>(kind_.size()) + links_ + 1);
    find_carried();
    for (auto const op : graph_->order) add_forward(op);
    if (!training) return tie_up_to_here();
    waiting_.clear();
    for (auto const& c : plan.classes) waiting_.push_back(static_cast<std::uint32_t>(c.members.size()));
    synchronised_.clear();
    barriers_.clear();
    all_backward_ = overlap ? none : 0;
    for (auto i = graph_->order.size(); i-- > 0;) {
        auto const op = graph_->order[i];
        if (!graph_->trains[op]) continue;
        add_backward(op);
        auto const c = plan.class_of[op];
        if (c == iteration_plan::none || --waiting_[c] > 0) continue;
        synchronised_.push_back({c, 0});
        if (overlap) add_synchronisation(synchronised_.back());
    }
    if (!overlap) {
        for (std::uint32_t t = 0; t < out.size(); ++t)
            if (out.kind[t] == task_kind::backward) out.after(t);
        all_backward_ = out.add(barrier_resource(), 0, task_kind::barrier, {});
        for (auto& c : synchronised_) add_synchronisation(c);
    }
    for (auto const& c : synchronised_) add_updates(c);
    tie_up_to_here();
}

PARSEARCH_INLINE std::uint32_t assembler::add_collective(std::span<hop const> links, task_label who) {
    auto const begin = tasks_->add(barrier_resource(), 0, task_kind::barrier, who);
    for (auto const& h : links) {
        tasks_->after(begin);
        tasks_->add(link_resource(h.link), h.duration, task_kind::collective, who);
        if (transfers_ == transfer_model::fair_sharing) tie({begin + 1, 0});
    }
    auto const end = tasks_->size();
    if (links.empty()) tasks_->after(begin);
    for (auto t = begin + 1; t < end; ++t) tasks_->after(t);
    return tasks_->add(barrier_resource(), 0, task_kind::barrier, who);
}

PARSEARCH_INLINE void assembler::add_movement(std::uint32_t number, bool gradient) {
    if (is_carried(number)) return;
    auto const& e = graph_->edges[number];
    auto const& p = plan_->edges[number];
    require_running(stop_);
    auto const wait_for_sender = [&](std::uint32_t shard) {
        if (!gradient) return tasks_->after(forward_[e.producer] + shard);
        tasks_->after(backward_[e.consumer] + shard);
        for (auto const other : carried_[number]) tasks_->after(backward_[other] + shard);
    };
    auto const partial = p.table->partial ? traffic_kind::partial_sum : traffic_kind::activation;
    task_label label{gradient ? e.producer : e.consumer, 0, number, gradient ? traffic_kind::gradient : partial};
    auto& a = arrivals_[number];
    a.collective.clear();
    for (auto const& c : p.collectives) {
        for (auto const shard : gradient ? c.consumers : c.producers) wait_for_sender(shard);
        a.collective.push_back(add_collective(gradient ? c.backward : c.forward, label));
        ++label.number;
    }
    a.first_message = tasks_->size();
    auto const& hops = gradient ? p.backward : p.forward;
    auto const& first = gradient ? p.first_backward : p.first_forward;
    auto const& pairs = p.table->pairs;
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
        label.number = i;
        add_message(std::span(hops).subspan(first[i], first[i + 1] - first[i]), label,
                    [&] { wait_for_sender(gradient ? pairs[i].consumer : pairs[i].producer); });
    }
}

PARSEARCH_INLINE std::int32_t assembler::wait_for_pair(std::uint32_t number, std::uint32_t i, bool gradient) {
    auto const& e = graph_->edges[number];
    auto const& p = plan_->edges[plan_->carrier[number]];
    auto const& a = arrivals_[plan_->carrier[number]];
    bool const waits = !gradient || !is_carried(number);
    if (auto const c = p.collective_of[i]; c >= 0) {
        if (waits) tasks_->after(a.collective[static_cast<std::size_t>(c)]);
        return c;
    }
    auto const& first = gradient ? p.first_backward : p.first_forward;
    if (first[i] == first[i + 1]) // on one device
        tasks_->after(gradient ? backward_[e.consumer] + p.table->pairs[i].consumer : forward_[e.producer] + p.table->pairs[i].producer);
    for (auto h = first[i]; h < first[i + 1] && waits; ++h) tasks_->after(a.first_message + h);
    return -1;
}

PARSEARCH_INLINE void assembler::wait_for_input(std::uint32_t number, std::uint32_t shard) {
    if (is_brought(number)) return;
    auto const& first = plan_->edges[plan_->carrier[number]].table->first_of_consumer;
    for (auto i = first[shard]; i < first[shard + 1]; ++i)
        if (wait_for_pair(number, i, false) >= 0) return;
}

PARSEARCH_INLINE void assembler::wait_for_gradient(std::uint32_t number, std::uint32_t shard) {
    if (is_brought(number)) return;
    auto const& table = *plan_->edges[plan_->carrier[number]].table;
    for (auto i = table.first_of_producer[shard]; i < table.first_of_producer[shard + 1]; ++i)
        if (wait_for_pair(number, table.by_producer[i], true) >= 0) return;
}

PARSEARCH_INLINE void assembler::add_forward(std::uint32_t op) {
    if (is_source(op)) return;
    for (auto number = graph_->first_in[op]; number < graph_->first_in[op + 1]; ++number)
        if (!is_source(graph_->edges[number].producer)) add_movement(number, false);
    auto const& p = plan_->operators[op];
    auto const first = tasks_->size();
    for (std::uint32_t n = 0; n < p.devices.size(); ++n) {
        for (auto number = graph_->first_in[op]; number < graph_->first_in[op + 1]; ++number)
            if (!is_source(graph_->edges[number].producer)) wait_for_input(number, n);
        tasks_->add(device_resource(p.devices[n]), p.forward[kind_[p.devices[n]]], task_kind::forward, {op, n});
    }
    forward_[op] = first;
    results_[op].clear();
    for (std::uint32_t c = 0; c < p.partial_outputs.size(); ++c) {
        for (auto const shard : p.partial_outputs[c].producers) tasks_->after(first + shard);
        results_[op].push_back(add_collective(p.partial_outputs[c].forward, {op, c, task_label::no_edge, traffic_kind::partial_sum}));
    }
}

PARSEARCH_INLINE void assembler::add_backward(std::uint32_t op) {
    for (auto const number : graph_->out(op))
        if (graph_->carries_gradient(graph_->edges[number])) add_movement(number, true);
    auto const& p = plan_->operators[op];
    auto const first = tasks_->size();
    for (std::uint32_t n = 0; n < p.devices.size(); ++n) {
        tasks_->after(forward_[op] + n);
        for (std::size_t c = 0; c < p.partial_outputs.size(); ++c)
            if (std::ranges::binary_search(p.partial_outputs[c].producers, n)) tasks_->after(results_[op][c]);
        for (auto const number : graph_->out(op))
            if (graph_->carries_gradient(graph_->edges[number])) wait_for_gradient(number, n);
        tasks_->add(device_resource(p.devices[n]), p.backward[kind_[p.devices[n]]], task_kind::backward, {op, n});
    }
    backward_[op] = first;
}

PARSEARCH_INLINE void assembler::add_synchronisation(synchronised_class& c) {
    auto const& p = plan_->classes[c.number];
    c.first_barrier = static_cast<std::uint32_t>(barriers_.size());
    for (std::uint32_t i = 0; i < p.sync.groups.size(); ++i) {
        auto const label = of_group(p, i);
        if (p.servers.empty()) {
            wait_for_gradients(p.sync.groups[i].contributors);
            barriers_.push_back(add_collective(p.all_reduce[i], label));
        } else {
            barriers_.push_back(add_server(p.servers[i], label));
        }
    }
}

PARSEARCH_INLINE std::uint32_t assembler::add_server(server_plan const& p, task_label who) {
    auto const first = tasks_->size();
    for (auto const& client : p.clients) add_message(client.push, who, [&] { wait_for_gradients(client.contributors); });
    auto const end = tasks_->size();
    for (auto t = first; t < end; ++t) tasks_->after(t);
    for (auto const& client : p.clients)
        if (client.push.empty()) wait_for_gradients(client.contributors);
    return tasks_->add(barrier_resource(), 0, task_kind::barrier, who);
}

PARSEARCH_INLINE void assembler::add_updates(synchronised_class const& c) {
    auto const& p = plan_->classes[c.number];
    updates_.assign(p.sync.held.size(), none);
    for (std::uint32_t i = 0; i < p.sync.held.size(); ++i) {
        auto const& h = p.sync.held[i];
        if (p.update[i] == class_plan::no_update) continue;
        for (auto const group : h.groups)
            if (p.servers.empty() || p.servers[group].server == h.device) tasks_->after(barriers_[c.first_barrier + group]);
        for (auto const s : h.contributors) tasks_->after(backward_[s.op] + s.shard);
        updates_[i] = tasks_->add(device_resource(h.device), p.update[i], task_kind::update, {p.members.front(), i});
    }
    for (std::uint32_t i = 0; i < p.sync.held.size(); ++i)
        for (auto const group : p.sync.held[i].groups)
            if (!p.servers.empty() && p.servers[group].server == p.sync.held[i].device)
                for (auto const& client : p.servers[group].clients) add_message(client.pull, of_group(p, group), [&] { tasks_->after(updates_[i]); });
}

} // namespace parsearch::sim
