#pragma once
/// Loops over arrays in memory, in one thread, of the launches for which no library has a kernel.

#include <cstdint>
#include <span>

#include "profiler/launch.hpp"

namespace parsearch::profiler {

/// A stream of a launch, at its place in memory.
struct stream_array {
    void* base = nullptr;
    std::int64_t elements = 0;
    dtype type = dtype::f32; ///< f32, i8, i32 or i64
};

/// Each element of the `longest` array is the sum of those of `reads` (1 where there are none), changed by `fmas` multiply-adds, and written to all
/// `writes`; shorter arrays are read again from their beginning.
void run_streaming(std::span<stream_array const> reads, std::span<stream_array const> writes, std::int64_t longest, std::int64_t fmas);

/// y[outer, inner] sums x[outer, summed, inner].
void run_reduction(reduction const& r, float const* x, float* y);

/// See `lookup`: table[rows, width], or its gradient; y[lookups / bag, width], or its gradient.
void run_lookup(lookup const& l, float* table, std::int32_t const* indices, float* y);

/// Weights, gradients and, by the rule, first and second moments: null where it has none.
struct weights_at {
    float *weight = nullptr, *gradient = nullptr, *first = nullptr, *second = nullptr;
    std::int64_t elements = 0;
};
/// A step of SGD where there are no moments, with momentum where there is one, else of Adam (D. Kingma, J. Ba, ICLR 2015, algorithm 1, with the
/// corrections in the step).
void run_update(weights_at const& w);

} // namespace parsearch::profiler
