#include "check.hpp"

#include <array>

#include <parsearch/core/error.hpp>

namespace parsearch::profiler {

namespace detail {

void fail(std::string_view library, std::string_view call, std::string_view status, std::string_view detail, std::string_view what) {
    std::string message = text(what, ": ", library, ": ", call, " answers ", status);
    if (!detail.empty() && detail != status) message += text(" (", detail, ")");
    for (char& c : message)
        if (c == '\n') c = ' '; // `what()` is one line
    // An error of a launch sticks to the context, and every later call answers it again; any other is forgotten once it is read.
    (void)cudaGetLastError();
    cudaError_t const left = cudaDeviceSynchronize();
    bool const capturing = left >= cudaErrorStreamCaptureUnsupported && left <= cudaErrorStreamCaptureWrongThread; // says nothing of the device
    if (left != cudaSuccess && !capturing && left != cudaErrorNoDevice && left != cudaErrorInsufficientDriver && left != cudaErrorStubLibrary)
        throw device_failure(text(message, "; the device is lost: ", cudaGetErrorName(left)));
    throw launch_failure(message);
}

std::string cudnn_detail() {
    std::array<char, 512> message{};
    cudnnGetLastErrorString(message.data(), message.size());
    message.back() = '\0';
    return message.data();
}

} // namespace detail

std::string_view name_of(cublasStatus_t s) noexcept {
    switch (s) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
    }
    return "an unknown cublasStatus_t";
}

} // namespace parsearch::profiler
