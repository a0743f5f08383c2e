#pragma once
/// What a strategy makes servers send to each other in an iteration.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::fabric {

/// Whether every pair of shards of the collective exchanges something of its own.
[[nodiscard]] constexpr bool is_exchange(collective_kind k) noexcept {
    return k == collective_kind::all_to_all || k == collective_kind::all_to_all_v;
}

namespace detail {

/// Who sends how much does not depend on how long it takes: plans are made with no times.
struct no_times {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const&, std::uint32_t) const noexcept { return {}; }
    [[nodiscard]] picoseconds transfer_time(byte_count, link_description const&) const noexcept { return {}; }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const noexcept { return {}; }
};

/// Devices on their servers, and one link for all messages.
[[nodiscard]] topology::dense_topology one_link(std::vector<std::uint32_t> const& server);

/// Adds up what devices send as what their servers send.
class server_traffic {
  public:
    server_traffic(std::span<std::uint32_t const> server, std::uint32_t servers) : server_(server), sum_(servers) {}

    void message(std::uint32_t from, std::uint32_t to, byte_count bytes) {
        if (server_[from] != server_[to]) sum_.add(server_[from], server_[to], bytes);
    }
    void all_reduce(std::vector<std::uint32_t> const& members, byte_count bytes) {
        if (auto const servers = servers_of(members); servers.size() > 1) sum_.add_all_reduce(servers, bytes);
    }
    /// A collective that runs once along the ring of its servers in ascending order. `first` sends a broadcast and receives a reduction.
    void ring(collective_kind kind, std::vector<std::uint32_t> const& members, std::uint32_t first, byte_count bytes);
    [[nodiscard]] demand take() && { return std::move(sum_); }

  private:
    [[nodiscard]] std::vector<std::uint32_t> servers_of(std::vector<std::uint32_t> const& members) const;

    std::span<std::uint32_t const> server_;
    demand sum_;
};

/// Adds what moves along an edge between shards on the devices `made` and `read`.
void add_edge(server_traffic& sum, sim::edge_plan const& plan, byte_count element, std::vector<std::uint32_t> const& made,
              std::vector<std::uint32_t> const& read, bool gradients);

/// Adds the synchronisation of the weights of a class.
void add_class(server_traffic& sum, sim::class_plan const& plan);

} // namespace detail

/// The traffic of an iteration of `graph` under `s` between servers, device d being on server `server[d]`, numbered from 0; all bytes are exact.
/// - Messages between shards, forward and backward, and parameters pushed to and pulled from their server: point to point.
/// - All-reduces of partial sums and gradients of B bytes, by devices on several servers: an all-reduce of B bytes by these servers. That is what
///   crosses servers where the devices of a server first reduce among themselves; a ring through all devices sends up to (g-1)/g * k/(k-1) as much
///   for k servers and g devices.
/// - All-to-alls, regular or not: what each pair of shards exchanges, point to point.
/// - An all-gather and the reduce-scatter of its gradients, or a broadcast and the reduction of its gradients, of B bytes: one all-reduce of B bytes,
///   since together they put on a ring what it does, and run along any ring as well. Without gradients: point to point along the ring of the
///   servers in ascending order, from each to the next; broadcasts and reductions as chains.
/// What stays on a server is left out. Throws `invalid_input` where a configuration does not fit its operator or there are more servers or
/// bytes than a `demand` holds. Complexity: that of planning the strategy; memory: of its largest edge, and devices^2.
template <Strategy<space::configuration> S>
[[nodiscard]] demand traffic_of(graph::dense_graph const& graph, std::vector<std::uint32_t> const& server, sim::simulation_options const& options,
                                S const& s) {
    if (server.empty()) throw invalid_input("traffic between servers of no devices: at least one is needed");
    if constexpr (requires {
                      { s.size() } -> std::convertible_to<std::size_t>;
                  })
        if (static_cast<std::size_t>(s.size()) != graph.size())
            throw invalid_input("traffic of a strategy of ", s.size(), " configurations: the graph has ", graph.size(),
                                " operators, must be one each");
    auto const work = sim::make_workload(graph, detail::one_link(server), cost::any_oracle(detail::no_times{}, server), options);
    auto const& g = work->graph;
    sim::planner planner(work);
    detail::server_traffic sum(server, *std::max_element(server.begin(), server.end()) + 1);
    std::vector<space::configuration> configurations;
    std::vector<sim::operator_plan> operators(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        configurations.push_back(configuration_of(s, op));
        space::validate(configurations[op], g.operations[op], server.size(), g.names[op]);
        planner.place_operator(op, configurations[op], operators[op]);
        for (auto const& c : operators[op].partial_outputs) {
            std::vector<std::uint32_t> members;
            for (auto const shard : c.producers) members.push_back(operators[op].devices[shard]);
            make_set(members);
            sum.all_reduce(members, c.bytes);
        }
    }
    auto const carriers = planner.carriers([&](std::uint32_t op) -> auto const& { return configurations[op]; },
                                           [&](std::uint32_t op) -> auto const& { return operators[op]; });
    for (std::uint32_t number = 0; number < g.edges.size(); ++number) {
        auto const& e = g.edges[number];
        if (carriers[number] != number || g.operations[e.producer].work == ops::work_class::source) continue; // nothing of its own moves
        auto const plan =
            planner.plan_edge(number, configurations[e.producer], operators[e.producer], configurations[e.consumer], operators[e.consumer]);
        detail::add_edge(sum, plan, ops::size_of(g.operations[e.producer].outputs[e.slot].type), operators[e.producer].devices,
                         operators[e.consumer].devices, options.training && g.carries_gradient(e));
    }
    for (auto const& members : work->classes) {
        if (!options.training) break;
        sim::class_plan plan{.members = members};
        planner.plan_class([&](std::uint32_t op) -> space::configuration const& { return configurations[op]; },
                           [&](std::uint32_t op) -> sim::operator_plan const& { return operators[op]; }, plan);
        detail::add_class(sum, plan);
    }
    return std::move(sum).take();
}

/// The traffic of strategy `s` of `p` between the nodes of its topology, numbered by first use.
template <Strategy<space::configuration> S> [[nodiscard]] demand traffic_of(parallelization const& p, S const& s) {
    return traffic_of(p.graph(), p.topology().node, p.options(), s);
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/traffic.ipp>
#endif
