#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include <parsearch/core/error.hpp>

#include "profiler/launch_cost.hpp"
#include "elements.cuh"

namespace parsearch::profiler {

namespace {

// ---- filling

template <class T> __global__ void fill_kernel(T* to, content c, std::int64_t elements, std::int64_t bound, std::uint64_t seed) {
    for (std::int64_t i = first_item(); i < elements; i += step()) {
        auto const at = static_cast<std::uint64_t>(i);
        T v{};
        if (c == content::random) {
            if constexpr (std::is_integral_v<T>) v = static_cast<T>(64 * random_value(seed, at, 6));
            else v = narrowed<T>(random_value(seed, at, element<T>::bits));
        } else if (c == content::positive) {
            v = narrowed<T>(random_positive(seed, at, element<T>::bits));
        } else if (c == content::indices) {
            if constexpr (std::is_integral_v<T>) v = static_cast<T>(random_index(seed, at, bound));
        } else if (c == content::constant) {
            v = narrowed<T>(static_cast<float>(bound));
            if constexpr (std::is_integral_v<T>) v = static_cast<T>(bound);
        }
        to[i] = v;
    }
}

// ---- streaming

struct stream_set {
    stream_array of[max_streams];
};

/// `G` elements from `at` on, whatever their type, as numbers to add; one load where they lie together, at an even place.
template <class A, int G> __device__ void load_group(stream_array const& s, std::int64_t at, std::int64_t longest, A (&sum)[G]) {
    auto const add = [&](auto type) {
        using T = decltype(type);
        auto const* const base = static_cast<T const*>(s.base);
        if (together(at, G, s.elements, longest)) {
            auto const p = *reinterpret_cast<pack<T, G> const*>(base + wrapped(at, s.elements));
#pragma unroll
            for (int j = 0; j < G; ++j) sum[j] += widened<A>(p.of[j]);
        } else {
            for (int j = 0; j < G; ++j)
                if (at + j < longest) sum[j] += widened<A>(base[wrapped(at + j, s.elements)]);
        }
    };
    switch (s.type) {
    case dtype::f64: return add(double{});
    case dtype::f32:
    case dtype::tf32: return add(float{});
    case dtype::f16: return add(__half{});
    case dtype::bf16: return add(__nv_bfloat16{});
    case dtype::i64: return add(std::int64_t{});
    case dtype::i32: return add(std::int32_t{});
    case dtype::i8: return add(std::int8_t{});
    }
}
template <class A, int G> __device__ void store_group(stream_array const& s, std::int64_t at, A const (&v)[G]) {
    auto const put = [&](auto type) {
        using T = decltype(type);
        auto* const base = static_cast<T*>(s.base);
        if (together(at, G, s.elements, s.elements)) {
            pack<T, G> p;
#pragma unroll
            for (int j = 0; j < G; ++j) p.of[j] = narrowed<T>(v[j]);
            *reinterpret_cast<pack<T, G>*>(base + at) = p;
        } else {
            for (int j = 0; j < G; ++j)
                if (at + j < s.elements) base[at + j] = narrowed<T>(v[j]);
        }
    };
    switch (s.type) {
    case dtype::f64: return put(double{});
    case dtype::f32:
    case dtype::tf32: return put(float{});
    case dtype::f16: return put(__half{});
    case dtype::bf16: return put(__nv_bfloat16{});
    case dtype::i64: return put(std::int64_t{});
    case dtype::i32: return put(std::int32_t{});
    case dtype::i8: return put(std::int8_t{});
    }
}
template <class A> __device__ A stepped(A v, std::int64_t fmas) {
    for (std::int64_t k = 0; k < fmas; ++k) v = v * static_cast<A>(0.5) + static_cast<A>(0.25);
    return v;
}

/// Any types and lengths. A thread takes `G` elements at a time.
template <class A, int G>
__global__ void stream_kernel(stream_set reads, int read_count, stream_set writes, int write_count, std::int64_t longest, std::int64_t fmas,
                              double* sink) {
    std::int64_t const groups = (longest + G - 1) / G;
    for (std::int64_t g = first_item(); g < groups; g += step()) {
        A v[G];
        for (int j = 0; j < G; ++j) v[j] = static_cast<A>(read_count == 0 ? 1 : 0);
        for (int r = 0; r < read_count; ++r) load_group<A, G>(reads.of[r], g * G, longest, v);
        for (int j = 0; j < G; ++j) v[j] = stepped(v[j], fmas);
        for (int w = 0; w < write_count; ++w) store_group<A, G>(writes.of[w], g * G, v);
        if (write_count == 0) { // a value that never comes keeps the reads alive
            A total{};
            for (int j = 0; j < G; ++j) total += v[j];
            if (total == static_cast<A>(-1e30)) *sink = static_cast<double>(total);
        }
    }
}

/// Arrays of one type and one length that 16 bytes divide: the loads of all reads go out together.
template <class T, int R> struct even_reads {
    T const* of[R];
};
template <class T, int R>
__global__ void even_stream_kernel(even_reads<T, R> reads, stream_set writes, int write_count, std::int64_t groups, std::int64_t fmas) {
    using A = typename element<T>::sum;
    constexpr int G = 16 / static_cast<int>(sizeof(T));
    using wide = pack<T, G>;
    for (std::int64_t g = first_item(); g < groups; g += step()) {
        wide in[R];
#pragma unroll
        for (int r = 0; r < R; ++r) in[r] = reinterpret_cast<wide const*>(reads.of[r])[g];
        wide out;
#pragma unroll
        for (int j = 0; j < G; ++j) {
            A v{};
#pragma unroll
            for (int r = 0; r < R; ++r) v += widened<A>(in[r].of[j]);
            out.of[j] = narrowed<T>(stepped(v, fmas));
        }
        for (int w = 0; w < write_count; ++w) reinterpret_cast<wide*>(writes.of[w].base)[g] = out;
    }
}

template <class T, int R>
void launch_even(cudaStream_t stream, std::span<stream_array const> reads, stream_set const& writes, int write_count, std::int64_t elements,
                 std::int64_t fmas, int multiprocessors) {
    std::int64_t const groups = elements / (16 / static_cast<std::int64_t>(sizeof(T)));
    even_reads<T, R> in{};
    for (int r = 0; r < R; ++r) in.of[r] = static_cast<T const*>(reads[static_cast<std::size_t>(r)].base);
    even_stream_kernel<T, R><<<blocks_for(groups, multiprocessors), block_threads, 0, stream>>>(in, writes, write_count, groups, fmas);
}

// ---- reduction

/// Sums of rows: `row_threads` threads share one, and add up their sums in shared memory.
template <class T, class Out> __global__ void row_sums(T const* x, Out* y, reduction_shape r) {
    using A = typename element<T>::sum;
    __shared__ A sums[block_threads];
    int const lane = static_cast<int>(threadIdx.x) % r.row_threads;
    int const row_in_block = static_cast<int>(threadIdx.x) / r.row_threads, rows_of_block = block_threads / r.row_threads;
    std::int64_t const rows = r.outer * r.splits;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * rows_of_block; first < rows;
         first += static_cast<std::int64_t>(gridDim.x) * rows_of_block) {
        std::int64_t const row = first + row_in_block;
        A sum{};
        if (row < rows) {
            std::int64_t const o = row / r.splits;
            slice const part = slice_of(r.summed, r.splits, row % r.splits);
#pragma unroll 4
            for (std::int64_t s = part.begin + lane; s < part.end; s += r.row_threads) sum += widened<A>(x[reduction_source(r, o, s, 0)]);
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = r.row_threads / 2; half > 0; half /= 2) {
            if (lane < half) sums[threadIdx.x] += sums[threadIdx.x + static_cast<unsigned>(half)];
            __syncthreads();
        }
        if (lane == 0 && row < rows) y[row] = narrowed<Out>(sums[threadIdx.x]);
        __syncthreads(); // the next round writes what this one has read
    }
}
/// Sums over an axis that is not the last: a thread for each element of the result, or of a part of it.
template <class T, class Out> __global__ void column_sums(T const* x, Out* y, reduction_shape r) {
    using A = typename element<T>::sum;
    std::int64_t const items = r.outer * r.splits * r.inner;
    for (std::int64_t item = first_item(); item < items; item += step()) {
        std::int64_t const i = item % r.inner, row = item / r.inner;
        slice const part = slice_of(r.summed, r.splits, row % r.splits);
        A sum{};
#pragma unroll 4
        for (std::int64_t s = part.begin; s < part.end; ++s) sum += widened<A>(x[reduction_source(r, row / r.splits, s, i)]);
        y[item] = narrowed<Out>(sum);
    }
}
/// y[outer, inner] from the sums of parts[outer, splits, inner].
template <class T> __global__ void sum_parts(typename element<T>::sum const* parts, T* y, reduction_shape r) {
    using A = typename element<T>::sum;
    for (std::int64_t item = first_item(); item < r.outer * r.inner; item += step()) {
        A sum{};
        for (std::int64_t s = 0; s < r.splits; ++s) sum += parts[(item / r.inner * r.splits + s) * r.inner + item % r.inner];
        y[item] = narrowed<T>(sum);
    }
}

// ---- permutation

template <class U, class Index> __global__ void permute_elements(permutation_plan p, U const* x, U* y, std::int64_t elements) {
    for (std::int64_t i = first_item(); i < elements; i += step()) y[i] = x[permutation_source<Index>(p, static_cast<Index>(i))];
}
/// Tiles of the turned axis and the last one: read along the turned axis, written along the last. 32 x 8 threads.
template <class U> __global__ void permute_tiles(permutation_plan p, U const* x, U* y, std::int64_t tiles) {
    __shared__ U moved[tile][tile + 1];
    int const column = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
    std::int64_t const along_last = p.source[p.rank - 1], along_turned = p.target[p.turned]; // both others are 1
    for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        tile_place const at = place_of_tile(p, t);
        for (int last = row; last < at.last; last += tile_rows)
            if (column < at.turned) moved[last][column] = x[at.source + last * along_last + column];
        __syncthreads();
        for (int turned = row; turned < at.turned; turned += tile_rows)
            if (column < at.last) y[at.target + turned * along_turned + column] = moved[column][turned];
        __syncthreads();
    }
}

