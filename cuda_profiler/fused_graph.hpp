#pragma once
/// A network with its elementwise operators fused into what makes their inputs, as compilers of frameworks fuse them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

namespace parsearch::profiler {

/// `g` with every function, sum and product of single elements fused to the operator that makes its input (`rewrite::fused`), wherever nobody else
/// reads that; of the two inputs of a sum or product, to the one that is made later. "linear", "dropout" and "add" behind each other become one
/// "linear+dropout+add" of the name "<linear>+dropout+add". Complexity: O((V + E) log V).
[[nodiscard]] inline graph::operator_graph with_fused_operators(graph::dense_graph const& g) {
    struct source {
        std::uint32_t op, slot;
    };
    struct made {
        std::string name;
        ops::operation operation;
        std::vector<source> inputs{};
        bool fused_away = false;
    };
    std::vector<made> all;
    std::vector<std::size_t> place(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
        place[g.order[i]] = i;
        all.push_back({.name = g.names[i], .operation = g.operations[i]});
        for (auto const& e : g.in(i)) all.back().inputs.push_back({e.producer, e.slot});
    }
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
    graph::operator_graph out;
    std::vector<std::size_t> numbers(g.size());
    for (auto const n : g.order) {
        auto& op = all[n];
        if (op.fused_away) continue;
        std::vector<graph::tensor_ref> inputs;
        for (auto const& from : op.inputs) inputs.push_back({numbers[from.op], from.slot});
        numbers[n] = out.insert(std::move(op.name), std::move(op.operation), inputs).op;
    }
    return out;
}

} // namespace parsearch::profiler
