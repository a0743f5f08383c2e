#pragma once
/// The task graph in blocks: the tasks of one operator, edge or class in one pass, and which tasks of one block wait for which of another.
/// Blocks depend on few configurations, so that a changed operator replaces a handful of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// Tasks of one block in program order: resource and picoseconds of each. Barriers are on the resource after all links.
struct task_list {
    std::vector<std::uint32_t> resource;
    std::vector<std::int64_t> duration;

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(resource.size()); }
    std::uint32_t add(std::uint32_t on, std::int64_t picoseconds) {
        resource.push_back(on);
        duration.push_back(picoseconds);
        return size() - 1;
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return resource.size() * 12; }
    [[nodiscard]] double work() const noexcept { return std::accumulate(duration.begin(), duration.end(), 0.0); }
};

/// Which tasks of a block (dependents) wait for which of another (predecessors), readable both ways. A pair may come twice.
struct dependence {
    std::uint32_t aligned = 0;                           ///< where not 0, task i waits for task i, for i below this number, and the lists are empty
    bool each = false;                                   ///< every dependent waits, directly or through tasks that start later, for some predecessor
    std::vector<std::uint32_t> first_before{}, before{}; ///< predecessors of dependent i: before[first_before[i] ... first_before[i + 1])
    std::vector<std::uint32_t> first_after{}, after{};   ///< dependents of predecessor i; both empty where there are no pairs

    [[nodiscard]] bool empty() const noexcept { return aligned == 0 && before.empty(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return 4 * (first_before.size() + before.size() + first_after.size() + after.size()); }
    [[nodiscard]] std::span<std::uint32_t const> predecessors(std::uint32_t dependent) const noexcept {
        return std::span(before).subspan(first_before[dependent], first_before[dependent + 1] - first_before[dependent]);
    }
};

/// Makes a `dependence` of its pairs in any order.
class dependence_builder {
  public:
    void add(std::uint32_t dependent, std::uint32_t predecessor) { pairs_.push_back({dependent, predecessor}); }

    /// Between blocks of `dependents` and `predecessors` tasks; forgets the pairs. Complexity: O(pairs log pairs), linear where they are sorted.
    dependence make(std::uint32_t dependents, std::uint32_t predecessors, bool each = false);

