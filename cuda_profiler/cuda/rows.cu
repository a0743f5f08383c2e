/// Softmax and normalization of rows: one kernel for a row's pass over memory, as frameworks have them.

#include <algorithm>

#include <parsearch/core/error.hpp>

#include "elements.cuh"
#include "kernels.hpp"
#include "rows.hpp"

namespace parsearch::profiler {

namespace {

struct largest {
    template <class A> __device__ A operator()(A a, A b) const { return a > b ? a : b; }
};
struct added {
    template <class A> __device__ A operator()(A a, A b) const { return a + b; }
};
template <class A, class Op> __device__ A over_warp(A v, Op op) {
#pragma unroll
    for (int other = 16; other > 0; other /= 2) v = op(v, __shfl_xor_sync(0xffffffffU, v, other));
    return v;
}

/// A warp for each row.
struct warp_team {
    __device__ static std::int64_t first_row() { return first_item() / 32; }
    __device__ static std::int64_t row_step() { return step() / 32; }
    __device__ static int rank() { return static_cast<int>(threadIdx.x % 32); }
    __device__ static int size() { return 32; }
    template <class A> __device__ static A sum(A v) { return over_warp(v, added{}); }
    template <class A> __device__ static A most(A v) { return over_warp(v, largest{}); }
};
/// A block for each row.
struct block_team {
    __device__ static std::int64_t first_row() { return blockIdx.x; }
    __device__ static std::int64_t row_step() { return gridDim.x; }
    __device__ static int rank() { return static_cast<int>(threadIdx.x); }
    __device__ static int size() { return block_threads; }
    template <class A> __device__ static A sum(A v) { return over_block(v, added{}); }
    template <class A> __device__ static A most(A v) { return over_block(v, largest{}); }

