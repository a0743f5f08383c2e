#pragma once
// Runs a whole graph on small integer tensors, forward and backward.

#include <parsearch/lab/reference/reference_graph.hpp>

namespace parsearch::rewrite::reference {

PARSEARCH_INLINE std::vector<tensor_number> unread_outputs(graph::dense_graph const& g) {
    std::vector<tensor_number> out;
    for (std::uint32_t i = 0; i < g.size(); ++i)
        for (std::uint32_t slot = 0; slot < g.operations[i].outputs.size(); ++slot) {
            bool read = false;
            for (auto const e : g.out(i)) read = read || g.edges[e].slot == slot;
            if (!read) out.push_back({i, slot});
        }
    return out;
}

PARSEARCH_INLINE graph_run run(graph::dense_graph const& g, graph_values const& values, std::span<tensor_number const> wanted,
                               std::span<array const> seeds, purpose use) {
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
