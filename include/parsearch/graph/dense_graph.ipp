#pragma once
// Reads any `OperatorGraph` once into dense arrays, checked: what searches and simulators run on.

#include <algorithm>

#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE std::uint64_t dense_graph::input_gradients(std::size_t op) const noexcept {
    std::uint64_t mask = 0;
    for (auto const& e : in(op))
        if (e.input < 64 && carries_gradient(e)) mask |= std::uint64_t{1} << e.input;
    return mask;
}

} // namespace parsearch::graph

namespace parsearch::graph::detail {

PARSEARCH_INLINE void keep_names_apart(dense_graph& g, std::span<std::uint32_t const> without_name) {
    if (without_name.empty()) return;
    std::unordered_map<std::string_view, std::size_t> times;
    for (auto const& name : g.names) ++times[name];
    if (std::ranges::all_of(without_name, [&](auto op) { return times[g.names[op]] == 1; })) return;
    for (auto const op : without_name) g.names[op] = text(g.operations[op].kind, '#', op);
}

PARSEARCH_INLINE void order_topologically(dense_graph& g) {
    std::vector<std::uint32_t> missing(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i) missing[i] = g.first_in[i + 1] - g.first_in[i];
    auto const each_reader = [&](std::uint32_t i, auto const& f) {
        for (auto const e : g.out(i)) f(g.edges[e].consumer);
    };
    visit_topologically(std::span(missing), each_reader, [&](std::uint32_t i) { g.order.push_back(i); });
    if (g.order.size() == g.size()) return;
    // Only operators behind or on a cycle are left; walking back along unmet inputs ends on the cycle.
    std::uint32_t at = 0;
    while (!missing[at]) ++at;
    auto const back = [&](std::uint32_t i) {
        for (auto const& e : g.in(i))
            if (missing[e.producer]) return e.producer;
        return i;
    };
    for (std::size_t i = 0; i < g.size(); ++i) at = back(at);
    std::string cycle = text("'", g.names[at], "'");
    for (auto i = back(at); i != at; i = back(i)) cycle = text("'", g.names[i], "' -> ", cycle);
    throw invalid_input("cycle in the operator graph: '", g.names[at], "' -> ", cycle, ": an operator graph is acyclic");
}

PARSEARCH_INLINE void check_edges(dense_graph const& g) {
    for (std::uint32_t i = 0; i < g.size(); ++i)
        if (auto const& op = g.operations[i]; op.work == ops::work_class::source && !(op.inputs.empty() && op.weights.empty()))
            throw invalid_input("operator '", g.names[i], "' (", op.kind, "): a graph input with ", op.inputs.size(), " inputs and ",
                                op.weights.size(), " weights: must have neither");
    for (std::uint32_t i = 0; i < g.size(); ++i)
        if (auto const have = g.in(i).size(); have != g.operations[i].inputs.size())
            throw invalid_input("operator '", g.names[i], "' (", g.operations[i].kind, "): the graph gives it ", have, " inputs: it has ",
                                g.operations[i].inputs.size());
    for (auto const& e : g.edges) {
        auto const& outputs = g.operations[e.producer].outputs;
        auto const place = [&] {
            return text("operator '", g.names[e.consumer], "' (", g.operations[e.consumer].kind, "): input ", e.input, " is output ", e.slot, " of '",
                        g.names[e.producer], "'");
        };
        if (e.slot >= outputs.size()) throw invalid_input(place(), ", which has only ", outputs.size(), " outputs");
        auto const made = ops::tensor_of(outputs[e.slot]), wanted = ops::tensor_of(g.operations[e.consumer].inputs[e.input]);
        if (!(made == wanted)) throw invalid_input(place(), " of shape ", ops::to_string(made), ": must be ", ops::to_string(wanted));
    }
}

PARSEARCH_INLINE void find_training(dense_graph& g) {
    g.trains.assign(g.size(), false);
    for (auto const i : g.order) {
        bool trains = ops::has_parameters(g.operations[i]);
        for (auto const& e : g.in(i)) trains = trains || g.carries_gradient(e);
        g.trains[i] = trains && g.operations[i].work != ops::work_class::source;
    }
}

PARSEARCH_INLINE void find_sharing(dense_graph& g) {
    joined_sets sets(g.size());
    std::unordered_map<std::string_view, std::pair<std::uint32_t, ops::operand const*>> first;
    for (std::uint32_t i = 0; i < g.size(); ++i)
        for (auto const& w : g.operations[i].weights) {
            if (w.parameter.empty()) continue;
            auto const [at, fresh] = first.try_emplace(w.parameter, i, &w);
            if (fresh) continue;
            auto const [other, shape] = at->second;
            if (!(ops::tensor_of(*shape) == ops::tensor_of(w)))
                throw invalid_input("operator '", g.names[i], "' (", g.operations[i].kind, "): parameter '", w.parameter, "' of shape ",
                                    ops::to_string(ops::tensor_of(w)), " is shared with '", g.names[other], "', where it has shape ",
                                    ops::to_string(ops::tensor_of(*shape)), ": must be equal");
            sets.join(i, other);
        }
    for (std::uint32_t i = 0; i < g.size(); ++i) g.sharing.push_back(sets.root(i));
}

} // namespace parsearch::graph::detail
