#pragma once
// Layers on different devices of a node.

#include <parsearch/core/error.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/space/textbook/operation_parallel.hpp>

namespace parsearch::space {

PARSEARCH_INLINE flat_strategy operation_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t per_node, bool uneven) {
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
