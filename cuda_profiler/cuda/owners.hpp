#pragma once
/// Owners of what CUDA and its libraries hand out.

#include <cstddef>
#include <utility>

#include "check.hpp"

namespace parsearch::profiler {

/// A handle that `Destroy` ends.
template <class Handle, auto Destroy> class owned {
  public:
    owned() = default;
    explicit owned(Handle h) noexcept : raw_(h) {}
    owned(owned&& o) noexcept : raw_(std::exchange(o.raw_, Handle{})) {}
    owned& operator=(owned&& o) noexcept {
        std::swap(raw_, o.raw_);
        return *this;
    }
    ~owned() {
        if (raw_ != Handle{}) (void)Destroy(raw_);
    }
    [[nodiscard]] Handle get() const noexcept { return raw_; }
    /// Where a function that creates one writes it.
    [[nodiscard]] Handle* out() noexcept { return &raw_; }

  private:
    Handle raw_{};
};

using stream_owner = owned<cudaStream_t, &cudaStreamDestroy>;
using event_owner = owned<cudaEvent_t, &cudaEventDestroy>;
using graph_owner = owned<cudaGraph_t, &cudaGraphDestroy>;
using executable_owner = owned<cudaGraphExec_t, &cudaGraphExecDestroy>;
using cudnn_owner = owned<cudnnHandle_t, &cudnnDestroy>;
using cublas_owner = owned<cublasLtHandle_t, &cublasLtDestroy>;

/// Memory of the current device.
class device_memory {
  public:
    device_memory() = default;
    device_memory(std::size_t bytes, std::string_view what) : bytes_(bytes) {
        if (bytes > 0) check(cudaMalloc(memory_.out(), bytes), "cudaMalloc", what);
    }
    [[nodiscard]] void* get() const noexcept { return memory_.get(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  private:
    owned<void*, &cudaFree> memory_{};
    std::size_t bytes_ = 0;
};

/// Memory of the host that a device can copy from and to by itself.
class pinned_memory {
  public:
    pinned_memory(std::size_t bytes, std::string_view what) { check(cudaMallocHost(memory_.out(), bytes), "cudaMallocHost", what); }
    [[nodiscard]] void* get() const noexcept { return memory_.get(); }

  private:
    owned<void*, &cudaFreeHost> memory_{};
};

} // namespace parsearch::profiler
