#pragma once
/// Memory of a device, and what it costs where there is less.

#include <algorithm>
#include <cstddef>
#include <span>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

namespace parsearch::sim {

/// Bytes on one device at the fullest moment of an iteration.
struct memory_use {
    byte_count weights = 0;
    byte_count gradients = 0;   ///< of the weights, in their type
    byte_count optimizer = 0;   ///< 4-byte state per parameter, and a 4-byte master copy of 16-bit weights
    byte_count activations = 0; ///< kept from forward until backward
    byte_count buffers = 0;     ///< largest inputs + outputs of an operator (and their gradients in backward)
    [[nodiscard]] byte_count total() const noexcept { return weights + gradients + optimizer + activations + buffers; }
};

/// Bytes by which devices are exceeded, in all.
[[nodiscard]] inline byte_count bytes_over_capacity(std::span<memory_use const> use, std::span<device_description const> devices) noexcept {
    byte_count over = 0;
    for (std::size_t d = 0; d < use.size(); ++d) over += std::max<byte_count>(0, use[d].total() - devices[d].memory);
    return over;
}

/// The cost of a makespan where memory is exceeded by `over` bytes in all: see `memory_policy`.
[[nodiscard]] inline picoseconds memory_cost(simulation_options const& o, byte_count over) noexcept {
    if (over == 0 || o.memory == memory_policy::ignore) return picoseconds::zero();
    if (o.memory == memory_policy::reject) return cost_traits<picoseconds>::infinity();
    return cost_traits<picoseconds>::raised(picoseconds::zero(), static_cast<double>(over) * o.memory_penalty);
}
/// The sum of a makespan and what its memory costs, at most infinity.
[[nodiscard]] inline picoseconds total_cost(picoseconds makespan, picoseconds memory) noexcept {
    constexpr auto infinity = cost_traits<picoseconds>::infinity();
    return memory.count() > infinity.count() - makespan.count() ? infinity : memory + makespan;
}

} // namespace parsearch::sim
