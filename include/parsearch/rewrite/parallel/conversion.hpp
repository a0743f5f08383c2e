#pragma once
/// Operator graphs with strategies as parallel computation graphs, and back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::rewrite {

/// A parallel graph, and the node that each operator of the graph it was made from has become.
struct lifted_graph {
    parallel_graph graph;
    std::vector<std::uint32_t> node;
};

/// `g` with operator i, but for dims of copies and partial sums, split by `splits[i]` (those of graph inputs are ignored), and between operators what
/// reshards their tensors. Every weight is a node, one for all that share it: its name is the parameter's, else the operator's with the weight's
/// behind a dot, with a number behind where it is taken. Results are the tensors that nobody reads, in one micro-batch. Throws `invalid_input` where
/// a split leaves no equal blocks of an output, or a graph input has several outputs. Complexity: O((V + E) V).
[[nodiscard]] inline lifted_graph lift(graph::dense_graph const& g, std::span<operator_split const> splits) {
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

/// `g` with every operator in one task.
[[nodiscard]] inline lifted_graph lift(graph::dense_graph const& g) {
    std::vector<operator_split> splits;
    for (auto const& op : g.operations) splits.push_back(unsplit(ops::without_replicas(op)));
    return lift(g, splits);
}

/// `g` split as strategy `s` says; on which devices is forgotten. Where there are several `micro_batches`, `s` is of one of them, as a pipeline's is:
/// operators with samples run in as many, others once for all. Throws as above, and `invalid_input` where an operator can not be divided, or
/// operators read fewer copies than there are, or partial sums in shares that are not equal: that no resharding says.
template <Strategy<space::configuration> S>
[[nodiscard]] lifted_graph lift(graph::dense_graph const& g, S const& s, std::uint32_t micro_batches = 1) {
    if constexpr (requires { s.size(); })
        if (s.size() != g.size()) throw invalid_input("a strategy of ", s.size(), " operators for a graph of ", g.size(), ": must be as many");
    if (micro_batches < 1 || micro_batches > max_parts)
        throw invalid_input(micro_batches, " micro-batches of a parallel graph: must be from 1 to ", max_parts);
    std::vector<operator_split> splits;
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        auto const& c = configuration_of(s, i);
        auto& split = splits.emplace_back();
        for (std::uint32_t d = 0; d < c.rank; ++d)
            if (op.dims[d].kind == ops::dim_kind::copies) split.copies = c.degree[d];
            else if (op.dims[d].kind == ops::dim_kind::sums) split.sums = c.degree[d];
            else split.degree.push_back(c.degree[d]);
        for (std::size_t n = 0; split.sums > 1 && n < op.inputs.size(); ++n) split.summed |= std::uint64_t{op.inputs[n].summed} << n;
        if (ops::sample_dim(op)) split.micro_batches = static_cast<std::int32_t>(micro_batches);
    }
    return lift(g, splits);
}

/// An operator graph without resharding, and the strategy that takes its place: operator i was node `node[i]`. The graph does all samples, the
/// strategy is of one of `micro_batches`: a `pipeline::pipeline_simulator` of a problem of the graph takes both, with stages.
struct lowered_graph {
    graph::dense_graph graph;
    std::vector<std::uint32_t> node;
    space::flat_strategy strategy;
    std::uint32_t micro_batches = 1;
};

/// In how many micro-batches the operators of `g` that have samples run. Throws `invalid_input` naming two that run in different numbers: no
/// simulator takes these. Complexity: O(V).
[[nodiscard]] inline std::uint32_t micro_batches_of(parallel_graph const& g) {
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

/// The operators of `g` with their splits as a strategy, each on devices 0, 1, ..., those that talk most on neighbours. Throws `invalid_input` where
/// operators run in different numbers of micro-batches, and as `graph::read_graph` does.
[[nodiscard]] inline lowered_graph lower(parallel_graph const& g) {
    auto reading = graph::read_graph(g);
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
