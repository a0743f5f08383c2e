#pragma once
/// Totals of an operator graph: parameters, multiply-adds, flops of a forward pass and of a training step.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::models {

struct summary {
    std::size_t operators = 0;     ///< without graph inputs
    std::int64_t parameters = 0;   ///< elements of all weights; a shared tensor counts once
    byte_count cache = 0;          ///< of all samples, kept from one iteration of inference to the next
    flop_count multiply_adds = 0;  ///< of the contractions of a forward pass
    flop_count forward_flops = 0;  ///< of a forward pass
    flop_count training_flops = 0; ///< of forward and backward; nothing is recomputed, the optimizer's step not counted
};

/// Flops of the backward pass of operator `op`: 0 where no gradient flows through it.
[[nodiscard]] inline flop_count backward_flops(graph::dense_graph const& g, std::size_t op) {
    auto const& operation = g.operations[op];
    flop_count sum = g.trains[op] ? operation.backward_flops : 0;
    for (auto const& w : operation.weights) sum += w.gradient_flops;
    for (auto const& e : g.in(op))
        if (g.carries_gradient(e)) sum += operation.inputs[e.input].gradient_flops;
    return sum;
}

/// Complexity: linear in operators, operands and edges.
[[nodiscard]] inline summary summarize(graph::dense_graph const& g) {
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

/// The same for any operator graph that `graph::read_graph` accepts.
template <OperatorGraph G> [[nodiscard]] summary summarize(G const& g) { return summarize(graph::read_graph(g).graph); }

} // namespace parsearch::models
