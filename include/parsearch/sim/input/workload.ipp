#pragma once
// What is simulated: a graph, a topology and an oracle read once, shared by every simulator of them.

#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/topology/group.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void validate(simulation_options const& options) {
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
    if (options.replicas < 1) throw invalid_input("simulation option replicas is 0: must be at least 1");
    if (options.replicas > 1 && (options.synchronisation != synchronisation::all_reduce || options.balanced))
        throw invalid_input("simulation option replicas is ", options.replicas, ", and ",
                            options.balanced ? "balanced is true: must be 1, or balanced false"
                                             : "synchronisation is parameter_server: must be 1, or synchronisation all_reduce");
}

PARSEARCH_INLINE std::vector<sharing_class> find_classes(graph::dense_graph const& g) {
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

PARSEARCH_INLINE std::shared_ptr<workload const> make_workload(graph::dense_graph graph, topology::dense_topology topology, cost::any_oracle oracle,
                                                               simulation_options const& options) {
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
    try {
        if (options.replicas > 1) topology::require_like_nodes(topology);
    } catch (invalid_input const& e) {
        throw invalid_input("simulation option replicas is ", options.replicas, ", and ", e.what(), ": must be 1");
    }
    auto w = std::make_shared<workload>(workload{std::move(graph), std::move(topology), std::move(oracle), options, {}, {}, {}});
    w->classes = find_classes(w->graph);
    w->readers = shared_reads(w->graph);
    constexpr auto none = ~std::uint32_t{0};
    w->class_of.assign(w->graph.size(), none);
    for (std::uint32_t c = 0; c < w->classes.size(); ++c)
        for (auto const op : w->classes[c]) w->class_of[op] = c;
    return w;
}

} // namespace parsearch::sim
