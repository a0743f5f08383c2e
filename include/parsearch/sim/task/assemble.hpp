#pragma once
/// Puts the task graph of one training iteration together from the plans of its operators, edges and weights.

#include <array>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/interruption.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>
#include <parsearch/sim/task/movement.hpp>

namespace parsearch::sim {

/// One operator under its configuration.
struct operator_plan {
    std::vector<std::uint32_t> devices;           ///< of each shard
    std::vector<std::int64_t> forward, backward;  ///< duration by kind of device
    std::vector<collective_plan> partial_outputs; ///< reductions of partial sums that no operator reads
    double partial_bytes = 0;                     ///< that these move
};

/// A device that sends its gradient of a sync group to the group's server and gets the weights back.
struct client_plan {
    std::vector<shard_ref> contributors; ///< its shards
    std::vector<hop> push, pull;         ///< none for the server itself
};

/// A sync group served by one of its devices.
struct server_plan {
    std::uint32_t server = 0; ///< device
    std::vector<client_plan> clients;
};

/// The weights of one sharing class: how its gradients are synchronised, and its updates.
struct class_plan {
    std::vector<std::uint32_t> members{}; ///< operators
    sync_plan sync{};
    std::vector<std::vector<hop>> all_reduce{};   ///< links of each sync group, or
    std::vector<server_plan> servers{};           ///< its server
    std::vector<std::int64_t> update{};           ///< duration for each entry of `sync.held`
    static constexpr std::int64_t no_update = -1; ///< in `update`: others update these weights
};

/// Everything that a task graph is made of.
struct iteration_plan {
    std::vector<operator_plan> operators;
    std::vector<edge_plan> edges;       ///< empty where another carries the data
    std::vector<std::uint32_t> carrier; ///< of each edge, the one that brings its data: itself, or an earlier one: see `shared_reads`
    std::vector<class_plan> classes;
    std::vector<std::uint32_t> class_of; ///< of each operator; of operators without weights: none
    static constexpr std::uint32_t none = ~std::uint32_t{0};
};

/// Bytes moved in one iteration by `traffic_kind`.
[[nodiscard]] inline std::array<double, traffic_kinds> traffic_of(iteration_plan const& plan, bool training) noexcept {
    std::array<double, traffic_kinds> sum{};
    for (auto const& e : plan.edges)
        for (std::size_t k = 0; k < traffic_kinds; ++k) sum[k] += e.bytes[k];
    for (auto const& p : plan.operators) sum[static_cast<std::size_t>(traffic_kind::partial_sum)] += p.partial_bytes;
    if (training)
        for (auto const& c : plan.classes)
            for (auto const& g : c.sync.groups) // there and back: sums of gradients, or weights that a server has updated
                sum[static_cast<std::size_t>(traffic_kind::weight_gradient)] +=
                    static_cast<double>(g.devices.size() - 1) * static_cast<double>(g.gradients + (c.servers.empty() ? g.gradients : g.bytes));
    return sum;
}

/// Builds task graphs; keeps its buffers from one to the next. Task numbers, and with them ties and program order, go:
/// - forward, operators in topological order: movement into the operator, edge by edge, then its shards. Operators that read a tensor alike wait
///   for the movement of the first;
/// - backward, operators in reverse: gradients that reach it (of those that read alike in one movement, which waits for all of them), its shards,
///   which wait for their sums that nobody reads (the network's result: its
///   gradient begins there); the synchronisation of a sharing class right after its last member's backward, or where it does not overlap, of all
///   classes after all backward tasks;
/// - updates last, class by class in the order of their synchronisation, each class followed by weights sent from servers.
/// Graph inputs have no tasks. Complexity: linear in tasks and dependencies.
class assembler {
  public:
    /// `latencies`: of an empty message on each link; read under `cut_through` and `fair_sharing` alone.
    assembler(graph::dense_graph const& g, std::vector<std::uint32_t> kind_of_device, std::uint32_t links,
              transfer_model transfers = transfer_model::streaming, std::vector<std::int64_t> latencies = {})
        : graph_(&g), kind_(std::move(kind_of_device)), links_(links), transfers_(transfers), latency_(std::move(latencies)), forward_(g.size()),
          backward_(g.size()), results_(g.size()), arrivals_(g.edges.size()), carried_(g.edges.size()) {}

    /// Throws `interrupted` once `stop` is requested.
    void run(iteration_plan const& plan, bool training, bool overlap, task_graph& out, std::stop_token const& stop = {}) {
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

  private:
    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return graph_->operations[op].work == ops::work_class::source; }
    [[nodiscard]] std::uint32_t device_resource(std::uint32_t d) const noexcept { return d; }
    [[nodiscard]] std::uint32_t link_resource(std::uint32_t l) const noexcept { return static_cast<std::uint32_t>(kind_.size()) + l; }
    [[nodiscard]] std::uint32_t barrier_resource() const noexcept { return static_cast<std::uint32_t>(kind_.size()) + links_; }