// ---- lookup

template <class T, int G>
__global__ void lookup_forward(lookup l, T const* table, std::int32_t const* indices, T* y, std::int64_t groups_of_row, std::int64_t items) {
    using A = typename element<T>::sum;
    using wide = pack<T, G>;
    for (std::int64_t item = first_item(); item < items; item += step()) {
        std::int64_t const row = item / groups_of_row, at = item % groups_of_row * G;
        A sum[G] = {};
        for (std::int64_t b = 0; b < l.bag; ++b) {
            std::int64_t const from = indices[row * l.bag + b];
            wide const v = *reinterpret_cast<wide const*>(table + from * l.width + at);
#pragma unroll
            for (int j = 0; j < G; ++j) sum[j] += widened<A>(v.of[j]);
        }
        wide out;
#pragma unroll
        for (int j = 0; j < G; ++j) out.of[j] = narrowed<T>(sum[j]);
        *reinterpret_cast<wide*>(y + row * l.width + at) = out;
    }
}

template <class T> __device__ void add_to(T* to, T v) { atomicAdd(to, v); }
/// Two elements of 16 bits at once, where the width is even.
__device__ void add_pair(__half* to, __half a, __half b) { atomicAdd(reinterpret_cast<__half2*>(to), __halves2half2(a, b)); }
__device__ void add_pair(__nv_bfloat16* to, __nv_bfloat16 a, __nv_bfloat16 b) {
    atomicAdd(reinterpret_cast<__nv_bfloat162*>(to), __halves2bfloat162(a, b));
}

