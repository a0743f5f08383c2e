#pragma once
// Totals of an operator graph: parameters, multiply-adds, flops of a forward pass and of a training step.

#include <unordered_set>

#include <parsearch/models/summary.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::models {

PARSEARCH_INLINE flop_count backward_flops(graph::dense_graph const& g, std::size_t op) {
    auto const& operation = g.operations[op];
    flop_count sum = g.trains[op] ? operation.backward_flops : 0;
    for (auto const& w : operation.weights) sum += w.gradient_flops;
    for (auto const& e : g.in(op))
        if (g.carries_gradient(e)) sum += operation.inputs[e.input].gradient_flops;
    return sum;
}

PARSEARCH_INLINE summary summarize(graph::dense_graph const& g) {
    summary out;
    std::unordered_set<std::string_view> counted;
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        if (op.work == ops::work_class::source) continue;
        ++out.operators;
        out.multiply_adds += op.multiply_adds;
        out.forward_flops += op.flops;
        out.training_flops += backward_flops(g, i);
        for (auto const& w : op.weights) {
            if (w.cache) out.cache += ops::bytes_of(w);
            else if (w.parameter.empty() || counted.insert(w.parameter).second) out.parameters += ops::elements_of(w);
        }
    }
    out.training_flops += out.forward_flops;
    return out;
}

} // namespace parsearch::models
