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

/// Bytes by which the device is exceeded that is exceeded most.
[[nodiscard]] inline byte_count bytes_over_capacity(std::span<memory_use const> use, std::span<device_description const> devices) noexcept {
    byte_count over = 0;
    for (std::size_t d = 0; d < use.size(); ++d) over = std::max(over, use[d].total() - devices[d].memory);
    return over;
}

/// What is added to a makespan where the memory of some of `devices` devices, of each replica, is exceeded, by at most `over` bytes: see
/// `memory_policy`. It counts as if each were exceeded by as much: a plan is no better for putting what does not fit onto few devices.
[[nodiscard]] inline picoseconds memory_cost(simulation_options const& o, byte_count over, std::size_t devices) noexcept {
    if (over == 0 || o.memory == memory_policy::ignore) return picoseconds::zero();
    if (o.memory == memory_policy::reject) return cost_traits<picoseconds>::infinity();
    return cost_traits<picoseconds>::raised(picoseconds::zero(),
                                            static_cast<double>(over) * static_cast<double>(devices * o.replicas) * o.memory_penalty);
}

/// The sum of a makespan and what its memory costs, at most infinity.
[[nodiscard]] inline picoseconds total_cost(picoseconds makespan, picoseconds memory) noexcept {
    constexpr auto infinity = cost_traits<picoseconds>::infinity();
    return memory.count() > infinity.count() - makespan.count() ? infinity : memory + makespan;
}

} // namespace parsearch::sim