    /// A collective: a barrier after the tasks named so far, a task per link, a barrier. Returns the last.
    std::uint32_t add_collective(std::span<hop const> links, task_label who) {
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

    /// The tasks of a message, one for each hop; `wait` says what its first ones wait for.
    template <class Wait> void add_message(std::span<hop const> hops, task_label who, Wait const& wait) {
        auto const first = tasks_->size();
        std::int64_t latency = 0;
        if (transfers_ == transfer_model::fair_sharing)
            for (auto const& h : hops) latency = saturating_sum(latency, latency_[h.link]);
        for (auto const& h : hops) {
            if (!h.follows) wait();
            else if (transfers_ == transfer_model::store_and_forward) tasks_->after(tasks_->size() - 1);
            auto const number = tasks_->add(link_resource(h.link), h.duration, task_kind::transfer, who);
            if (transfers_ == transfer_model::cut_through) tie({h.follows ? number - 1 : task_tie::none, latency_[h.link]});
            if (transfers_ == transfer_model::fair_sharing) tie({first, latency});
        }
    }
    /// Of the last task added.
    void tie(task_tie t) {
        tasks_->ties.resize(tasks_->size() - 1);
        tasks_->ties.push_back(t);
    }
    void tie_up_to_here() {
        if (transfers_ == transfer_model::cut_through || transfers_ == transfer_model::fair_sharing) tasks_->ties.resize(tasks_->size());
    }

    /// What waits for the data of one edge in one direction.
    struct arrival {
        std::vector<std::uint32_t> collective; ///< end of each collective
        std::uint32_t first_message = 0;       ///< messages are contiguous, in pair order
    };

    [[nodiscard]] bool is_carried(std::uint32_t number) const noexcept { return plan_->carrier[number] != number; }
    /// Another input of the same operator brings its data: nothing is left to wait for.
    [[nodiscard]] bool is_brought(std::uint32_t number) const noexcept {
        return is_carried(number) && graph_->edges[plan_->carrier[number]].consumer == graph_->edges[number].consumer;
    }
    /// The operators whose gradients each edge carries beside its consumer's.
    void find_carried() {
        for (auto& others : carried_) others.clear();
        for (std::uint32_t e = 0; e < plan_->carrier.size(); ++e)
            if (is_carried(e) && !is_brought(e)) carried_[plan_->carrier[e]].push_back(graph_->edges[e].consumer);
    }

    /// Adds the movement of an edge: collectives, then messages. `gradient`: from consumer to producer.
    void add_movement(std::uint32_t number, bool gradient) {
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

    /// Makes the next task wait for pair `i` of an edge; of gradients, what another edge carries is waited for there. Returns the collective that
    /// carries it, or -1.
    std::int32_t wait_for_pair(std::uint32_t number, std::uint32_t i, bool gradient) {
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

    /// A shard's pairs of an edge are all in one collective or none.
    void wait_for_input(std::uint32_t number, std::uint32_t shard) {
        if (is_brought(number)) return;
        auto const& first = plan_->edges[plan_->carrier[number]].table->first_of_consumer;
        for (auto i = first[shard]; i < first[shard + 1]; ++i)
            if (wait_for_pair(number, i, false) >= 0) return;
    }
    void wait_for_gradient(std::uint32_t number, std::uint32_t shard) {
        if (is_brought(number)) return;
        auto const& table = *plan_->edges[plan_->carrier[number]].table;
        for (auto i = table.first_of_producer[shard]; i < table.first_of_producer[shard + 1]; ++i)
            if (wait_for_pair(number, table.by_producer[i], true) >= 0) return;
    }

    void add_forward(std::uint32_t op) {
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

    void add_backward(std::uint32_t op) {
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

    [[nodiscard]] static task_label of_group(class_plan const& p, std::uint32_t group) noexcept {
        return {p.members.front(), group, task_label::no_edge, traffic_kind::weight_gradient};
    }

    struct synchronised_class {
        std::uint32_t number = 0, first_barrier = 0;
    };

    void wait_for_gradients(std::span<shard_ref const> contributors) {
        if (all_backward_ != none) return tasks_->after(all_backward_);
        for (auto const s : contributors) tasks_->after(backward_[s.op] + s.shard);
    }

    void add_synchronisation(synchronised_class& c) {
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

    /// Messages of the clients, and a barrier when the server has all gradients.
    std::uint32_t add_server(server_plan const& p, task_label who) {
        auto const first = tasks_->size();
        for (auto const& client : p.clients) add_message(client.push, who, [&] { wait_for_gradients(client.contributors); });
        auto const end = tasks_->size();
        for (auto t = first; t < end; ++t) tasks_->after(t);
        for (auto const& client : p.clients)
            if (client.push.empty()) wait_for_gradients(client.contributors);
        return tasks_->add(barrier_resource(), 0, task_kind::barrier, who);
    }

    void add_updates(synchronised_class const& c) {
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
                    for (auto const& client : p.servers[group].clients)
                        add_message(client.pull, of_group(p, group), [&] { tasks_->after(updates_[i]); });
    }

    static constexpr auto none = iteration_plan::none;
    graph::dense_graph const* graph_;
    std::vector<std::uint32_t> kind_;
    std::uint32_t links_;
    transfer_model transfers_;
    std::vector<std::int64_t> latency_; ///< of each link
    std::stop_token stop_;
    iteration_plan const* plan_ = nullptr;
    task_graph* tasks_ = nullptr;
    std::vector<std::uint32_t> forward_, backward_;   ///< first task of each operator
    std::vector<std::vector<std::uint32_t>> results_; ///< of each operator, the end of each sum that nobody reads
    std::vector<arrival> arrivals_;                   ///< of each edge, in the direction added last
    std::vector<std::vector<std::uint32_t>> carried_; ///< of each edge, see `find_carried`
    std::vector<std::uint32_t> waiting_;              ///< members of each class whose backward is still to come
    std::vector<synchronised_class> synchronised_;
    std::vector<std::uint32_t> barriers_; ///< end of each all-reduce or of each server's messages
    std::vector<std::uint32_t> updates_;  ///< update of each entry of `sync.held` of one class
    std::uint32_t all_backward_ = none;   ///< barrier after all backward tasks, where synchronisation does not overlap with them
};

} // namespace parsearch::sim
