#pragma once
/// What a device is asked to run: plain values, which say all that a library needs to know of a call and nothing of the library.
///
/// A kernel (`cost::kernel`: one shard, one pass) is lowered to a sequence of launches (`lower.hpp`), run in order and timed as one. Extents
/// are in elements. Everything here is host code: the work list, its sizes and its tests need no toolkit.

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include <parsearch/ops/operation.hpp>

namespace parsearch::profiler {

using ops::dtype;

/// What a product ends in. GELU is that by tanh, and writes what it is a function of beside: backward reads it.
enum class activation : std::uint8_t { none, relu, gelu };
[[nodiscard]] constexpr std::string_view name_of(activation a) noexcept {
    return a == activation::relu ? "relu" : a == activation::gelu ? "gelu" : "none";
}

/// c[batch, m, n] = then(a[batch, m, k] b[batch, k, n] (+ bias[n])), accumulated in f32 (f64 for f64).
struct matmul {
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    bool transpose_a = false; ///< a is stored [batch, k, m]
    bool transpose_b = false; ///< b is stored [batch, n, k]
    bool bias = false;
    activation then = activation::none;
    dtype type = dtype::f32;
    friend bool operator==(matmul const&, matmul const&) = default;
};

/// Which of its three products a convolution computes.
enum class convolution_pass : std::uint8_t { forward, data_gradient, filter_gradient };

/// Of x[n, groups * in, size...] with w[groups * out, in, kernel...], of one or two spatial axes (size 1 where there is one). Padding may
/// differ in front and behind; negative padding cuts.
struct convolution {
    convolution_pass pass = convolution_pass::forward;
    std::int64_t n = 1, groups = 1, in = 1, out = 1; ///< channels of one group
    std::array<std::int64_t, 2> size{1, 1}, kernel{1, 1}, stride{1, 1}, dilation{1, 1}, padding{0, 0}, padding_end{0, 0}, result{1, 1};
    dtype type = dtype::f32;
    friend bool operator==(convolution const&, convolution const&) = default;
};

/// Windows over x[n, channels, size...].
struct pooling {
    bool average = false;
    bool backward = false;
    std::int64_t n = 1, channels = 1;
    std::array<std::int64_t, 2> size{1, 1}, window{1, 1}, stride{1, 1}, padding{0, 0}, padding_end{0, 0}, result{1, 1};
    dtype type = dtype::f32;
    friend bool operator==(pooling const&, pooling const&) = default;
};

/// Over the columns of x[rows, columns].
struct softmax {
    bool backward = false;
    std::int64_t rows = 1, columns = 1;
    dtype type = dtype::f32;
    friend bool operator==(softmax const&, softmax const&) = default;
};

/// batch: statistics per channel of x[n, channels, inner]; layer and rms: per row of x[n, channels] (inner 1).
enum class normalization_kind : std::uint8_t { batch, layer, rms };
struct normalization {
    normalization_kind kind = normalization_kind::layer;
    bool backward = false;
    std::int64_t n = 1, channels = 1, inner = 1;
    dtype type = dtype::f32;
    /// Of rows. Forward: of x + residual, which is written too. Backward: another gradient of x is read and added to dx.
    bool sum = false;
    /// Of rows. Forward, with `sum`: x goes through dropout first, whose mask is written. Backward: what the mask leaves of dx is written too.
    bool dropout = false;
    friend bool operator==(normalization const&, normalization const&) = default;
};

/// A layer of recurrent units over x[samples, steps, features]. Backward: the gradients of the data, then of the weights.
enum class cell_kind : std::uint8_t { lstm, gru, rnn };
struct recurrent {
    cell_kind cell = cell_kind::lstm;
    bool backward = false;
    std::int64_t samples = 1, steps = 1, features = 1, hidden = 1;
    bool bias = true;
    dtype type = dtype::f32;
    friend bool operator==(recurrent const&, recurrent const&) = default;
};

/// softmax(q kT / sqrt(size)) v over q[batch, heads, queries, size], k[batch, kv_heads, keys, size], v[batch, kv_heads, keys, value_size].
struct attention {
    bool backward = false;
    bool causal = false;
    std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
    dtype type = dtype::f16;
    friend bool operator==(attention const&, attention const&) = default;
};

/// A stream of a `streaming` launch: so many elements, read or written once, in order.
struct stream {
    std::int64_t elements = 0;
    dtype type = dtype::f32;
    friend bool operator==(stream const&, stream const&) = default;
};
/// Arrays that a `streaming` launch reads at most, and that it writes at most.
inline constexpr std::size_t max_streams = 8;
/// Reads and writes whole arrays with some arithmetic for each element written (elementwise operators, copies, concatenations). An array shorter than
/// the longest is read again from its beginning (broadcast).
struct streaming {
    std::vector<stream> reads{}, writes{};
    std::int64_t flops = 1; ///< for each element of the longest array
    friend bool operator==(streaming const&, streaming const&) = default;
};

/// x[outer, summed, inner] -> y[outer, inner].
struct reduction {
    std::int64_t outer = 1, summed = 1, inner = 1;
    dtype type = dtype::f32;
    friend bool operator==(reduction const&, reduction const&) = default;
};

/// y[axes permuted] = x[axes]: output axis i is input axis `order[i]`.
struct permutation {
    std::vector<std::int64_t> extents{};
    std::vector<std::uint32_t> order{};
    dtype type = dtype::f32;
    friend bool operator==(permutation const&, permutation const&) = default;
};

/// Rows of a table[rows, width], by random indices: y[lookups / bag, width] sums bags of `bag` rows. Backward adds to the rows of
/// the table's gradient (atomically) what belongs to them.
struct lookup {
    bool backward = false;
    std::int64_t rows = 1, width = 1, lookups = 1, bag = 1;
    dtype type = dtype::f32;
    friend bool operator==(lookup const&, lookup const&) = default;
};

/// The weights that an optimizer changes at once: reads and writes `bytes` in all with `flops` in all.
struct updated_weights {
    std::int64_t flops = 0, bytes = 0;
    friend bool operator==(updated_weights const&, updated_weights const&) = default;
};
/// One step of an optimizer over several sets of weights, as frameworks run it over all of a device.
struct optimizer_update {
    std::vector<updated_weights> sets{};
    friend bool operator==(optimizer_update const&, optimizer_update const&) = default;
};

using launch = std::variant<matmul, convolution, pooling, softmax, normalization, recurrent, attention, streaming, reduction, permutation, lookup,
                            optimizer_update>;

} // namespace parsearch::profiler
