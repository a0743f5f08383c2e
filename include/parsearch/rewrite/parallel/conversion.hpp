#pragma once
/// Operator graphs with strategies as parallel computation graphs, and back.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/kit/replicas.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::rewrite {

/// The operators of `g`, each with its node: as `graph::read_graph(g)`, which throws as this does, but in O((V + E) log V).
[[nodiscard]] graph::graph_reading<std::uint32_t> read_operators(parallel_graph const& g);

/// A parallel graph, and the node that each operator of the graph it was made from has become.
struct lifted_graph {
    parallel_graph graph;
    std::vector<std::uint32_t> node;
};

/// `g` with operator i, but for dims of copies and partial sums, split by `splits[i]` (those of graph inputs are ignored), and between operators what
/// reshards their tensors. Every weight is a node, one for all that share it: its name is the parameter's, else the operator's with the weight's
/// behind a dot, with a number behind where it is taken. Results are the tensors that nobody reads, in one micro-batch. Throws `invalid_input` where
/// a split leaves no equal blocks of an output, or a graph input has several outputs. Complexity: O((V + E) V).
[[nodiscard]] lifted_graph lift(graph::dense_graph const& g, std::span<operator_split const> splits);

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
[[nodiscard]] std::uint32_t micro_batches_of(parallel_graph const& g);

/// The operators of `g` with their splits as a strategy, each on devices 0, 1, ..., those that talk most on neighbours. Throws `invalid_input` where
/// operators run in different numbers of micro-batches, and as `graph::read_graph` does.
[[nodiscard]] lowered_graph lower(parallel_graph const& g);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/parallel/conversion.ipp>
#endif
