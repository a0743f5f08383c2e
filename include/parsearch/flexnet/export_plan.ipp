#pragma once
// The task graph of an iteration of ours as one of FlexNet's.

#include <algorithm>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/flexnet/export_plan.hpp>

namespace parsearch::flexnet::detail {

PARSEARCH_INLINE exported exporter::run() && {
    for (auto const& d : out_.devices) {
        next_device_ = std::max(next_device_, d.id + 1);
        if (d.type == device_type::nvlink) device_of_.emplace(std::pair{d.type, d.property}, d.id);
    }
    for (std::uint32_t op = 0; op < graph_.size(); ++op) out_.operators.push_back({op, 0, graph_.names[op]});
    made_.resize(tasks_.size());
    for (std::uint32_t t = 0; t < tasks_.size();) t = translate(t);
    if (along_rings_ > 0)
        wiring_.losses.push_back(
            text(along_rings_,
                 along_rings_ == 1 ? " collective that is no all-reduce of weights is" : " collectives that are no all-reduces of weights are",
                 " written as messages along one ring of devices in ascending order"));
    return {std::move(out_), std::move(wiring_.losses)};
}

PARSEARCH_INLINE std::uint32_t exporter::translate(std::uint32_t t) {
    auto const& who = tasks_.label[t];
    auto const kind = tasks_.kind[t];
    waits_.clear();
    if (kind == sim::task_kind::barrier) {
        wait_as(t);
        made_[t] = waits_.size() == 1 && waits_.front().end - waits_.front().first == 1 ? waits_.front() : add({task_type::barrier, 0, 0, 0, 0, {}});
        return t + 1;
    }
    if (kind == sim::task_kind::forward || kind == sim::task_kind::backward || kind == sim::task_kind::update) {
        wait_as(t);
        auto const type = kind == sim::task_kind::forward    ? task_type::forward
                          : kind == sim::task_kind::backward ? task_type::backward
                                                             : task_type::update;
        made_[t] = add({type, 0, wiring_.gpu[tasks_.resource[t]], static_cast<float>(static_cast<double>(tasks_.duration[t]) * 1e-9), 0, {}});
        return t + 1;
    }
    auto end = t + 1;
    bool const of_weights = who.traffic == sim::traffic_kind::weight_gradient;
    if (kind == sim::task_kind::transfer && of_weights) return push_or_pull(t);
    while (end < tasks_.size() && tasks_.kind[end] == kind && same(tasks_.label[end], who)) ++end;
    for (auto i = t; i < end; ++i) wait_as(i, t);
    range made;
    if (kind == sim::task_kind::transfer) made = message(t);
    else if (of_weights) made = all_reduce(t);
    else made = messages_of_collective(t);
    std::fill(made_.begin() + t, made_.begin() + end, made);
    return end;
}

PARSEARCH_INLINE exporter::range exporter::add(task made) {
    made.id = out_.tasks.size();
    for (auto const& w : waits_)
        for (auto i = w.first; i < w.end; ++i) out_.tasks[i].next.push_back(made.id);
    out_.tasks.push_back(std::move(made));
    auto const number = static_cast<std::uint32_t>(out_.tasks.size());
    return {number - 1, number};
}

PARSEARCH_INLINE exporter::range exporter::send(std::uint32_t from, std::uint32_t to, byte_count bytes) {
    auto const a = wiring_.gpu[from], b = wiring_.gpu[to];
    auto const x = a / out_.gpus_per_node, y = b / out_.gpus_per_node;
    bool const inside = x == y;
    auto const all = std::uint64_t{out_.nodes} * out_.gpus_per_node;
    auto const type = inside ? device_type::nvlink : device_type::nominal_network;
    auto const [at, fresh] = device_of_.try_emplace({type, inside ? a * all + b : out_.pair(x, y)}, next_device_);
    if (fresh) out_.devices.push_back({type, next_device_++, device::no_node, at->first.second, 0});
    return add({inside ? task_type::comm : task_type::nominal_comm, 0, at->second, 0, static_cast<std::uint64_t>(bytes), {}});
}

PARSEARCH_INLINE std::uint32_t exporter::push_or_pull(std::uint32_t t) {
    auto const& who = tasks_.label[t];
    auto const& c = plan_.classes[plan_.class_of[who.op]];
    auto const& server = c.servers[who.number];
    auto& turn = turns_[{who.op, who.number}];
    auto const clients = server.clients.size();
    while (server.clients[turn % clients].push.empty()) ++turn; // the server itself
    bool const pulls = turn >= clients;
    auto const number = turn++ % clients;
    auto const& hops = pulls ? server.clients[number].pull : server.clients[number].push;
    auto const end = t + static_cast<std::uint32_t>(hops.size());
    for (auto i = t; i < end; ++i) wait_as(i, t);
    auto const& group = c.sync.groups[who.number];
    auto const client = group.devices[number];
    auto const made = pulls ? send(server.server, client, group.bytes) : send(client, server.server, group.gradients);
    std::fill(made_.begin() + t, made_.begin() + end, made);
    return end;
}

PARSEARCH_INLINE exporter::range exporter::all_reduce(std::uint32_t t) {
    auto const& who = tasks_.label[t];
    auto const& group = plan_.classes[plan_.class_of[who.op]].sync.groups[who.number];
    task made{task_type::all_reduce, 0, 0, 0, static_cast<std::uint64_t>(group.gradients), {}};
    for (auto const d : group.devices) made.next.push_back(wiring_.gpu[d]);
    add(std::move(made));
    return waits_.front(); // the barrier before it
}

PARSEARCH_INLINE exporter::range exporter::messages_of_collective(std::uint32_t t) {
    auto const& who = tasks_.label[t];
    auto const first = static_cast<std::uint32_t>(out_.tasks.size());
    bool const unread = who.edge == sim::task_label::no_edge, gradient = who.traffic == sim::traffic_kind::gradient;
    auto const& c = unread ? plan_.operators[who.op].partial_outputs[who.number] : plan_.edges[who.edge].collectives[who.number];
    auto const kind = gradient ? c.backward_kind : c.forward_kind;
    if (fabric::is_exchange(kind)) {
        auto const& e = graph_.edges[who.edge];
        auto const& edge = plan_.edges[who.edge];
        for (std::size_t i = 0; i < edge.collective_of.size(); ++i) {
            auto const& pair = edge.table->pairs[i];
            if (edge.collective_of[i] == static_cast<std::int32_t>(who.number) &&
                devices_of(e.producer)[pair.producer] != devices_of(e.consumer)[pair.consumer])
                send_pair(who.edge, pair, gradient);
        }
        return {first, static_cast<std::uint32_t>(out_.tasks.size())};
    }
    ++along_rings_;
    auto const& made = devices_of(unread ? who.op : graph_.edges[who.edge].producer);
    std::vector<std::uint32_t> members;
    for (auto const p : c.producers) members.push_back(made[p]);
    if (!unread)
        for (auto const s : c.consumers) members.push_back(devices_of(graph_.edges[who.edge].consumer)[s]);
    make_set(members);
    std::size_t root = 0;
    if (c.forward_kind == collective_kind::broadcast || c.forward_kind == collective_kind::reduce) {
        auto const device = c.forward_kind == collective_kind::broadcast ? made[c.producers.front()]
                                                                         : devices_of(graph_.edges[who.edge].consumer)[c.consumers.front()];
        root = static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), device) - members.begin());
    }
    auto const bytes = fabric::ring_sends(kind, fabric::split_evenly(gradient ? c.backward_bytes : c.bytes, members.size()), root);
    for (std::size_t i = 0; i < members.size(); ++i)
        if (bytes[i] > 0) send(members[i], members[(i + 1) % members.size()], bytes[i]);
    auto const end = static_cast<std::uint32_t>(out_.tasks.size());
    return end > first ? range{first, end} : waits_.front();
}

} // namespace parsearch::flexnet::detail