template <class T, bool Pairs> __global__ void lookup_backward(lookup l, T* gradient, std::int32_t const* indices, T const* dy, std::int64_t items) {
    constexpr int each = Pairs ? 2 : 1;
    std::int64_t const of_row = l.width / each;
    for (std::int64_t item = first_item(); item < items; item += step()) {
        std::int64_t const number = item / of_row, at = item % of_row * each;
        T* const to = gradient + static_cast<std::int64_t>(indices[number]) * l.width + at;
        T const* const from = dy + number / l.bag * l.width + at;
        if constexpr (Pairs) add_pair(to, from[0], from[1]);
        else add_to(to, from[0]);
    }
}

// ---- pooling

template <class T> __global__ void pool_forward(pool_shape p, bool last, T const* x, T* y, std::int64_t items) {
    float const count = static_cast<float>(p.rows.window * p.columns.window);
    for (std::int64_t item = first_item(); item < items; item += step()) {
        pixel at = pixel_at(item, p.channels, p.rows.results, p.columns.results, last);
        slice const rows = window_at(p.rows, at.y);
        slice const columns = window_at(p.columns, at.x);
        float sum = 0, most = -INFINITY;
        for (at.y = rows.begin; at.y < rows.end; ++at.y)
            for (at.x = columns.begin; at.x < columns.end; ++at.x) {
                auto const v = widened<float>(x[place_of(at, p.channels, p.rows.size, p.columns.size, last)]);
                sum += v;
                most = v > most ? v : most;
            }
        y[item] = narrowed<T>(p.average ? sum / count : most);
    }
}
template <class T> __global__ void pool_backward(pool_shape p, bool last, T const* x, T const* y, T const* dy, T* dx, std::int64_t items) {
    auto const reader = [](T const* from) { return [from](std::int64_t i) { return widened<float>(from[i]); }; };
    for (std::int64_t item = first_item(); item < items; item += step())
        dx[item] = narrowed<T>(pool_gradient(p, last, item, reader(x), reader(y), reader(dy)));
}

