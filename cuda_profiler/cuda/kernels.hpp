#pragma once
/// Kernels of our own, for what no library has: launches of them, and the shapes that the host decides.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <cuda_runtime_api.h>

#include "profiler/launch.hpp"
#include "kernels_index.hpp"

namespace parsearch::profiler {

/// What an array holds before it is used.
enum class content : std::uint8_t {
    random,   ///< non-zero, in (-1, 1); integers: odd, in [-63, 63]
    positive, ///< in (1/2, 2)
    indices,  ///< i32 in [0, bound)
    constant, ///< i32, all `bound`
    zero,
    opaque ///< whatever a library writes there itself
};

/// Fills `elements` of `type` at `to`.
void fill(cudaStream_t stream, void* to, content c, dtype type, std::int64_t elements, std::int64_t bound, std::uint64_t seed, int multiprocessors,
          std::string_view what);

/// An array of a streaming launch.
struct stream_array {
    void* base = nullptr;
    std::int64_t elements = 0;
    dtype type = dtype::f32;
};
/// Every written element i is f(...f(sum of element i of all reads)), f(v) = v / 2 + 1 / 4, `fmas` times; 1 stands for the sum of nothing. `sink` is
/// one double that a launch without writes could write.
void run_streaming(cudaStream_t stream, std::span<stream_array const> reads, std::span<stream_array const> writes, std::int64_t fmas, double* sink,
                   int multiprocessors, std::string_view what);
/// What a product ends in where cuBLASLt has no such epilogue: of c[rows, columns], in place, then(c + bias). `bias` and `sum`, to which c + bias is
/// written, may be null.
void run_epilogue(cudaStream_t stream, activation then, dtype type, void* c, void const* bias, void* sum, std::int64_t rows, std::int64_t columns,
                  int multiprocessors, std::string_view what);
/// How many multiply-adds `s` asks for beside the sum of its reads.
[[nodiscard]] std::int64_t fmas_of(streaming const& s) noexcept;

/// Bytes of work space: sums of parts.
[[nodiscard]] std::size_t reduction_workspace(reduction_shape const& r, dtype type) noexcept;
void run_reduction(cudaStream_t stream, reduction_shape const& r, dtype type, void const* x, void* y, void* workspace, int multiprocessors,
                   std::string_view what);

/// Throws `launch_failure` where `order` is no permutation of the axes or there are too many of them.
[[nodiscard]] permutation_plan plan_of(permutation const& p, std::string_view what);
/// Widens the elements of a permutation that keeps its fastest axis, to 16 bytes at most; answers bytes of one element.
[[nodiscard]] std::size_t widen(permutation_plan& p, std::size_t element_bytes) noexcept;
void run_permutation(cudaStream_t stream, permutation_plan const& p, std::size_t element_bytes, void const* x, void* y, int multiprocessors,
                     std::string_view what);

/// `table` is that of the weights (forward) or of their gradient (backward); y[lookups / bag, width] is written or read.
void run_lookup(cudaStream_t stream, lookup const& l, void* table, std::int32_t const* indices, void* y, int multiprocessors, std::string_view what);

/// Elements of weights whose update moves `w.bytes`: a parameter and two moments are read and written, a gradient is read, 28 bytes for each.
[[nodiscard]] std::int64_t elements_of(updated_weights const& w) noexcept;
/// Arrays that one step of Adam changes and reads, padded to 16 bytes.
struct adam_arrays {
    float* parameter = nullptr;
    float* first = nullptr; ///< moments
    float* second = nullptr;
    float const* gradient = nullptr;
    std::int64_t elements = 0;
};
/// Sets of arrays that one kernel takes at most: they are its parameters, of at most 4 KiB.
inline constexpr int most_adam_sets = 64;
/// Adam's step (Kingma, Ba, "Adam: a method for stochastic optimization", 2015) without bias correction, and `fmas` more operations, over all sets:
/// one kernel for each `most_adam_sets` of them.
void run_optimizer_update(cudaStream_t stream, std::span<adam_arrays const> sets, std::int64_t fmas, int multiprocessors, std::string_view what);
/// For each element.
[[nodiscard]] std::int64_t fmas_of(optimizer_update const& o) noexcept;

/// Pooling, for the types that cuDNN does not pool. Averages count the padding. Of equal largest elements of a window the first takes the gradient.
/// Forward: y of x. Backward: dx of x, y, dy.
void run_pooling(cudaStream_t stream, pooling const& p, bool channels_last, void const* x, void* y, void const* dy, void* dx, int multiprocessors,
                 std::string_view what);

/// Softmax of rows in one kernel. Forward: `to` is y of x (may be x). Backward: `to` is dx of y, which is `x`, and dy. Throws `launch_failure` for
/// integers, as what follows.
void run_softmax(cudaStream_t stream, softmax const& s, void const* x, void const* dy, void* to, int multiprocessors, std::string_view what);

/// Arrays of layer and RMS normalization: x, y, dy, dx[n, channels]; mean (null: rms) and deviation (one over it) [n]; scale, bias (null: none) and
/// their gradients (dbias may be null) [channels]; with a sum residual, sum, dsum, with dropout mask (i8: 0 or 1), dropped[n, channels], null where
/// there is none. All that have channels alone or n alone are f32 (f64 for f64).
struct row_normalization_arrays {
    void const* x = nullptr;
    void const* scale = nullptr;
    void const* bias = nullptr;
    void* y = nullptr;
    void* mean = nullptr;
    void* deviation = nullptr;
    void const* dy = nullptr;
    void* dx = nullptr;
    void* dscale = nullptr;
    void* dbias = nullptr;
    void const* residual = nullptr;
    void* sum = nullptr;        ///< forward: x, or what dropout leaves of it, + residual
    void const* dsum = nullptr; ///< backward: a further gradient of x
    void* mask = nullptr;
    void* dropped = nullptr; ///< backward: dx through the mask
};
/// y, mean and deviation, sum and mask; epsilon 1e-5.
void run_row_normalization(cudaStream_t stream, normalization const& n, row_normalization_arrays const& a, int multiprocessors,
                           std::string_view what);
/// dx, dscale, dbias and dropped, of x, dy, scale, mean, deviation, dsum and mask.
void run_row_normalization_gradient(cudaStream_t stream, normalization const& n, row_normalization_arrays const& a, void* workspace,
                                    int multiprocessors, std::string_view what);
/// Bytes of its work space: sums of parts.
[[nodiscard]] std::size_t row_normalization_workspace(normalization const& n, int multiprocessors) noexcept;

/// One thread that waits for so many seconds of the device's clock: what is submitted meanwhile begins when it ends.
void run_delay(cudaStream_t stream, double seconds, std::string_view what);

/// x[rows, keys] is -infinity where the key comes after the row's query; a row's query is its number modulo `queries`.
void run_causal_mask(cudaStream_t stream, void* x, dtype type, std::int64_t rows, std::int64_t queries, std::int64_t keys, int multiprocessors,
                     std::string_view what);

} // namespace parsearch::profiler
