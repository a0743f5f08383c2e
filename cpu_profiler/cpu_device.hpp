#pragma once
/// A core of a CPU: kernels of oneDNN, and loops of our own, in one thread.

#include <memory>

#include "cpu_profiler/ranks.hpp"
#include "profiler/device.hpp"

namespace parsearch::profiler {

/// The core of this process, number 0 of `all`. Throws `no_device` on another number.
[[nodiscard]] std::unique_ptr<device> open_cpu_device(int ordinal, ranks& all);

/// Bytes of the last cache that a core reaches. Virtual machines say how much all of their host has: no more than `largest_cache` is believed.
[[nodiscard]] std::size_t last_cache();
inline constexpr std::size_t largest_cache = std::size_t{32} << 20;

/// Bytes that can still be taken, by what the system says.
[[nodiscard]] std::size_t free_memory();

} // namespace parsearch::profiler