// ---- epilogue of a product

template <class A> __device__ A activated(A v, activation then) {
    if (then == activation::relu) return v > A{} ? v : A{};
    if (then == activation::gelu) return A(0.5) * v * (A(1) + tanh(A(0.7978845608028654) * (v + A(0.044715) * v * v * v))); // sqrt(2 / pi)
    return v;
}
template <class T> __global__ void epilogue_kernel(activation then, T* c, T const* bias, T* sum, std::int64_t elements, std::int64_t columns) {
    using A = typename element<T>::sum;
    for (std::int64_t i = first_item(); i < elements; i += step()) {
        A v = widened<A>(c[i]);
        if (bias != nullptr) v += widened<A>(bias[i % columns]);
        if (sum != nullptr) sum[i] = narrowed<T>(v);
        c[i] = narrowed<T>(activated(v, then));
    }
}

// ---- optimizer, mask

/// Four elements are a group; those of one set come after those of the sets before.
struct adam_sets {
    adam_arrays of[most_adam_sets];
    std::int64_t begin[most_adam_sets + 1]; // the first group of each, and the end
};
static_assert(sizeof(adam_sets) <= 4000);
__global__ void adam_kernel(adam_sets const __grid_constant__ sets, int count, std::int64_t fmas) {
    std::int64_t const groups = sets.begin[count];
    for (std::int64_t i = first_item(); i < groups; i += step()) {
        int const n = piece_of(sets.begin, count, i);
        adam_arrays const& a = sets.of[n];
        std::int64_t const g = i - sets.begin[n];
        float4 p = reinterpret_cast<float4*>(a.parameter)[g], m = reinterpret_cast<float4*>(a.first)[g], v = reinterpret_cast<float4*>(a.second)[g];
        float4 const d = reinterpret_cast<float4 const*>(a.gradient)[g];
        auto const update = [&](float& w, float& mean, float& square, float slope) {
            mean = 0.9F * mean + 0.1F * slope;
            square = 0.999F * square + 0.001F * slope * slope;
            w -= 1e-3F * stepped(mean, fmas) * rsqrtf(square + 1e-16F);
        };
        update(p.x, m.x, v.x, d.x);
        update(p.y, m.y, v.y, d.y);
        update(p.z, m.z, v.z, d.z);
        update(p.w, m.w, v.w, d.w);
        reinterpret_cast<float4*>(a.parameter)[g] = p;
        reinterpret_cast<float4*>(a.first)[g] = m;
        reinterpret_cast<float4*>(a.second)[g] = v;
    }
}

