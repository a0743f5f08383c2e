#pragma once
/// The devices that CUDA has.

#include <memory>
#include <span>

#include "profiler/device.hpp"

namespace parsearch::profiler {

/// The devices of this host that CUDA sees; 0 without a driver.
[[nodiscard]] int cuda_device_count();

/// Device number `ordinal` as CUDA counts them. Throws `no_device` with one line.
[[nodiscard]] std::unique_ptr<device> open_cuda_device(int ordinal);

/// A group of two or more devices. Throws `no_device` where this program was built without NCCL or a device is not there.
[[nodiscard]] std::unique_ptr<device_group> open_cuda_group(std::span<int const> ordinals);

} // namespace parsearch::profiler
