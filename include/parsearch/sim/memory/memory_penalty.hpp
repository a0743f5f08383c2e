#pragma once
/// The penalty on strategies that need more memory than devices have.

#include <algorithm>
#include <cstddef>
#include <span>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/memory_use.hpp>

namespace parsearch::sim {

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