template <class T> __global__ void causal_mask_kernel(T* x, std::int64_t elements, std::int64_t queries, std::int64_t keys, float never) {
    for (std::int64_t i = first_item(); i < elements; i += step())
        if (i % keys > i / keys % queries) x[i] = narrowed<T>(never);
}

__device__ std::uint64_t nanoseconds() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
__global__ void delay_kernel(std::uint64_t span) {
    for (std::uint64_t const begin = nanoseconds(); nanoseconds() - begin < span;) {
    }
}

} // namespace

void fill(cudaStream_t stream, void* to, content c, dtype type, std::int64_t elements, std::int64_t bound, std::uint64_t seed, int multiprocessors,
          std::string_view what) {
    if (elements == 0 || c == content::opaque) return;
    with_type(type, [&](auto t) {
        using T = decltype(t);
        fill_kernel<T><<<blocks_for(elements, multiprocessors), block_threads, 0, stream>>>(static_cast<T*>(to), c, elements, bound, seed);
    });
    check_launch("fill", what);
}

std::int64_t fmas_of(streaming const& s) noexcept {
    std::int64_t const sums = std::max<std::int64_t>(0, static_cast<std::int64_t>(s.reads.size()) - 1);
    return std::max<std::int64_t>(0, (s.flops - sums) / 2);
}

void run_streaming(cudaStream_t stream, std::span<stream_array const> reads, std::span<stream_array const> writes, std::int64_t fmas, double* sink,
                   int multiprocessors, std::string_view what) {
    if (reads.size() > max_streams || writes.size() > max_streams)
        throw launch_failure(text(what, ": ", std::max(reads.size(), writes.size()), " arrays, of at most ", max_streams));
    stream_set in{}, out{};
    std::copy(reads.begin(), reads.end(), in.of);
    std::copy(writes.begin(), writes.end(), out.of);
    std::int64_t longest = 0;
    byte_count widest = 1;
    bool even = true;
    auto const look = [&](stream_array const& a) {
        even = even && (longest == 0 || a.elements == longest) && stored(a.type) == stored((reads.empty() ? writes : reads).front().type);
        longest = std::max(longest, a.elements);
        widest = std::max<byte_count>(widest, ops::size_of(a.type));
    };
    for (auto const& a : reads) look(a);
    for (auto const& a : writes) look(a);
    if (longest == 0) return;
    int const read_count = static_cast<int>(reads.size()), write_count = static_cast<int>(writes.size());
    even = even && read_count >= 1 && read_count <= 4 && write_count >= 1 && longest * ops::size_of(reads.front().type) % 16 == 0;
    bool done = false;
    if (even)
        with_type(reads.front().type, [&](auto t) {
            using T = decltype(t);
            if constexpr (!std::is_integral_v<T>) {
                done = true;
                switch (read_count) {
                case 1: return launch_even<T, 1>(stream, reads, out, write_count, longest, fmas, multiprocessors);
                case 2: return launch_even<T, 2>(stream, reads, out, write_count, longest, fmas, multiprocessors);
                case 3: return launch_even<T, 3>(stream, reads, out, write_count, longest, fmas, multiprocessors);
                default: return launch_even<T, 4>(stream, reads, out, write_count, longest, fmas, multiprocessors);
                }
            }
        });
    if (!done) {
        auto const go = [&](auto group, auto sum) {
            constexpr int G = decltype(group)::value;
            using A = decltype(sum);
            stream_kernel<A, G><<<blocks_for((longest + G - 1) / G, multiprocessors), block_threads, 0, stream>>>(in, read_count, out, write_count,
                                                                                                                  longest, fmas, sink);
        };
        if (widest == 8) go(std::integral_constant<int, 2>{}, double{});
        else if (widest == 4) go(std::integral_constant<int, 4>{}, float{});
        else go(std::integral_constant<int, 8>{}, float{});
    }
    check_launch("streaming", what);
}