  private:
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
    std::vector<std::uint32_t> at_;
};

/// Numbers of resources: devices, then links, then one for all barriers.
struct resource_numbers {
    std::uint32_t devices = 0, links = 0;
    [[nodiscard]] std::uint32_t link(std::uint32_t l) const noexcept { return devices + l; }
    [[nodiscard]] std::uint32_t barrier() const noexcept { return devices + links; }
    [[nodiscard]] std::uint32_t size() const noexcept { return devices + links + 1; }
};

/// What the degrees of an operator say.
struct operator_shape {
    std::uint32_t id = 0;                                     ///< of the operator's degrees, never used again
    std::vector<std::int64_t> forward{}, backward{};          ///< durations by kind of device
    std::int64_t shortest_forward = 0, shortest_backward = 0; ///< over all kinds
    shard_memory memory{};
};

/// The tasks of an operator in both passes, as `engine` takes them.
struct operator_parts {
    task_list forward{}, backward{};
    dependence inside_forward{}; ///< sums that nobody reads follow the shards in their block
    dependence backward_waits_forward{}, all_backward_waits{};
    std::vector<std::uint32_t> devices{}; ///< of each shard
};

/// The blocks of an operator under one configuration. All from `built` on is made when it is first patched in.
struct operator_blocks {
    std::uint32_t id = 0; ///< of the operator's configuration, never used again
    space::configuration configuration{};
    operator_shape const* shape = nullptr;
    bool everywhere = false; ///< one shard on every device
    bool built = false;
    operator_plan plan{};
    std::vector<std::uint32_t> read{}; ///< the layout of each input: see `planner::layout_of_input`
    operator_parts parts{};
    std::unique_ptr<operator_parts> folded{};                   ///< on classes of resources; none where they do not treat their members alike
    std::vector<std::uint32_t> fold_forward{}, fold_backward{}; ///< the class of each task
    double work = 0;                                            ///< all durations
    std::uint32_t ends = 0; ///< equal where edges see no difference: in devices, numbers of tasks, classes of tasks
};

/// What the degrees at both ends of an edge say: every shard of the operator has a part in the exchange.
struct edge_shape {
    std::shared_ptr<overlap_table const> table{};
    bool every_consumer = false, every_producer = false;
};

/// The tasks along an edge in both passes: collectives and messages.
struct edge_parts {
    task_list forward{}, backward{};
    dependence forward_waits{}, inside_forward{}, consumer_waits{}, consumer_local{};
    dependence backward_waits{}, inside_backward{}, producer_waits{}, producer_local{};
};

/// The blocks of an edge under one configuration at each end, for data that it brings itself.
struct edge_blocks {
    edge_plan plan{};
    edge_parts parts{};
    std::unique_ptr<edge_parts> folded{};
    std::vector<std::uint32_t> fold_forward{}, fold_backward{};
    double work = 0;
};

/// The synchronisation and updates of a sharing class, and what its weights take.
struct class_parts {
    task_list sync{}, update{};
    std::vector<dependence> sync_waits{}, update_waits{}; ///< for the backward blocks of the members
    dependence sync_waits_all{};                          ///< for all backward blocks, where synchronisation does not overlap with them
    dependence inside_sync{}, update_waits_sync{}, inside_update{};
    std::vector<std::pair<std::uint32_t, byte_count>> memory{}; ///< by device
};

/// The blocks of a sharing class under one configuration of each member.
struct class_blocks {
    class_plan plan{};
    class_parts parts{};
    std::unique_ptr<class_parts> folded{};
    std::vector<std::uint32_t> fold_sync{}, fold_update{};
    std::vector<bool> every{}; ///< of each member: every shard contributes to some gradient here
    std::int64_t shortest = 0,
                 shortest_update = 0; ///< a lower bound on the time from the end of a member's shard, or of a sync task, to the end of an update
    double work = 0;
};

namespace detail {

/// Appends a collective to `tasks`: a barrier, a task per link, a barrier. Returns the numbers of both barriers.
std::pair<std::uint32_t, std::uint32_t> add_collective(task_list& tasks, dependence_builder& inside, std::span<hop const> links,
                                                       resource_numbers const& r);

/// One direction of an edge: `from` and `to` are the shards that send and receive.
struct direction {
    bool gradient = false;
    std::uint32_t from_tasks = 0, to_tasks = 0;
};

} // namespace detail

[[nodiscard]] inline edge_shape shape_of(std::shared_ptr<overlap_table const> table) {
    auto const all = [](std::vector<std::uint32_t> const& first) { return std::adjacent_find(first.begin(), first.end()) == first.end(); };
    auto const consumers = all(table->first_of_consumer), producers = all(table->first_of_producer);
    return {std::move(table), consumers, producers};
}

/// The blocks of an operator; `b.plan` is made. `trains`: it has backward tasks.
void build_operator(operator_blocks& b, bool trains, std::span<std::uint32_t const> kind_of_device, resource_numbers const& r);

/// The blocks of an edge; `b.plan` is made. `gradients`: they move backward along it.
void build_edge(edge_blocks& b, edge_shape const& shape, operator_blocks const& producer, operator_blocks const& consumer, bool gradients,
                resource_numbers const& r);

/// The number of operator `op` among the members of a class.
[[nodiscard]] inline std::size_t number_of(std::vector<std::uint32_t> const& members, std::uint32_t op) noexcept {
    return static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), op) - members.begin());
}

