#pragma once
/// What is simulated: a graph, a topology and an oracle read once, shared by every simulator of them.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/input/balance.hpp>
#include <parsearch/sim/input/shared_reads.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

/// A sharing class: the operators that use the same parameter tensors, by number.
using sharing_class = std::vector<std::uint32_t>;

/// The read-only input of a simulation.
struct workload {
    graph::dense_graph graph;
    topology::dense_topology topology;
    cost::any_oracle oracle; ///< counts devices as the topology does
    simulation_options options;
    std::vector<sharing_class> classes;  ///< of operators with weights, by smallest member
    std::vector<std::uint32_t> class_of; ///< of each operator; `iteration_plan::none` without weights
    shared_reads readers;                ///< of the graph's tensors
};

/// Checks `options`; throws `invalid_input` naming value and rule.
void validate(simulation_options const& options);

/// The sharing classes of `g`, by smallest member.
[[nodiscard]] std::vector<sharing_class> find_classes(graph::dense_graph const& g);

/// `oracle` counts devices as `topology` does. Throws as `validate(options)`, and `invalid_input` where an operator passes an input on in a ring and
/// movement is pairwise, and where one keeps a cache and is to be trained.
[[nodiscard]] std::shared_ptr<workload const> make_workload(graph::dense_graph graph, topology::dense_topology topology, cost::any_oracle oracle,
                                                            simulation_options const& options);

/// The same; where `options.balanced` says so samples are divided anew for this topology and oracle. The other one keeps what the dims have.
[[nodiscard]] inline std::shared_ptr<workload const> make_balanced_workload(graph::dense_graph graph, topology::dense_topology topology,
                                                                            cost::any_oracle oracle, simulation_options const& options) {
    if (options.balanced) balance_samples(graph, topology, oracle, options.training);
    return make_workload(std::move(graph), std::move(topology), std::move(oracle), options);
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/input/workload.ipp>
#endif
