#pragma once
/// Status of every call into CUDA and its libraries, checked: a failure is an exception that names the call, the status and what was being made.

#include <string_view>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "profiler/device.hpp"

namespace parsearch::profiler {

namespace detail {
/// Throws `device_failure` where the device answers nothing but errors any more, else `launch_failure`.
[[noreturn]] void fail(std::string_view library, std::string_view call, std::string_view status, std::string_view detail, std::string_view what);
/// What cuDNN says of its last error, beyond the status; empty where it says nothing.
[[nodiscard]] std::string cudnn_detail();
} // namespace detail

/// The name of a status ("CUBLAS_STATUS_NOT_SUPPORTED").
[[nodiscard]] std::string_view name_of(cublasStatus_t s) noexcept;

/// `call` is the function that answered `s`, `what` that which was being made or run ("matmul f16[64x128x32]").
inline void check(cudaError_t s, std::string_view call, std::string_view what) {
    if (s != cudaSuccess) [[unlikely]]
        detail::fail("CUDA", call, cudaGetErrorName(s), cudaGetErrorString(s), what);
}
inline void check(cudnnStatus_t s, std::string_view call, std::string_view what) {
    if (s != CUDNN_STATUS_SUCCESS) [[unlikely]]
        detail::fail("cuDNN", call, cudnnGetErrorString(s), detail::cudnn_detail(), what);
}
inline void check(cublasStatus_t s, std::string_view call, std::string_view what) {
    if (s != CUBLAS_STATUS_SUCCESS) [[unlikely]]
        detail::fail("cuBLASLt", call, name_of(s), {}, what);
}

} // namespace parsearch::profiler
