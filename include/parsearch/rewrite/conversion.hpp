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
#include <parsearch/ops/replicas.hpp>
#include <parsearch/rewrite/parallel_graph.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::rewrite {

/// A parallel graph, and the node that each operator of the graph it was made from has become.
struct lifted_graph {
    parallel_graph graph;
    std::vector<std::uint32_t> node;
};

/// `g` with operator i, but for dims of copies and partial sums, split by `splits[i]` (those of graph inputs are ignored), and between operators what reshards their tensors. Every weight is a
/// node, one for all that share it: its name is the parameter's, else the operator's with the weight's behind a dot, with a number behind where it is taken. Results are the tensors that nobody
/// reads. Throws `invalid_input` where a split leaves no equal blocks of an output, or a graph input has several outputs. Complexity: O((V + E) V).
[[nodiscard]] inline lifted_graph lift(graph::dense_graph const& g, std::span<operator_split const> splits) {
    if (splits.size() != g.size()) throw invalid_input(splits.size(), " splits of ", g.size(), " operators: must be one each");
    lifted_graph out{.graph = {}, .node = std::vector<std::uint32_t>(g.size())};
    std::unordered_map<std::string, tensor_ref> weights;
    for (auto const i : g.order) {
        auto op = ops::without_replicas(g.operations[i]);
        if (op.work == ops::work_class::source) {
            if (op.outputs.size() != 1) throw invalid_input("graph input '", g.names[i], "' has ", op.outputs.size(), " outputs: a parallel graph's have one");
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
            if (!read) results.push_back({out.node[i], slot});
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

/// `g` split as strategy `s` says; on which devices is forgotten. Throws as above, and where operators read fewer copies than there are, or partial sums in shares that are
/// not equal: that no resharding says.
template <Strategy<space::configuration> S> [[nodiscard]] lifted_graph lift(graph::dense_graph const& g, S const& s) {
    if constexpr (requires { s.size(); })
        if (s.size() != g.size()) throw invalid_input("a strategy of ", s.size(), " operators for a graph of ", g.size(), ": must be as many");
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
    }
    return lift(g, splits);
}

/// An operator graph without resharding, and the strategy that takes its place: operator i was node `node[i]`.
struct lowered_graph {
    graph::dense_graph graph;
    std::vector<std::uint32_t> node;
    space::flat_strategy strategy;
};

/// The operators of `g` with their splits as a strategy, each on devices 0, 1, ..., those that talk most on neighbours. Throws as `graph::read_graph` does.
[[nodiscard]] inline lowered_graph lower(parallel_graph const& g) {
    auto reading = graph::read_graph(g);
    lowered_graph out{.graph = std::move(reading.graph), .node = std::move(reading.handles), .strategy = {}};
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