/// The blocks of a sharing class; `b.plan` is made. `backward_tasks(op)` counts a member's backward tasks.
template <class Count> void build_class(class_blocks& b, bool overlap, Count const& backward_tasks, resource_numbers const& r) {
    auto const& p = b.plan;
    std::vector<dependence_builder> gradients(p.members.size()), update(p.members.size());
    std::vector<std::vector<bool>> contributes;
    for (auto const op : p.members) contributes.emplace_back(backward_tasks(op), false);
    dependence_builder all, inside, update_sync, update_inside;
    auto const wait = [&](std::uint32_t task, std::span<shard_ref const> contributors) {
        for (auto const s : contributors) contributes[number_of(p.members, s.op)][s.shard] = true;
        if (!overlap) return all.add(task, 0);
        for (auto const s : contributors) gradients[number_of(p.members, s.op)].add(task, s.shard);
    };
    std::vector<std::uint32_t> ends;
    b.shortest = b.shortest_update = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t i = 0; i < p.sync.groups.size(); ++i) {
        if (p.servers.empty()) {
            auto const [begin, end] = detail::add_collective(b.parts.sync, inside, p.all_reduce[i], r);
            wait(begin, p.sync.groups[i].contributors);
            ends.push_back(end);
            b.shortest = std::min(b.shortest, longest_hop(p.all_reduce[i]));
            continue;
        }
        b.shortest = 0;
        auto const& server = p.servers[i];
        auto const first = b.parts.sync.size();
        for (auto const& client : server.clients)
            for (auto const& h : client.push) wait(b.parts.sync.add(r.link(h.link), h.duration), client.contributors);
        auto const end = b.parts.sync.add(r.barrier(), 0);
        for (auto t = first; t < end; ++t) inside.add(end, t);
        for (auto const& client : server.clients)
            if (client.push.empty()) wait(end, client.contributors);
        ends.push_back(end);
    }
    std::vector<std::uint32_t> updates(p.sync.held.size());
    for (std::uint32_t i = 0; i < p.sync.held.size(); ++i) {
        auto const& h = p.sync.held[i];
        if (p.update[i] == class_plan::no_update) continue;
        updates[i] = b.parts.update.add(h.device, p.update[i]);
        b.shortest_update = std::min(b.shortest_update, p.update[i]);
        for (auto const group : h.groups)
            if (p.servers.empty() || p.servers[group].server == h.device) update_sync.add(updates[i], ends[group]);
        for (auto const s : h.contributors) {
            contributes[number_of(p.members, s.op)][s.shard] = true;
            update[number_of(p.members, s.op)].add(updates[i], s.shard);
        }
        if (!h.contributors.empty()) b.shortest = 0;
    }
    for (std::uint32_t i = 0; i < p.sync.held.size(); ++i)
        for (auto const group : p.sync.held[i].groups)
            if (!p.servers.empty() && p.servers[group].server == p.sync.held[i].device)
                for (auto const& client : p.servers[group].clients)
                    for (auto const& h : client.pull) update_inside.add(b.parts.update.add(r.link(h.link), h.duration), updates[i]);
    if (b.parts.update.size() == 0) b.shortest = b.shortest_update = 0;
    else b.shortest += b.shortest_update;
    for (std::size_t m = 0; m < p.members.size(); ++m) {
        auto const n = backward_tasks(p.members[m]);
        b.parts.sync_waits.push_back(gradients[m].make(b.parts.sync.size(), n));
        b.parts.update_waits.push_back(update[m].make(b.parts.update.size(), n));
        b.every.push_back(std::find(contributes[m].begin(), contributes[m].end(), false) == contributes[m].end());
    }
    b.work = b.parts.sync.work() + b.parts.update.work();
    b.parts.sync_waits_all = all.make(b.parts.sync.size(), 1, true);
    b.parts.inside_sync = inside.make(b.parts.sync.size(), b.parts.sync.size());
    b.parts.update_waits_sync = update_sync.make(b.parts.update.size(), b.parts.sync.size());
    b.parts.inside_update = update_inside.make(b.parts.update.size(), b.parts.update.size());
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/task_blocks.ipp>
#endif
