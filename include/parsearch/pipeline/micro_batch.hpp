#pragma once
/// Micro-batches: an operator graph that does an n-th of the samples.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::pipeline {

/// What one of `replicas` does of each of `micro_batches` micro-batches of `samples`, which it divides among `groups` groups of its devices: where
/// these have different numbers of samples, as if all had the most.
[[nodiscard]] inline ops::batch_part part_of_replica(std::int64_t samples, std::int64_t micro_batches, std::int64_t replicas,
                                                     std::int64_t groups) noexcept {
    if (samples % (replicas * micro_batches * groups) == 0) return {.n = replicas * micro_batches};
    auto const all = samples / micro_batches;
    return {.n = samples, .taken = std::min(all, ops::largest_part(all, replicas * groups) * groups)};
}

/// Into how many micro-batches the samples of `g` can be divided: its divisors. 1 where no operator has samples.
[[nodiscard]] inline std::int64_t samples_of(graph::dense_graph const& g) {
    std::int64_t common = 0;
    for (auto const& op : g.operations)
        if (auto const k = ops::sample_dim(op)) common = std::gcd(common, op.dims[*k].extent);
    return common > 0 ? common : 1;
}

/// The graph that does a part of the batch of `g`: what `g` would be with so many samples, numbered as `g`. Throws `invalid_input` as
/// above, and where `part.n` does not divide `samples_of(g)`, or an operator reads all samples of a tensor at once. Any graph is one micro-batch.
/// Complexity: linear.
[[nodiscard]] inline graph::dense_graph micro_batch(graph::dense_graph const& g, ops::batch_part part) {
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
/// One of `n` micro-batches.
[[nodiscard]] inline graph::dense_graph micro_batch(graph::dense_graph const& g, std::int64_t n) { return micro_batch(g, ops::batch_part{.n = n}); }

/// Into how many micro-batches `g` can be divided: `samples_of(g)`, or 1 where `micro_batch` refuses the graph.
[[nodiscard]] inline std::int64_t divisible_samples(graph::dense_graph const& g) {
    auto const samples = samples_of(g);
    try {
        if (samples > 1) (void)micro_batch(g, samples);
    } catch (invalid_input const&) {
        return 1;
    }
    return samples;
}

} // namespace parsearch::pipeline
