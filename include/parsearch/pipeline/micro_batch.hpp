#pragma once
/// Micro-batches: an operator graph that does an n-th of the samples.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::pipeline {

/// What one of `replicas` does of each of `micro_batches` micro-batches of `samples`, which it divides among `groups` groups of its devices: where
/// these have different numbers of samples, as if all had the most.
[[nodiscard]] ops::batch_part part_of_replica(std::int64_t samples, std::int64_t micro_batches, std::int64_t replicas, std::int64_t groups) noexcept;

/// Into how many micro-batches the samples of `g` can be divided: its divisors. 1 where no operator has samples.
[[nodiscard]] std::int64_t samples_of(graph::dense_graph const& g);

/// The graph that does a part of the batch of `g`: what `g` would be with so many samples, numbered as `g`. Throws `invalid_input` as
/// above, and where `part.n` does not divide `samples_of(g)`, or an operator reads all samples of a tensor at once. Any graph is one micro-batch.
/// Complexity: linear.
[[nodiscard]] graph::dense_graph micro_batch(graph::dense_graph const& g, ops::batch_part part);
/// One of `n` micro-batches.
[[nodiscard]] inline graph::dense_graph micro_batch(graph::dense_graph const& g, std::int64_t n) { return micro_batch(g, ops::batch_part{.n = n}); }

/// Into how many micro-batches `g` can be divided: `samples_of(g)`, or 1 where `micro_batch` refuses the graph.
[[nodiscard]] std::int64_t divisible_samples(graph::dense_graph const& g);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/micro_batch.ipp>
#endif
