#pragma once
/// What is simulated: a graph, a topology and an oracle read once, shared by every simulator of them.

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
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
inline void validate(simulation_options const& options) {
    auto const known = [](auto value, auto last, std::string_view name) {
        if (value > last) throw invalid_input("simulation option ", name, " is number ", static_cast<int>(value), ": must be one of those declared");
    };
    known(options.movement, movement::grouped, "movement");
    known(options.discipline, discipline::in_order, "discipline");
    known(options.synchronisation, synchronisation::parameter_server, "synchronisation");
    known(options.optimizer, optimizer::adam, "optimizer");
    known(options.memory, memory_policy::reject, "memory");
    known(options.transfers, transfer_model::fair_sharing, "transfers");
    if (options.segment < 1) throw invalid_input("simulation option segment is ", options.segment, " bytes: must be at least 1");
    if (!(options.memory_penalty >= 0) || options.memory_penalty > std::numeric_limits<double>::max())
        throw invalid_input("simulation option memory_penalty is ", options.memory_penalty, " ps per byte: must be finite and not negative");
    if (!(options.memory_kept_free >= 0 && options.memory_kept_free < 1))
        throw invalid_input("simulation option memory_kept_free is ", options.memory_kept_free, ": must be a share from 0 to less than 1");
    if (options.context_memory < 0)
        throw invalid_input("simulation option context_memory is ", options.context_memory, " bytes: must not be negative");
}

/// The sharing classes of `g`, by smallest member.
[[nodiscard]] inline std::vector<sharing_class> find_classes(graph::dense_graph const& g) {
    std::vector<sharing_class> out;
    std::vector<std::size_t> of_root(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].weights.empty()) continue;
        auto const root = g.sharing[op]; // the smallest member: it comes first
        if (root == op) {
            of_root[op] = out.size();
            out.emplace_back();
        }
        out[of_root[root]].push_back(op);
    }
    return out;
}

/// `oracle` counts devices as `topology` does. Throws as `validate(options)`, and `invalid_input` where an operator passes an input on in a ring and
/// movement is pairwise, and where one keeps a cache and is to be trained.
[[nodiscard]] inline std::shared_ptr<workload const> make_workload(graph::dense_graph graph, topology::dense_topology topology,
                                                                   cost::any_oracle oracle, simulation_options const& options) {
    validate(options);
    for (std::size_t op = 0; op < graph.size() && options.movement == movement::pairwise; ++op)
        for (auto const& input : graph.operations[op].inputs)
            if (input.passed_on)
                throw invalid_input("operator '", graph.names[op], "' passes input '", input.name,
                                    "' on in a ring, and movement is pairwise: must be collective or grouped");
    for (std::size_t op = 0; op < graph.size() && options.training; ++op)
        if (ops::keeps_cache(graph.operations[op]))
            throw invalid_input("operator '", graph.names[op], "' (", graph.operations[op].kind,
                                ") keeps a cache from one iteration to the next, and option training is true: only inference has caches");
    auto w = std::make_shared<workload>(workload{std::move(graph), std::move(topology), std::move(oracle), options, {}, {}, {}});
    w->classes = find_classes(w->graph);
    w->readers = shared_reads(w->graph);
    constexpr auto none = ~std::uint32_t{0};
    w->class_of.assign(w->graph.size(), none);
    for (std::uint32_t c = 0; c < w->classes.size(); ++c)
        for (auto const op : w->classes[c]) w->class_of[op] = c;
    return w;
}

/// The same; where `options.balanced` says so samples are divided anew for this topology and oracle. The other one keeps what the dims have.
[[nodiscard]] inline std::shared_ptr<workload const> make_balanced_workload(graph::dense_graph graph, topology::dense_topology topology,
                                                                            cost::any_oracle oracle, simulation_options const& options) {
    if (options.balanced) balance_samples(graph, topology, oracle, options.training);
    return make_workload(std::move(graph), std::move(topology), std::move(oracle), options);
}

} // namespace parsearch::sim
