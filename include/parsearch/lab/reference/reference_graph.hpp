#pragma once
/// Runs a whole graph on small integer tensors, forward and backward.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
[[nodiscard]] inline std::vector<tensor_number> unread_outputs(graph::dense_graph const& g) {
    std::vector<tensor_number> out;
    for (std::uint32_t i = 0; i < g.size(); ++i)
        for (std::uint32_t slot = 0; slot < g.operations[i].outputs.size(); ++slot) {
            bool read = false;
            for (auto const e : g.out(i)) read = read || g.edges[e].slot == slot;
            if (!read) out.push_back({i, slot});
        }
    return out;
}

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
[[nodiscard]] inline graph_run run(graph::dense_graph const& g, graph_values const& values, std::span<tensor_number const> wanted,
                                   std::span<array const> seeds = {}, purpose use = purpose::training) {
    if (!seeds.empty() && seeds.size() != wanted.size())
        throw invalid_input(seeds.size(), " gradients for ", wanted.size(), " wanted tensors: must be as many, or none");
    auto const named = [](std::map<std::string, array> const& all, std::string const& name, std::string_view role) -> array const& {
        auto const at = all.find(name);
        if (at == all.end()) throw invalid_input(role, " '", name, "' has no value: each needs one");
        return at->second;
    };
    std::vector<std::vector<array>> made(g.size()), gradients(g.size());
    auto const arguments = [&](std::uint32_t i) {
        std::pair<std::vector<array>, std::vector<array>> out;
        for (auto const& e : g.in(i)) out.first.push_back(made[e.producer][e.slot]);
        for (std::size_t w = 0; w < g.operations[i].weights.size(); ++w)
            out.second.push_back(named(values.weights, parameter_name(g, i, w), "parameter"));
        return out;
    };
    auto const attempted = [&](std::uint32_t i, auto&& step) {
        try {
            step();
        } catch (invalid_input const& e) {
            throw invalid_input("operator '", g.names[i], "' (", g.operations[i].kind, "): ", e.what());
        }
    };
    for (auto const i : g.order)
        attempted(i, [&] {
            auto const& op = g.operations[i];
            if (op.work == ops::work_class::source) {
                auto const& v = named(values.inputs, g.names[i], "input");
                if (v.extents != ops::tensor_of(op.outputs[0]).extents) throw invalid_input("its value has another shape than its output");
                made[i] = {v};
            } else {
                auto const [x, w] = arguments(i);
                made[i] = outputs_of(op, x, w, use);
            }
        });

    graph_run out;
    for (auto const& t : wanted) {
        if (t.op >= g.size() || t.slot >= made[t.op].size())
            throw invalid_input("wanted is output ", t.slot, " of operator ", t.op, ", which does not exist");
        out.outputs.push_back(made[t.op][t.slot]);
    }
    if (seeds.empty()) return out;

    auto const add = [](array& to, array const& more, std::string_view what) {
        if (to.extents != more.extents) throw invalid_input("the gradient of ", what, " has another shape than it");
        for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] = sum(to.values[i], more.values[i]);
    };
    for (std::size_t i = 0; i < g.size(); ++i)
        for (auto const& a : made[i]) gradients[i].push_back(filled(a.extents));
    for (std::size_t i = 0; i < wanted.size(); ++i) add(gradients[wanted[i].op][wanted[i].slot], seeds[i], text("wanted tensor ", i));
    for (auto const& [name, v] : values.weights) out.gradients.weights[name] = filled(v.extents);
    for (auto i = g.order.rbegin(); i != g.order.rend(); ++i) {
        auto const& op = g.operations[*i];
        if (op.work == ops::work_class::source) {
            out.gradients.inputs[g.names[*i]] = gradients[*i][0];
            continue;
        }
        auto const [x, w] = arguments(*i);
        auto const back = gradients_of(op, x, w, gradients[*i], use);
        for (auto const& e : g.in(*i)) add(gradients[e.producer][e.slot], back.inputs[e.input], "an input");
        for (std::size_t k = 0; k < op.weights.size(); ++k) add(out.gradients.weights[parameter_name(g, *i, k)], back.weights[k], "a weight");
    }
    return out;
}

} // namespace parsearch::rewrite::reference
