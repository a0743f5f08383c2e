#pragma once
/// What is simulated: a graph, a topology and an oracle read once, shared by every simulator of them.

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/options.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

/// A sharing class: the operators that use the same parameter tensors, by number.
using sharing_class = std::vector<std::uint32_t>;

/// The read-only input of a simulation. `Device` is the topology's handle, with which the oracle is asked.
template <class Oracle, class Device>
    requires CostOracle<Oracle, ops::shard_work, Device>
struct workload {
    graph::dense_graph graph;
    topology::dense_topology topology;
    std::vector<Device> devices;
    Oracle oracle;
    simulation_options options;
    std::vector<sharing_class> classes;  ///< of operators with weights, by smallest member
    std::vector<std::uint32_t> class_of; ///< of each operator; `iteration_plan::none` without weights
};

/// Checks `options`; throws `invalid_input` naming value and rule.
inline void validate(simulation_options const& options) {
    auto const known = [](auto value, auto last, std::string_view name) {
        if (value > last) throw invalid_input("simulation option ", name, " is number ", static_cast<int>(value), ": must be one of those declared");
    };
    known(options.movement, movement::collective, "movement");
    known(options.discipline, discipline::in_order, "discipline");
    known(options.synchronisation, synchronisation::parameter_server, "synchronisation");
    known(options.optimizer, optimizer::adam, "optimizer");
    known(options.memory, memory_policy::reject, "memory");
    if (!(options.memory_penalty >= 0) || options.memory_penalty > std::numeric_limits<double>::max())
        throw invalid_input("simulation option memory_penalty is ", options.memory_penalty, " ps per byte: must be finite and not negative");
}

template <class Oracle, class Device>
[[nodiscard]] std::shared_ptr<workload<Oracle, Device> const> make_workload(graph::dense_graph graph, topology::dense_topology topology,
                                                                            std::vector<Device> devices, Oracle oracle,
                                                                            simulation_options const& options) {
    validate(options);
    auto w = std::make_shared<workload<Oracle, Device>>(
        workload<Oracle, Device>{std::move(graph), std::move(topology), std::move(devices), std::move(oracle), options, {}, {}});
    constexpr auto none = ~std::uint32_t{0};
    w->class_of.assign(w->graph.size(), none);
    for (std::uint32_t op = 0; op < w->graph.size(); ++op) {
        if (w->graph.operations[op].weights.empty()) continue;
        auto const root = w->graph.sharing[op]; // the smallest member: it comes first
        if (root == op) {
            w->class_of[op] = static_cast<std::uint32_t>(w->classes.size());
            w->classes.emplace_back();
        }
        w->class_of[op] = w->class_of[root];
        w->classes[w->class_of[op]].push_back(op);
    }
    return w;
}

} // namespace parsearch::sim