std::size_t reduction_workspace(reduction_shape const& r, dtype type) noexcept {
    if (r.splits == 1) return 0;
    return static_cast<std::size_t>(r.outer * r.splits * r.inner) * (ops::size_of(type) == 8 ? 8 : 4);
}

void run_reduction(cudaStream_t stream, reduction_shape const& r, dtype type, void const* x, void* y, void* workspace, int multiprocessors,
                   std::string_view what) {
    with_type(type, [&](auto t) {
        using T = decltype(t);
        using A = typename element<T>::sum;
        auto const go = [&]<class Out>(Out* to) {
            if (r.inner == 1)
                row_sums<T, Out>
                    <<<blocks_for(r.outer * r.splits * r.row_threads, multiprocessors), block_threads, 0, stream>>>(static_cast<T const*>(x), to, r);
            else
                column_sums<T, Out>
                    <<<blocks_for(r.outer * r.splits * r.inner, multiprocessors), block_threads, 0, stream>>>(static_cast<T const*>(x), to, r);
        };
        if (r.splits == 1) return go(static_cast<T*>(y));
        go(static_cast<A*>(workspace));
        sum_parts<T>
            <<<blocks_for(r.outer * r.inner, multiprocessors), block_threads, 0, stream>>>(static_cast<A const*>(workspace), static_cast<T*>(y), r);
    });
    check_launch("reduction", what);
}

permutation_plan plan_of(permutation const& p, std::string_view what) {
    std::size_t const n = p.extents.size();
    std::vector<bool> seen(n, false);
    bool valid = p.order.size() == n && n <= max_axes;
    for (std::uint32_t const a : p.order) {
        valid = valid && a < n && !seen[a];
        if (valid) seen[a] = true;
    }
    for (std::int64_t const e : p.extents) valid = valid && e >= 1;
    if (!valid) throw launch_failure(text(what, ": not a permutation of at most ", max_axes, " axes"));
    std::vector<std::int64_t> stride(n, 1); // of the input
    for (std::size_t i = n; i-- > 1;) stride[i - 1] = stride[i] * p.extents[i];
    permutation_plan r;
    for (std::uint32_t const a : p.order) {
        if (p.extents[a] == 1) continue;
        int const last = r.rank - 1;
        if (last >= 0 && r.source[last] == stride[a] * p.extents[a]) { // follows the axis before it in the input too
            r.extent[last] *= p.extents[a];
            r.source[last] = stride[a];
        } else {
            r.extent[r.rank] = p.extents[a];
            r.source[r.rank++] = stride[a];
        }
    }
    if (r.rank == 0) {
        r.rank = 1;
        r.extent[0] = r.source[0] = 1;
    }
    std::int64_t step_of_output = 1;
    for (int i = r.rank - 1; i >= 0; --i) {
        r.target[i] = step_of_output;
        step_of_output *= r.extent[i];
    }
    for (int i = 0; i + 1 < r.rank; ++i)
        if (r.source[i] == 1) r.turned = i;
    return r;
}

