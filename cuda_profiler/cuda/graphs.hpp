#pragma once
/// The cuDNN graphs of the launches that have one: what is computed, in which layout, and which arrays are bound to which tensor. Making them
/// needs no GPU.

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/launch.hpp"
#include "graph.hpp"

namespace parsearch::profiler {

/// How a channelled array [n, channels, height, width] lies in memory.
enum class layout : std::uint8_t { nchw, nhwc };
[[nodiscard]] std::vector<std::int64_t> strides_of(std::span<std::int64_t const> extents, layout l);

/// A graph and its arrays in the order in which a runner holds them.
struct built_graph {
    cudnn_graph graph;
    std::vector<std::int64_t> tensors{}; ///< their numbers
};

/// `c` with neither negative padding nor rows or columns that no window reaches: what is cut is left out of the array x. Throws `launch_failure`
/// where `c.result` has more windows than the padded x holds.
[[nodiscard]] convolution normalized(convolution const& c);
[[nodiscard]] pooling normalized(pooling const& p);

/// x, w, y in `l`, of a normalized convolution.
[[nodiscard]] built_graph convolution_graph(convolution const& c, layout l);

/// Forward: x, scale, bias (not rms), y, mean (not rms), 1/deviation, and for batch the running mean and variance, before and after.
/// Backward: x, dy, scale, mean (not rms), 1/deviation, dx, dscale, dbias (not rms). Statistics, scale and bias are f32.
[[nodiscard]] built_graph normalization_graph(normalization const& n);

/// Forward: q, k, v, o, statistics. Backward: q, k, v, o, do, statistics, dq, dk, dv, and what the backward pass needs of memory: the sums of
/// do * o and dq in f32. q and its like are packed [batch, heads, sequence, size]; statistics f32 [batch, heads, queries, 1], log of the sum of
/// exponentials. Causal: key j is seen by query i where j <= i.
[[nodiscard]] built_graph attention_graph(attention const& a);

} // namespace parsearch::profiler
