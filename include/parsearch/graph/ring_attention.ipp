#pragma once
// Attention that passes keys and values on in a ring.

#include <parsearch/graph/ring_attention.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE operator_graph with_ring_attention(operator_graph const& g) {
    operator_graph out;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto operation = g[op].operation;
        if (operation.work == ops::work_class::attention)
            for (std::size_t i = 1; i < operation.inputs.size() && i < 3; ++i) operation.inputs[i].passed_on = true;
        out.insert(g[op].name, std::move(operation), g.inputs(op));
    }
    return out;
}

} // namespace parsearch::graph
