#pragma once
/// The task graph of an iteration of ours as one of FlexNet's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>
#include <parsearch/flexnet/validate.hpp>
#include <parsearch/flexnet/wiring.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::flexnet {

/// A task graph, and what of the iteration it does not say, a sentence each.
struct exported {
    task_graph graph{};
    std::vector<std::string> losses{};
};

namespace detail {

/// Translates the tasks that an assembler made of a plan. A message is on one task per link (and segment) there, a collective on one per link between
/// two barriers; both are runs of tasks with the same label.
class exporter {
  public:
    exporter(graph::dense_graph const& g, sim::iteration_plan const& plan, sim::task_graph const& tasks, wiring w)
        : graph_(g), plan_(plan), tasks_(tasks), wiring_(std::move(w)), out_(std::move(wiring_.graph)) {}

    exported run() && {
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

  private:
    /// The tasks of the file to wait for: [first, end).
    struct range {
        std::uint32_t first = 0, end = 0;
        auto operator<=>(range const&) const = default;
    };

    /// Translates the run that begins with task `t`; answers where the next one does.
    std::uint32_t translate(std::uint32_t t) {
        auto const& who = tasks_.label[t];
        auto const kind = tasks_.kind[t];
        waits_.clear();
        if (kind == sim::task_kind::barrier) {
            wait_as(t);
            made_[t] =
                waits_.size() == 1 && waits_.front().end - waits_.front().first == 1 ? waits_.front() : add({task_type::barrier, 0, 0, 0, 0, {}});
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

    [[nodiscard]] static bool same(sim::task_label const& a, sim::task_label const& b) noexcept {
        return a.op == b.op && a.number == b.number && a.edge == b.edge && a.traffic == b.traffic;
    }

    /// Waits for what task `t` waits for, if it is before `run`: the hops of a message wait for each other.
    void wait_as(std::uint32_t t, std::uint32_t run) {
        for (auto const p : tasks_.before(t))
            if (p < run) waits_.push_back(made_[p]);
        make_set(waits_);
    }
    void wait_as(std::uint32_t t) { wait_as(t, t); }

    range add(task made) {
        made.id = out_.tasks.size();
        for (auto const& w : waits_)
            for (auto i = w.first; i < w.end; ++i) out_.tasks[i].next.push_back(made.id);
        out_.tasks.push_back(std::move(made));
        auto const number = static_cast<std::uint32_t>(out_.tasks.size());
        return {number - 1, number};
    }

    /// From device to device of ours; in a node over the link of the two GPUs, else over the network.
    range send(std::uint32_t from, std::uint32_t to, byte_count bytes) {
        auto const a = wiring_.gpu[from], b = wiring_.gpu[to];
        auto const x = a / out_.gpus_per_node, y = b / out_.gpus_per_node;
        bool const inside = x == y;
        auto const all = std::uint64_t{out_.nodes} * out_.gpus_per_node;
        auto const type = inside ? device_type::nvlink : device_type::nominal_network;
        auto const [at, fresh] = device_of_.try_emplace({type, inside ? a * all + b : out_.pair(x, y)}, next_device_);
        if (fresh) out_.devices.push_back({type, next_device_++, device::no_node, at->first.second, 0});
        return add({inside ? task_type::comm : task_type::nominal_comm, 0, at->second, 0, static_cast<std::uint64_t>(bytes), {}});
    }

    [[nodiscard]] std::vector<std::uint32_t> const& devices_of(std::uint32_t op) const { return plan_.operators[op].devices; }
    [[nodiscard]] byte_count element_of(std::uint32_t edge) const {
        auto const& e = graph_.edges[edge];
        return ops::size_of(graph_.operations[e.producer].outputs[e.slot].type);
    }
    range send_pair(std::uint32_t edge, sim::overlap const& pair, bool gradient) {
        auto const& e = graph_.edges[edge];
        auto const made = devices_of(e.producer)[pair.producer], read = devices_of(e.consumer)[pair.consumer];
        return send(gradient ? read : made, gradient ? made : read, pair.elements * element_of(edge));
    }
    range message(std::uint32_t t) {
        auto const& who = tasks_.label[t];
        return send_pair(who.edge, plan_.edges[who.edge].table->pairs[who.number], who.traffic == sim::traffic_kind::gradient);
    }

    /// The clients of a server push one after the other, then pull: their messages have the same label.
    std::uint32_t push_or_pull(std::uint32_t t) {
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

    /// Nothing can wait for an all-reduce: what would, waits for what the all-reduce waits for.
    range all_reduce(std::uint32_t t) {
        auto const& who = tasks_.label[t];
        auto const& group = plan_.classes[plan_.class_of[who.op]].sync.groups[who.number];
        task made{task_type::all_reduce, 0, 0, 0, static_cast<std::uint64_t>(group.gradients), {}};
        for (auto const d : group.devices) made.next.push_back(wiring_.gpu[d]);
        add(std::move(made));
        return waits_.front(); // the barrier before it
    }

    /// The messages of a collective that something waits for, or may: those between its pairs of shards, or from each to the next along a ring of its
    /// devices in ascending order.
    range messages_of_collective(std::uint32_t t) {
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

    graph::dense_graph const& graph_;
    sim::iteration_plan const& plan_;
    sim::task_graph const& tasks_;
    wiring wiring_;
    task_graph out_;
    std::vector<range> made_;                                                  ///< of each task
    std::vector<range> waits_;                                                 ///< of the run in hand
    std::map<std::pair<device_type, std::uint64_t>, std::uint64_t> device_of_; ///< ids of devices that carry messages, by type and property
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> turns_;     ///< messages so far of a server, by operator and group
    std::uint64_t next_device_ = 0;
    std::size_t along_rings_ = 0; ///< collectives
};

template <class S> [[nodiscard]] exported export_plan(parallelization const& p, S const& s, wiring w) {
    auto simulator = p.simulator();
    auto const& tasks = simulator.assemble(s);
    auto out = exporter(p.graph(), simulator.plan(), tasks, std::move(w)).run();
    (void)validate(out.graph);
    return out;
}
} // namespace detail

/// The iteration of problem `p` under strategy `s` as a task graph of FlexNet, for `io::write_flexnet_task_graph`; the network of the topology
/// becomes `star_wiring`. Tasks wait for what they wait for in the simulation, but for updates, which cannot wait for all-reduces in the format.
/// - Shards are forward, backward and update tasks on their GPU, with runtimes in ms, to 2^-24 of each.
/// - Messages are `comm` tasks in a node, `nominal_comm` between nodes; bytes are exact. A message to and from a server of parameters is one as well.
/// - All-reduces of gradients of weights are `all_reduce` tasks. All other collectives are the messages of their pairs of shards (all-to-all) or of
///   one ring through their devices in ascending order, sent at once between two barriers.
/// Throws `invalid_input` as the simulator does, and where the format's limits are passed. Complexity: that of planning, linear in tasks and
/// dependencies.
template <Strategy<space::configuration> S> [[nodiscard]] exported export_plan(parallelization const& p, S const& s) {
    return detail::export_plan(p, s, star_wiring(p.topology()));
}
/// The same for a topology that is `fabric::server_cluster(n, ways, ...)`: its network becomes `wiring_of`.
template <Strategy<space::configuration> S>
[[nodiscard]] exported export_plan(parallelization const& p, S const& s, fabric::network const& n, fabric::path_table const& ways) {
    return detail::export_plan(p, s, wiring_of(n, ways, p.topology()));
}

} // namespace parsearch::flexnet
