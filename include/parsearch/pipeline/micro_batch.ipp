#pragma once
// Micro-batches: an operator graph that does an n-th of the samples.

#include <algorithm>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/micro_batch.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE ops::batch_part part_of_replica(std::int64_t samples, std::int64_t micro_batches, std::int64_t replicas,
                                                 std::int64_t groups) noexcept {
    if (samples % (replicas * micro_batches * groups) == 0) return {.n = replicas * micro_batches};
    auto const all = samples / micro_batches;
    return {.n = samples, .taken = std::min(all, ops::largest_part(all, replicas * groups) * groups)};
}

PARSEARCH_INLINE std::int64_t samples_of(graph::dense_graph const& g) {
    std::int64_t common = 0;
    for (auto const& op : g.operations)
        if (auto const k = ops::sample_dim(op)) common = std::gcd(common, op.dims[*k].extent);
    return common > 0 ? common : 1;
}

PARSEARCH_INLINE graph::dense_graph micro_batch(graph::dense_graph const& g, ops::batch_part part) {
    auto const n = part.n;
    graph::dense_graph out;
    out.names = g.names;
    out.edges = g.edges;
    out.first_in = g.first_in;
    for (std::size_t op = 0; op < g.size(); ++op) out.operations.push_back(ops::on_samples(g.operations[op], part, g.names[op]));
    // Graph inputs have no dims: what is read of them says which axis counts samples.
    if (auto const samples = samples_of(g); samples % n != 0)
        throw invalid_input("micro-batches: the graph has ", samples, " samples: ", n, " micro-batches must divide them");
    for (auto const& e : g.edges)
        if (g.operations[e.producer].work == ops::work_class::source) {
            auto const& before = g.operations[e.consumer].inputs[e.input].axes;
            auto const& after = out.operations[e.consumer].inputs[e.input].axes;
            auto& made = out.operations[e.producer].outputs[e.slot].axes;
            for (std::size_t a = 0; a < made.size(); ++a)
                if (after[a].extent != before[a].extent) made[a].extent = after[a].extent;
        }
    for (auto const& e : out.edges)
        if (auto const made = ops::tensor_of(out.operations[e.producer].outputs[e.slot]),
            read = ops::tensor_of(out.operations[e.consumer].inputs[e.input]);
            !(made == read))
            throw invalid_input("micro-batches: operator '", g.names[e.consumer], "' (", g.operations[e.consumer].kind, ") reads ",
                                ops::to_string(read), " of '", g.names[e.producer], "', which makes ", ops::to_string(made),
                                " in a micro-batch: the samples are along another axis for it, or it needs those of all micro-batches at once");
    return graph::read_graph(out).graph;
}

PARSEARCH_INLINE std::int64_t divisible_samples(graph::dense_graph const& g) {
    auto const samples = samples_of(g);
    try {
        if (samples > 1) (void)micro_batch(g, samples);
    } catch (invalid_input const&) {
        return 1;
    }
    return samples;
}

} // namespace parsearch::pipeline
