#pragma once
/// What is planned whatever the network: a graph, servers, and what work costs on them.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/routing.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::fabric {

/// A roofline of any cluster.
struct make_roofline {
    [[nodiscard]] cost::roofline operator()(topology::cluster const& c) const { return cost::roofline{c}; }
};

/// How servers and their flows are made into clusters.
struct fabric_options {
    server_options servers{};
    routing_options routes{};
    problem_options problem{};
};

/// A network and the strategy to run on it.
struct fabric_plan {
    using cost_type = picoseconds;
    network wired;
    space::flat_strategy strategy;
};

/// A cluster and the problem on it.
struct problem_on_network {
    topology::cluster cluster;
    parallelization problem;
};

/// A graph to be run by `servers` servers, on networks that are still to be chosen.
class fabric_problem {
  public:
    /// `make_oracle(cluster)` makes the cost oracle of a cluster. `wanted` holds on all networks; devices are numbers, server by server. Throws
    /// `invalid_input` as `graph::read_graph`, on no servers, or no GPUs or more than a cluster holds, and on a constraint that names an operator
    /// that is not there.
    template <DescribesOperations G, class MakeOracle = make_roofline>
        requires std::invocable<MakeOracle const&, topology::cluster const&>
    fabric_problem(G const& graph, std::uint32_t servers, fabric_options options, MakeOracle make_oracle = {},
                   constraints<operator_handle_t<G>, std::uint32_t> const& wanted = {})
        : fabric_problem(graph::read_graph(graph), servers, std::move(options), std::move(make_oracle), wanted) {}

    [[nodiscard]] graph::dense_graph const& graph() const noexcept { return graph_; }
    [[nodiscard]] std::uint32_t servers() const noexcept { return servers_; }
    /// Devices of its problems: servers times GPUs, or servers where their GPUs are merged, but for those that are left out.
    [[nodiscard]] std::uint32_t devices() const noexcept { return static_cast<std::uint32_t>(server_of_.size()); }
    /// The server of each device.
    [[nodiscard]] std::vector<std::uint32_t> const& server_of() const noexcept { return server_of_; }
    [[nodiscard]] fabric_options const& options() const noexcept { return options_; }

    /// The problem on network `n`. Throws `invalid_input` where `n` has another number of servers, and as `server_cluster` and `make_problem` do.
    [[nodiscard]] problem_on_network on(network const& n) const;
    /// What servers send to each other under strategy `s`: see `traffic_of`.
    template <Strategy<space::configuration> S> [[nodiscard]] demand traffic(S const& s) const {
        return traffic_of(graph_, server_of_, options_.problem.simulation, s);
    }

  private:
    template <class Operator, class MakeOracle>
    fabric_problem(graph::graph_reading<Operator> read, std::uint32_t servers, fabric_options options, MakeOracle make_oracle,
                   constraints<Operator, std::uint32_t> const& wanted)
        : graph_(space::with_replicas(std::move(read.graph), options.problem.space)), servers_(servers), options_(std::move(options)),
          make_problem_([make_oracle = std::move(make_oracle), wanted = wanted.by_number(graph_, read.handles)](
                            graph::dense_graph const& g, topology::cluster const& c, problem_options const& o) -> parallelization {
              return make_problem(g, c, make_oracle(c), o, wanted);
          }) {
        if (servers < 1) throw invalid_input("fabric problem of 0 servers: must be at least one");
        check_devices(servers, options_.servers);
        auto const each = options_.servers.inside == inside_server::merged ? 1 : options_.servers.gpus_per_server;
        for (std::uint32_t d = 0; d < servers * each; ++d)
            if (std::ranges::find(wanted.left_out(), d) == wanted.left_out().end()) server_of_.push_back(d / each);
    }

    graph::dense_graph graph_;
    std::uint32_t servers_;
    fabric_options options_;
    std::vector<std::uint32_t> server_of_{}; ///< each device that may be used
    std::function<parallelization(graph::dense_graph const&, topology::cluster const&, problem_options const&)> make_problem_;
};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/fabric_problem.ipp>
#endif
