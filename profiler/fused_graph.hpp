#pragma once
/// A network with its elementwise operators fused into what makes their inputs, as compilers of frameworks fuse them, and its residual sums into the
/// normalizations behind them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

namespace parsearch::profiler {

namespace detail {

/// An operator of a network that is being fused.
struct fused_operator {
    struct source {
        std::uint32_t op, slot;
    };
    std::string name;
    ops::operation operation;
    std::vector<source> inputs{};
    bool fused_away = false;
};

[[nodiscard]] inline std::vector<fused_operator> operators_of(graph::dense_graph const& g) {
    std::vector<fused_operator> all;
    for (std::size_t i = 0; i < g.size(); ++i) {
        all.push_back({.name = g.names[i], .operation = g.operations[i]});
        for (auto const& e : g.in(i)) all.back().inputs.push_back({e.producer, e.slot});
    }
    return all;
}

/// The place of each operator in the order.
[[nodiscard]] inline std::vector<std::size_t> places_of(graph::dense_graph const& g) {
    std::vector<std::size_t> place(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
    return place;
}

/// Of the operators that are left, in their order.
[[nodiscard]] inline graph::operator_graph graph_of(std::vector<fused_operator> all, std::span<std::uint32_t const> order) {
    graph::operator_graph out;
    std::vector<std::size_t> numbers(all.size());
    for (auto const n : order) {
        auto& op = all[n];
        if (op.fused_away) continue;
        std::vector<graph::tensor_ref> inputs;
        for (auto const& from : op.inputs) inputs.push_back({numbers[from.op], from.slot});
        numbers[n] = out.insert(std::move(op.name), std::move(op.operation), inputs).op;
    }
    return out;
}

/// True for a sum of two tensors of one shape.
[[nodiscard]] inline bool is_residual_sum(ops::operation const& op) {
    if (op.kind != "add" || op.inputs.size() != 2 || !op.weights.empty() || op.outputs.size() != 1) return false;
    auto const& y = op.outputs[0];
    return std::ranges::all_of(op.inputs, [&](auto const& x) { return ops::tensor_of(x) == ops::tensor_of(y) && x.axes == y.axes; });
}

/// `norm` of x + residual, or of dropout(x) + residual, as one operation: "add_layer_norm", "dropout_add_rms_norm". Its inputs are x and residual.
/// The sum is its second output where it is read elsewhere too (`passed_on`), else it is kept for backward, as the norm keeps its input.
[[nodiscard]] inline ops::operation normalized_sum(ops::operation norm, ops::operation const& sum, ops::operation const* dropout, bool passed_on) {
    norm.kind = text(dropout ? "dropout_" : "", "add_", norm.kind);
    auto const amounts = ops::amounts_of(norm);
    for (auto const* const stage : {&sum, dropout})
        if (stage) {
            auto const added = ops::amounts_of(*stage);
            for (std::size_t i = 0; i < amounts.size(); ++i) *amounts[i] += *added[i];
        }
    auto between = norm.inputs[0];
    norm.backward_flops += between.gradient_flops; // for each of the two
    between.gradient_flops = 0;
    auto x = between;
    x.saved = false;
    auto residual = x;
    residual.name = "residual";
    if (dropout) x.gradient_flops = dropout->inputs[0].gradient_flops;
    norm.inputs = {std::move(x), std::move(residual)};
    if (passed_on) {
        between.name = "sum";
        norm.backward_flops += static_cast<double>(ops::elements_of(between)); // their gradient is added
        norm.outputs.push_back(std::move(between));
    } else if (between.saved) {
        norm.saved_bytes += static_cast<double>(ops::bytes_of(between));
    }
    return norm;
}

} // namespace detail

/// `g` with every function, sum and product of single elements fused to the operator that makes its input (`rewrite::fused`), wherever nobody else
/// reads that; of the two inputs of a sum or product, to the one that is made later. "linear", "dropout" and "add" behind each other become one
/// "linear+dropout+add" of the name "<linear>+dropout+add". Complexity: O((V + E) log V).
[[nodiscard]] inline graph::operator_graph with_fused_operators(graph::dense_graph const& g) {
    auto all = detail::operators_of(g);
    auto const place = detail::places_of(g);
    for (auto const n : g.order) {
        auto& stage = all[n];
        std::vector<std::size_t> slots;
        for (std::size_t i = 0; i < stage.inputs.size() && stage.inputs.size() <= 2; ++i) slots.push_back(i);
        std::ranges::stable_sort(slots, [&](auto a, auto b) { return place[stage.inputs[a].op] > place[stage.inputs[b].op]; });
        for (auto const slot : slots) {
            auto& before = all[stage.inputs[slot].op];
            if (g.out(stage.inputs[slot].op).size() != 1) continue;
            auto one =
                slots.size() == 2 ? rewrite::fused(before.operation, stage.operation, slot) : rewrite::fused(before.operation, stage.operation);
            if (!one) continue;
            auto inputs = std::move(before.inputs);
            if (slots.size() == 2) inputs.push_back(stage.inputs[1 - slot]);
            stage = {.name = text(before.name, '+', stage.operation.kind), .operation = std::move(*one), .inputs = std::move(inputs)};
            before.fused_away = true;
            break;
        }
    }
    return detail::graph_of(std::move(all), g.order);
}

/// `g` with every residual sum that a layer or RMS normalization reads as one operator with it, as fused kernels of frameworks compute them, and with
/// dropout of what is summed where nobody else reads that: "add_layer_norm" of the name "<add>+layer_norm". Who else reads the sum reads its second
/// output. Complexity: O(V + E).
[[nodiscard]] inline graph::operator_graph with_normalized_sums(graph::dense_graph const& g) {
    auto all = detail::operators_of(g);
    auto const place = detail::places_of(g);
    // Where the outputs of an operator that is fused away, and of a sum, are read now.
    std::vector<detail::fused_operator::source> now(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i) now[i] = {i, 0};
    for (auto const n : g.order) {
        auto const& norm = g.operations[n];
        if ((norm.kind != ops::layer_norm::kind && norm.kind != ops::rms_norm::kind) || norm.inputs.size() != 1 || norm.outputs.size() != 1) continue;
        auto const at = all[n].inputs[0].op;
        auto& sum = all[at];
        if (!detail::is_residual_sum(sum.operation) || !(ops::tensor_of(sum.operation.outputs[0]) == ops::tensor_of(norm.inputs[0]))) continue;
        // What comes last may have gone through dropout.
        if (place[sum.inputs[0].op] < place[sum.inputs[1].op]) std::swap(sum.inputs[0], sum.inputs[1]);
        ops::operation const* dropout = nullptr;
        for (std::size_t slot = 0; slot < 2 && !dropout; ++slot) {
            auto& dropped = all[sum.inputs[slot].op];
            if (dropped.operation.kind != ops::dropout::kind || g.out(sum.inputs[slot].op).size() != 1) continue;
            dropout = &dropped.operation;
            dropped.fused_away = true;
            std::swap(sum.inputs[0], sum.inputs[slot]);
            sum.inputs[0] = dropped.inputs[0];
        }
        bool const passed_on = g.out(at).size() > 1;
        sum.name = text(sum.name, '+', norm.kind);
        sum.operation = detail::normalized_sum(norm, sum.operation, dropout, passed_on);
        all[n].fused_away = true;
        now[n] = {at, 0};
        now[at] = {at, 1};
    }
    for (auto& op : all)
        for (auto& from : op.inputs) from = {now[from.op].op, now[from.op].slot + from.slot};
    return detail::graph_of(std::move(all), g.order);
}

} // namespace parsearch::profiler