std::size_t widen(permutation_plan& p, std::size_t element_bytes) noexcept {
    if (p.turned >= 0) return element_bytes;
    auto const even = [&] {
        for (int i = 0; i + 1 < p.rank; ++i)
            if (p.source[i] % 2 != 0 || p.target[i] % 2 != 0) return false;
        return p.extent[p.rank - 1] % 2 == 0;
    };
    while (element_bytes < 16 && even()) {
        for (int i = 0; i + 1 < p.rank; ++i) {
            p.source[i] /= 2;
            p.target[i] /= 2;
        }
        p.extent[p.rank - 1] /= 2;
        element_bytes *= 2;
    }
    return element_bytes;
}

void run_permutation(cudaStream_t stream, permutation_plan const& p, std::size_t element_bytes, void const* x, void* y, int multiprocessors,
                     std::string_view what) {
    auto const go = [&](auto unit) {
        using U = decltype(unit);
        auto const* const from = static_cast<U const*>(x);
        auto* const to = static_cast<U*>(y);
        if (p.turned >= 0) {
            auto const blocks = static_cast<unsigned>(std::min<std::int64_t>(p.tiles(), std::int64_t{8} * multiprocessors));
            permute_tiles<U><<<blocks, dim3(tile, tile_rows), 0, stream>>>(p, from, to, p.tiles());
            return;
        }
        std::int64_t const n = p.elements();
        int const blocks = blocks_for(n, multiprocessors);
        if (n < std::int64_t{1} << 31) permute_elements<U, std::uint32_t><<<blocks, block_threads, 0, stream>>>(p, from, to, n);
        else permute_elements<U, std::uint64_t><<<blocks, block_threads, 0, stream>>>(p, from, to, n);
    };
    switch (element_bytes) {
    case 1: go(std::uint8_t{}); break;
    case 2: go(std::uint16_t{}); break;
    case 4: go(std::uint32_t{}); break;
    case 8: go(std::uint64_t{}); break;
    default: go(uint4{}); break;
    }
    check_launch("permutation", what);
}

void run_lookup(cudaStream_t stream, lookup const& l, void* table, std::int32_t const* indices, void* y, int multiprocessors, std::string_view what) {
    bool floating = false;
    with_type(l.type, [&](auto t) {
        using T = decltype(t);
        if constexpr (!std::is_integral_v<T>) {
            floating = true;
            constexpr int G = 16 / static_cast<int>(sizeof(T));
            auto* const rows = static_cast<T*>(table);
            auto* const results = static_cast<T*>(y);
            if (!l.backward) {
                std::int64_t const each = l.width % G == 0 ? G : 1, items = l.lookups / l.bag * (l.width / each);
                int const blocks = blocks_for(items, multiprocessors);
                if (each == G) lookup_forward<T, G><<<blocks, block_threads, 0, stream>>>(l, rows, indices, results, l.width / each, items);
                else lookup_forward<T, 1><<<blocks, block_threads, 0, stream>>>(l, rows, indices, results, l.width, items);
                return;
            }
            if constexpr (sizeof(T) == 2)
                if (l.width % 2 == 0) {
                    std::int64_t const items = l.lookups * (l.width / 2);
                    lookup_backward<T, true><<<blocks_for(items, multiprocessors), block_threads, 0, stream>>>(l, rows, indices, results, items);
                    return;
                }
            std::int64_t const items = l.lookups * l.width;
            lookup_backward<T, false><<<blocks_for(items, multiprocessors), block_threads, 0, stream>>>(l, rows, indices, results, items);
        }
    });
    if (!floating) throw launch_failure(text(what, ": tables of ", ops::name_of(l.type), " are not looked up"));
    check_launch("lookup", what);
}

