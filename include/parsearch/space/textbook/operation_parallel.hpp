#pragma once
/// Layers on different devices of a node.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

namespace parsearch::space {

/// Layers on different devices of a node, samples split over the nodes: each set of operators that shares parameters, and each
/// other operator with weights, takes the next device of the node in turn; operators without weights follow their first input.
/// Source: Wu et al., Google's neural machine translation system, 2016, section 3.2 (layers over the GPUs of a replica).
/// `per_node` devices of a node are consecutive. Throws `invalid_input` where it does not divide `devices`.
[[nodiscard]] inline flat_strategy operation_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t per_node, bool uneven = false) {
    if (per_node < 1 || devices % per_node != 0)
        throw invalid_input("operation_parallel: per_node is ", per_node, ": must divide the number of devices, ", devices);
    flat_strategy s(g.size());
    std::vector<std::int32_t> local(g.size(), 0);
    std::vector<bool> placed(g.size(), false);
    std::int32_t next = 0;
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        auto const root = g.sharing[i];
        if (ops::has_parameters(op)) {
            if (!placed[root]) {
                placed[root] = true;
                local[root] = next++ % static_cast<std::int32_t>(per_node);
            }
            local[i] = local[root];
        } else if (!g.in(i).empty()) {
            local[i] = local[g.in(i).front().producer];
        }
        s[i] = split_samples(op, static_cast<std::int64_t>(devices / per_node), static_cast<std::int32_t>(per_node), local[i], uneven);
    }
    return s;
}

} // namespace parsearch::space
