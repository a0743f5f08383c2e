#pragma once
/// Puts the task graph of one training iteration together from the plans of its operators, edges and weights.

#include <array>
#include <cstdint>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] std::array<double, traffic_kinds> traffic_of(iteration_plan const& plan, bool training) noexcept;

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
    void run(iteration_plan const& plan, bool training, bool overlap, task_graph& out, std::stop_token const& stop = {});

  private:
    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return graph_->operations[op].work == ops::work_class::source; }
    [[nodiscard]] std::uint32_t device_resource(std::uint32_t d) const noexcept { return d; }
    [[nodiscard]] std::uint32_t link_resource(std::uint32_t l) const noexcept { return static_cast<std::uint32_t>(kind_.size()) + l; }
    [[nodiscard]] std::uint32_t barrier_resource() const noexcept { return static_cast<std::uint32_t>(kind_.size()) + links_; }

    /// A collective: a barrier after the tasks named so far, a task per link, a barrier. Returns the last.
    std::uint32_t add_collective(std::span<hop const> links, task_label who);

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
    void add_movement(std::uint32_t number, bool gradient);

    /// Makes the next task wait for pair `i` of an edge; of gradients, what another edge carries is waited for there. Returns the collective that
    /// carries it, or -1.
    std::int32_t wait_for_pair(std::uint32_t number, std::uint32_t i, bool gradient);

    /// A shard's pairs of an edge are all in one collective or none.
    void wait_for_input(std::uint32_t number, std::uint32_t shard);
    void wait_for_gradient(std::uint32_t number, std::uint32_t shard);

    void add_forward(std::uint32_t op);

    void add_backward(std::uint32_t op);

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

    void add_synchronisation(synchronised_class& c);

    /// Messages of the clients, and a barrier when the server has all gradients.
    std::uint32_t add_server(server_plan const& p, task_label who);

    void add_updates(synchronised_class const& c);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/assemble.ipp>
#endif