void run_epilogue(cudaStream_t stream, activation then, dtype type, void* c, void const* bias, void* sum, std::int64_t rows, std::int64_t columns,
                  int multiprocessors, std::string_view what) {
    with_type(type, [&](auto t) {
        using T = decltype(t);
        if constexpr (!std::is_integral_v<T>)
            epilogue_kernel<T><<<blocks_for(rows * columns, multiprocessors), block_threads, 0, stream>>>(
                then, static_cast<T*>(c), static_cast<T const*>(bias), static_cast<T*>(sum), rows * columns, columns);
    });
    check_launch("epilogue", what);
}

std::int64_t elements_of(updated_weights const& w) noexcept { return (w.bytes + 27) / 28; }
std::int64_t fmas_of(optimizer_update const& o) noexcept {
    std::int64_t elements = 0;
    for (updated_weights const& w : o.sets) elements += elements_of(w);
    return std::max<std::int64_t>(0, (sum_of(o).flops / std::max<std::int64_t>(1, elements) - 12) / 2); // Adam's step is about 12
}

void run_optimizer_update(cudaStream_t stream, std::span<adam_arrays const> sets, std::int64_t fmas, int multiprocessors, std::string_view what) {
    for (; !sets.empty(); sets = sets.subspan(std::min<std::size_t>(sets.size(), most_adam_sets))) {
        adam_sets some{};
        int count = 0;
        for (adam_arrays const& a : sets.first(std::min<std::size_t>(sets.size(), most_adam_sets))) {
            some.of[count] = a;
            some.begin[count + 1] = some.begin[count] + (a.elements + 3) / 4;
            ++count;
        }
        if (some.begin[count] == 0) continue;
        adam_kernel<<<blocks_for(some.begin[count], multiprocessors), block_threads, 0, stream>>>(some, count, fmas);
        check_launch("optimizer_update", what);
    }
}

void run_pooling(cudaStream_t stream, pooling const& p, bool channels_last, void const* x, void* y, void const* dy, void* dx, int multiprocessors,
                 std::string_view what) {
    auto const go = [&](auto t) {
        using T = decltype(t);
        std::int64_t const maps = p.n * p.channels, inputs = maps * p.size[0] * p.size[1], results = maps * p.result[0] * p.result[1];
        auto const* const from = static_cast<T const*>(x);
        auto const axis = [&](std::size_t i) { return pool_axis{p.size[i], p.window[i], p.stride[i], p.padding[i], p.result[i]}; };
        pool_shape const shape{p.average, p.channels, axis(0), axis(1)};
        if (p.backward)
            pool_backward<T><<<blocks_for(inputs, multiprocessors), block_threads, 0, stream>>>(
                shape, channels_last, from, static_cast<T const*>(y), static_cast<T const*>(dy), static_cast<T*>(dx), inputs);
        else
            pool_forward<T>
                <<<blocks_for(results, multiprocessors), block_threads, 0, stream>>>(shape, channels_last, from, static_cast<T*>(y), results);
    };
    switch (p.type) {
    case dtype::bf16: go(__nv_bfloat16{}); break;
    case dtype::f16: go(__half{}); break;
    case dtype::f32:
    case dtype::tf32: go(float{}); break;
    default: throw launch_failure(text(what, ": not pooled"));
    }
    check_launch("pooling", what);
}

void run_delay(cudaStream_t stream, double seconds, std::string_view what) {
    delay_kernel<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9));
    check_launch("delay", what);
}

void run_causal_mask(cudaStream_t stream, void* x, dtype type, std::int64_t rows, std::int64_t queries, std::int64_t keys, int multiprocessors,
                     std::string_view what) {
    with_type(type, [&](auto t) {
        using T = decltype(t);
        if constexpr (!std::is_integral_v<T>)
            causal_mask_kernel<T><<<blocks_for(rows * keys, multiprocessors), block_threads, 0, stream>>>(
                static_cast<T*>(x), rows * keys, queries, keys, -std::numeric_limits<float>::infinity());
    });
    check_launch("causal_mask", what);
}

} // namespace parsearch::profiler
