#pragma once
/// What all of our own kernels have in common: element types, and the items that a thread takes.

#include <cstdint>
#include <string_view>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "profiler/launch.hpp"
#include "check.hpp"

namespace parsearch::profiler {

template <class T> struct element {
    using sum = float; // that in which they are added up
    static constexpr int bits = 24;
};
template <> struct element<double> {
    using sum = double;
    static constexpr int bits = 24;
};
template <> struct element<__half> {
    using sum = float;
    static constexpr int bits = 11;
};
template <> struct element<__nv_bfloat16> {
    using sum = float;
    static constexpr int bits = 8;
};
template <> struct element<std::int64_t> {
    using sum = std::int64_t;
    static constexpr int bits = 6;
};
template <> struct element<std::int32_t> {
    using sum = std::int32_t;
    static constexpr int bits = 6;
};
template <> struct element<std::int8_t> {
    using sum = std::int32_t;
    static constexpr int bits = 6;
};

template <class A, class T> __device__ A widened(T v) {
    if constexpr (std::is_same_v<T, __half>) return static_cast<A>(__half2float(v));
    else if constexpr (std::is_same_v<T, __nv_bfloat16>) return static_cast<A>(__bfloat162float(v));
    else return static_cast<A>(v);
}
template <class T, class A> __device__ T narrowed(A v) {
    if constexpr (std::is_same_v<T, __half>) return __float2half(static_cast<float>(v));
    else if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16(static_cast<float>(v));
    else return static_cast<T>(v);
}

/// `N` elements that are loaded and stored at once.
template <class T, int N> struct alignas(sizeof(T) * N) pack {
    T of[N];
};

/// Calls f with a value of the type that stores elements of type `t`.
template <class F> void with_type(dtype t, F f) {
    switch (t) {
    case dtype::f64: return f(double{});
    case dtype::f32:
    case dtype::tf32: return f(float{});
    case dtype::f16: return f(__half{});
    case dtype::bf16: return f(__nv_bfloat16{});
    case dtype::i64: return f(std::int64_t{});
    case dtype::i32: return f(std::int32_t{});
    case dtype::i8: return f(std::int8_t{});
    }
}
[[nodiscard]] inline dtype stored(dtype t) { return t == dtype::tf32 ? dtype::f32 : t; }

__device__ inline std::int64_t first_item() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t step() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

inline void check_launch(std::string_view kernel, std::string_view what) { check(cudaGetLastError(), kernel, what); }

} // namespace parsearch::profiler
