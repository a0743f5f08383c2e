#pragma once
// Operator graphs with strategies as parallel computation graphs, and back.

#include <algorithm>
#include <unordered_map>

#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/space/layout.hpp>

namespace parsearch::rewrite::detail {

/// A parallel graph whose operators are described one after another.
struct described_at_once {
    parallel_graph const& graph;
    std::vector<std::uint32_t> readers;

    [[nodiscard]] std::vector<std::uint32_t> operators() const { return graph.operators(); }
    [[nodiscard]] std::vector<tensor_ref> inputs(std::uint32_t n) const { return graph.inputs(n); }
    [[nodiscard]] node_description description(std::uint32_t n) const { return graph.description(n, readers); }
};

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE lifted_graph lift(graph::dense_graph const& g, std::span<operator_split const> splits) {
    if (splits.size() != g.size()) throw invalid_input(splits.size(), " splits of ", g.size(), " operators: must be one each");
    lifted_graph out{.graph = {}, .node = std::vector<std::uint32_t>(g.size())};
    std::unordered_map<std::string, tensor_ref> weights;
    for (auto const i : g.order) {
        auto op = ops::without_replicas(g.operations[i]);
        if (op.work == ops::work_class::source) {
            if (op.outputs.size() != 1)
                throw invalid_input("graph input '", g.names[i], "' has ", op.outputs.size(), " outputs: a parallel graph's have one");
            out.node[i] = out.graph.add_input(out.graph.unused_name(node_kind::input, g.names[i]), ops::tensor_of(op.outputs[0])).producer;
            continue;
        }
        std::vector<tensor_ref> operands;
        for (auto const& e : g.in(i)) operands.push_back({out.node[e.producer], e.slot});
        for (auto const& w : op.weights) {
            auto const known = w.parameter.empty() ? weights.end() : weights.find(w.parameter);
            if (known == weights.end()) {
                auto const name = w.parameter.empty() ? text(g.names[i], '.', w.name) : w.parameter;
                operands.push_back(out.graph.add_weight(out.graph.unused_name(node_kind::weight, name), ops::tensor_of(w), w.parameter));
                if (!w.parameter.empty()) weights.try_emplace(w.parameter, operands.back());
            } else {
                operands.push_back(known->second);
            }
        }
        for (std::size_t n = 0; n < operands.size(); ++n) operands[n] = out.graph.reshard_to(operands[n], operand_tensor(op, splits[i], n));
        for (auto& w : op.weights) w.parameter.clear(); // the weight's node says who shares it
        out.node[i] = out.graph.add_operator(g.names[i], std::move(op), std::move(operands), splits[i]);
    }
    std::vector<tensor_ref> results;
    for (std::uint32_t i = 0; i < g.size(); ++i)
        for (std::uint32_t slot = 0; slot < g.operations[i].outputs.size(); ++slot) {
            bool read = false;
            for (auto const e : g.out(i)) read = read || g.edges[e].slot == slot;
            if (read) continue;
            results.push_back({out.node[i], slot});
            auto const held = out.graph.tensor(results.back()); // not a reference: the graph grows
            if (held.micro_batches > 1) results.back() = out.graph.reshard(results.back(), resharding::batch, held.sample_axis, held.micro_batches);
        }
    out.graph.set_results(std::move(results));
    return out;
}

PARSEARCH_INLINE std::uint32_t micro_batches_of(parallel_graph const& g) {
    node_content const* first = nullptr;
    for (auto const n : g.operators()) {
        auto const& c = *g[n].content;
        if (c.kind != node_kind::compute || !ops::sample_dim(c.operation)) continue;
        if (!first) first = &c;
        if (c.split.micro_batches != first->split.micro_batches)
            throw invalid_input("operator '", c.name, "' of a parallel graph runs in ", c.split.micro_batches, " micro-batches, '", first->name,
                                "' in ", first->split.micro_batches, ": all that have samples must run in as many");
    }
    return first ? static_cast<std::uint32_t>(first->split.micro_batches) : 1;
}

PARSEARCH_INLINE graph::graph_reading<std::uint32_t> read_operators(parallel_graph const& g) {
    return graph::read_graph(detail::described_at_once{g, g.readers()});
}

PARSEARCH_INLINE lowered_graph lower(parallel_graph const& g) {
    auto reading = read_operators(g);
    lowered_graph out{.graph = std::move(reading.graph), .node = std::move(reading.handles), .strategy = {}, .micro_batches = micro_batches_of(g)};
    for (std::size_t i = 0; i < out.node.size(); ++i) {
        auto const& n = g[out.node[i]];
        auto const& op = out.graph.operations[i];
        auto c = space::whole(op);
        if (n->kind == node_kind::compute) {
            std::ranges::copy(n->split.degree, c.degree.begin());
            for (auto const k : {ops::dim_kind::copies, ops::dim_kind::sums})
                if (auto const d = ops::replica_dim(op, k)) c.degree[*d] = static_cast<std::int32_t>(op.dims[*d].extent);
            space::lay_out(c, space::inner_dims_first(op));
        }
        out.strategy.push_back(std::move(c));
    }
    return out;
}

} // namespace parsearch::rewrite