  private:
    template <class A, class Op> __device__ static A over_block(A v, Op op) {
        constexpr int warps = block_threads / 32;
        __shared__ A parts[warps];
        v = over_warp(v, op);
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
        __syncthreads();
        v = parts[0];
#pragma unroll
        for (int w = 1; w < warps; ++w) v = op(v, parts[w]);
        __syncthreads(); // the next call writes what this one has read
        return v;
    }
};

/// `Each` elements of an array from `at` on, a multiple of `Each`, as one access.
template <int Each, class T, class A> __device__ void take(T const* from, std::int64_t at, A* v) {
    auto const p = *reinterpret_cast<pack<T, Each> const*>(from + at);
#pragma unroll
    for (int j = 0; j < Each; ++j) v[j] = widened<A>(p.of[j]);
}
template <int Each, class T, class A> __device__ void put(T* to, std::int64_t at, A const* v) {
    pack<T, Each> p;
#pragma unroll
    for (int j = 0; j < Each; ++j) p.of[j] = narrowed<T>(v[j]);
    *reinterpret_cast<pack<T, Each>*>(to + at) = p;
}

template <class T, int Each, class Team>
__global__ void __launch_bounds__(block_threads) softmax_rows(T const* x, T* y, std::int64_t rows, std::int64_t columns) {
    using A = typename element<T>::sum;
    for (std::int64_t row = Team::first_row(); row < rows; row += Team::row_step())
        softmax_row<A, Each>(
            Team{}, columns / Each, [&](std::int64_t g, A* v) { take<Each>(x, row * columns + g * Each, v); },
            [&](std::int64_t g, A const* v) { put<Each>(y, row * columns + g * Each, v); });
}
template <class T, int Each, class Team>
__global__ void __launch_bounds__(block_threads) softmax_gradient_rows(T const* y, T const* dy, T* dx, std::int64_t rows, std::int64_t columns) {
    using A = typename element<T>::sum;
    for (std::int64_t row = Team::first_row(); row < rows; row += Team::row_step())
        softmax_row_gradient<A, Each>(
            Team{}, columns / Each,
            [&](std::int64_t g, A* v) {
                take<Each>(y, row * columns + g * Each, v);
                take<Each>(dy, row * columns + g * Each, v + Each);
            },
            [&](std::int64_t g, A const* v) { put<Each>(dx, row * columns + g * Each, v); });
}

/// What is summed before a row is normalized. Kernels have it or not (`Sums`): it takes registers.
template <class T> struct summed_rows {
    T const* residual;
    T* sum;
    std::int8_t* mask; // null: no dropout
};
/// `v`, of x from `at` on, becomes what is normalized, as it is written: backward reads it so.
template <int Each, class T, class A> __device__ void add_residual(summed_rows<T> const& s, std::int64_t at, A* v) {
    if (s.mask != nullptr) {
        static_assert(8 % Each == 0); // one number for all
        std::uint64_t const number = dropout_number(at);
        A kept[Each];
#pragma unroll
        for (int j = 0; j < Each; ++j) {
            kept[j] = kept_by_dropout(number, at + j) ? 1 : 0;
            v[j] *= kept[j] * static_cast<A>(dropout_scale);
        }
        put<Each>(s.mask, at, kept);
    }
    A other[Each];
    take<Each>(s.residual, at, other);
#pragma unroll
    for (int j = 0; j < Each; ++j) v[j] = widened<A>(narrowed<T>(v[j] + other[j]));
    put<Each>(s.sum, at, v);
}
template <class T, int Each, class Team, bool Sums>
__global__ void __launch_bounds__(block_threads)
    normalize_rows(T const* x, summed_rows<T> summed, typename element<T>::sum const* scale, typename element<T>::sum const* bias, T* y,
                   typename element<T>::sum* mean, typename element<T>::sum* deviation, std::int64_t rows, std::int64_t columns, double epsilon) {
    using A = typename element<T>::sum;
    T const* const normalized = Sums ? summed.sum : x;
    for (std::int64_t row = Team::first_row(); row < rows; row += Team::row_step()) {
        auto const s = normalize_row<A, Each>(
            Team{}, columns, mean != nullptr, static_cast<A>(epsilon),
            [&](std::int64_t g, A* v) {
                take<Each>(x, row * columns + g * Each, v);
                if constexpr (Sums) add_residual<Each>(summed, row * columns + g * Each, v);
            },
            [&](std::int64_t g, A* v) { take<Each>(normalized, row * columns + g * Each, v); },
            [&](std::int64_t g, A const* v) {
                A out[Each];
#pragma unroll
                for (int j = 0; j < Each; ++j) out[j] = v[j] * scale[g * Each + j] + (bias != nullptr ? bias[g * Each + j] : 0);
                put<Each>(y, row * columns + g * Each, out);
            });
        if (Team::rank() != 0) continue;
        if (mean != nullptr) mean[row] = s.mean;
        deviation[row] = s.deviation;
    }
}
/// What the gradient of rows is summed with, and goes on through; null where there is none.
template <class T> struct summed_gradients {
    T const* dsum;
    std::int8_t const* mask;
    T* dropped;
};
/// With sums two blocks on a multiprocessor are asked for, as many as there are without.
template <class T, int Each, class Team, bool Sums>
__global__ void __launch_bounds__(block_threads, Each > 1 && Sums && sizeof(T) < sizeof(double) ? 2 : 0)
    normalize_gradient_rows(T const* x, T const* dy, summed_gradients<T> summed, typename element<T>::sum const* scale,
                            typename element<T>::sum const* mean, typename element<T>::sum const* deviation, T* dx, std::int64_t rows,
                            std::int64_t columns) {
    using A = typename element<T>::sum;
    for (std::int64_t row = Team::first_row(); row < rows; row += Team::row_step()) {
        A const middle = mean != nullptr ? mean[row] : 0, by = deviation[row];
        normalize_row_gradient<A, Each>(
            Team{}, columns, mean != nullptr, by,
            [&](std::int64_t g, A* v) {
                take<Each>(x, row * columns + g * Each, v);
                take<Each>(dy, row * columns + g * Each, v + Each);
#pragma unroll
                for (int j = 0; j < Each; ++j) {
                    v[j] = (v[j] - middle) * by;
                    v[Each + j] *= scale[g * Each + j];
                }
            },
            [&](std::int64_t g, A* v) {
                std::int64_t const at = row * columns + g * Each;
                if (Sums && summed.dsum != nullptr) {
                    A other[Each];
                    take<Each>(summed.dsum, at, other);
#pragma unroll
                    for (int j = 0; j < Each; ++j) v[j] += other[j];
                }
                put<Each>(dx, at, v);
                if (Sums && summed.mask != nullptr) {
                    A kept[Each];
                    take<Each>(summed.mask, at, kept);
#pragma unroll
                    for (int j = 0; j < Each; ++j) v[j] *= kept[j] * static_cast<A>(dropout_scale);
                    put<Each>(summed.dropped, at, v);
                }
            });
    }
}
/// The gradients of scale and bias over parts of the rows: parts[2][splits][columns].
template <class T>
__global__ void weight_gradient_parts(T const* x, T const* dy, typename element<T>::sum const* mean, typename element<T>::sum const* deviation,
                                      typename element<T>::sum* parts, reduction_shape r) {
    using A = typename element<T>::sum;
    std::int64_t const items = r.splits * r.inner;
    for (std::int64_t item = first_item(); item < items; item += step()) {
        slice const part = slice_of(r.summed, r.splits, item / r.inner);
        A of_scale = 0, of_bias = 0;
#pragma unroll 4
        for (std::int64_t row = part.begin; row < part.end; ++row) {
            std::int64_t const at = reduction_source(r, 0, row, item % r.inner);
            auto const d = widened<A>(dy[at]);
            of_scale += d * (widened<A>(x[at]) - (mean != nullptr ? mean[row] : 0)) * deviation[row];
            of_bias += d;
        }
        parts[item] = of_scale;
        parts[items + item] = of_bias;
    }
}
template <class A> __global__ void weight_gradients(A const* parts, A* dscale, A* dbias, reduction_shape r) {
    for (std::int64_t i = first_item(); i < r.inner; i += step()) {
        A of_scale = 0, of_bias = 0;
        for (std::int64_t s = 0; s < r.splits; ++s) {
            of_scale += parts[s * r.inner + i];
            of_bias += parts[(r.splits + s) * r.inner + i];
        }
        dscale[i] = of_scale;
        if (dbias != nullptr) dbias[i] = of_bias;
    }
}

/// Calls f(T, Each, Team, blocks) as values of which the types matter: the widest access that rows allow, and a team that keeps a row where one can.
template <class F> void with_row_form(dtype type, std::int64_t rows, std::int64_t columns, int multiprocessors, std::string_view what, F f) {
    bool floating = false;
    with_type(type, [&](auto t) {
        using T = decltype(t);
        if constexpr (!std::is_integral_v<T>) {
            floating = true;
            constexpr int widest = 16 / static_cast<int>(sizeof(T));
            auto const with_team = [&](auto each) {
                if (columns <= std::int64_t{32} * kept_elements) f(t, each, warp_team{}, blocks_for(rows * 32, multiprocessors));
                else f(t, each, block_team{}, static_cast<int>(std::min<std::int64_t>(rows, std::int64_t{8} * multiprocessors)));
            };
            if (columns % widest == 0) with_team(std::integral_constant<int, widest>{});
            else with_team(std::integral_constant<int, 1>{});
        }
    });
    if (!floating) throw launch_failure(text(what, ": rows of ", ops::name_of(type), " have none"));
}

} // namespace

void run_softmax(cudaStream_t stream, softmax const& s, void const* x, void const* dy, void* to, int multiprocessors, std::string_view what) {
    with_row_form(s.type, s.rows, s.columns, multiprocessors, what, [&](auto t, auto each, auto team, int blocks) {
        using T = decltype(t);
        using Team = decltype(team);
        auto const* const from = static_cast<T const*>(x);
        if (s.backward)
            softmax_gradient_rows<T, each(), Team>
                <<<blocks, block_threads, 0, stream>>>(from, static_cast<T const*>(dy), static_cast<T*>(to), s.rows, s.columns);
        else softmax_rows<T, each(), Team><<<blocks, block_threads, 0, stream>>>(from, static_cast<T*>(to), s.rows, s.columns);
    });
    check_launch("softmax", what);
}

void run_row_normalization(cudaStream_t stream, normalization const& n, row_normalization_arrays const& a, int multiprocessors,
                           std::string_view what) {
    with_row_form(n.type, n.n, n.channels, multiprocessors, what, [&](auto t, auto each, auto team, int blocks) {
        using T = decltype(t);
        using A = typename element<T>::sum;
        using Team = decltype(team);
        summed_rows<T> const summed{static_cast<T const*>(a.residual), static_cast<T*>(a.sum), static_cast<std::int8_t*>(a.mask)};
        auto const run = [&](auto sums) {
            normalize_rows<T, each(), Team, sums()><<<blocks, block_threads, 0, stream>>>(
                static_cast<T const*>(a.x), summed, static_cast<A const*>(a.scale), static_cast<A const*>(a.bias), static_cast<T*>(a.y),
                static_cast<A*>(a.mean), static_cast<A*>(a.deviation), n.n, n.channels, 1e-5);
        };
        if (a.residual != nullptr) run(std::true_type{});
        else run(std::false_type{});
    });
    check_launch("normalization", what);
}

std::size_t row_normalization_workspace(normalization const& n, int multiprocessors) noexcept {
    reduction_shape const r = shape_of_reduction(1, n.n, n.channels, multiprocessors);
    return static_cast<std::size_t>(2 * r.splits * n.channels) * (n.type == dtype::f64 ? 8 : 4);
}

void run_row_normalization_gradient(cudaStream_t stream, normalization const& n, row_normalization_arrays const& a, void* workspace,
                                    int multiprocessors, std::string_view what) {
    with_row_form(n.type, n.n, n.channels, multiprocessors, what, [&](auto t, auto each, auto team, int blocks) {
        using T = decltype(t);
        using A = typename element<T>::sum;
        using Team = decltype(team);
        auto const* const x = static_cast<T const*>(a.x);
        auto const* const dy = static_cast<T const*>(a.dy);
        auto const *const mean = static_cast<A const*>(a.mean), *const deviation = static_cast<A const*>(a.deviation);
        summed_gradients<T> const summed{static_cast<T const*>(a.dsum), static_cast<std::int8_t const*>(a.mask), static_cast<T*>(a.dropped)};
        auto const run = [&](auto sums) {
            normalize_gradient_rows<T, each(), Team, sums()><<<blocks, block_threads, 0, stream>>>(
                x, dy, summed, static_cast<A const*>(a.scale), mean, deviation, static_cast<T*>(a.dx), n.n, n.channels);
        };
        if (a.dsum != nullptr || a.mask != nullptr) run(std::true_type{});
        else run(std::false_type{});
    });
    with_type(n.type, [&](auto t) {
        using T = decltype(t);
        using A = typename element<T>::sum;
        if constexpr (!std::is_integral_v<T>) {
            reduction_shape const r = shape_of_reduction(1, n.n, n.channels, multiprocessors);
            auto* const parts = static_cast<A*>(workspace);
            weight_gradient_parts<T><<<blocks_for(r.splits * r.inner, multiprocessors), block_threads, 0, stream>>>(
                static_cast<T const*>(a.x), static_cast<T const*>(a.dy), static_cast<A const*>(a.mean), static_cast<A const*>(a.deviation), parts, r);
            weight_gradients<A>
                <<<blocks_for(r.inner, multiprocessors), block_threads, 0, stream>>>(parts, static_cast<A*>(a.dscale), static_cast<A*>(a.dbias), r);
        }
    });
    check_launch("normalization", what);
}

} // namespace parsearch::profiler
