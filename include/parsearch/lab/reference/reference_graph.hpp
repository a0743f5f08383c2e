#pragma once
/// Runs a whole graph on small integer tensors, forward and backward.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/lab/reference/reference_operation.hpp>

namespace parsearch::rewrite::reference {

/// Output `slot` of operator `op` of a dense graph.
struct tensor_number {
    std::uint32_t op = 0, slot = 0;
    friend bool operator==(tensor_number const&, tensor_number const&) = default;
};

/// Values of a graph's inputs by the names of their operators, and of its parameters by `parameter_name`.
struct graph_values {
    std::map<std::string, array> inputs{}, weights{};
    friend bool operator==(graph_values const&, graph_values const&) = default;
};

/// What a run makes: the tensors that were asked for, and the gradients of inputs and parameters.
struct graph_run {
    std::vector<array> outputs{};
    graph_values gradients{};
};

/// A weight's parameter; where it has none, the operator's name, a dot, the weight's.
[[nodiscard]] inline std::string parameter_name(graph::dense_graph const& g, std::size_t op, std::size_t weight) {
    auto const& w = g.operations[op].weights[weight];
    return w.parameter.empty() ? text(g.names[op], '.', w.name) : w.parameter;
}

/// The outputs that no operator reads, by operator and slot.
[[nodiscard]] std::vector<tensor_number> unread_outputs(graph::dense_graph const& g);

/// Random values for all inputs and parameters of `g`.
template <RandomBits R> [[nodiscard]] graph_values random_values(graph::dense_graph const& g, R& rng) {
    graph_values v;
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        if (op.work == ops::work_class::source) v.inputs[g.names[i]] = random_array(ops::tensor_of(op.outputs[0]).extents, rng);
        for (std::size_t w = 0; w < op.weights.size(); ++w)
            if (auto const name = parameter_name(g, i, w); !v.weights.contains(name))
                v.weights[name] = random_array(ops::tensor_of(op.weights[w]).extents, rng);
    }
    return v;
}

/// Runs `g` on `values`. `seeds` are the gradients of the `wanted` tensors (as many, of the same shapes); those of all other outputs come from
/// their readers. Without seeds, forward only. Gradients flow where operands are differentiable, to graph inputs too.
/// Throws `invalid_input` naming the operator where a value is missing or the reference does not know it.
[[nodiscard]] graph_run run(graph::dense_graph const& g, graph_values const& values, std::span<tensor_number const> wanted,
                            std::span<array const> seeds = {}, purpose use = purpose::training);

} // namespace parsearch::rewrite::reference

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/reference/reference_graph.ipp>
#endif
