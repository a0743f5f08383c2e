#pragma once
/// The memory that a strategy needs, without simulating it.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// By device, what `simulator::memory` answers after simulating `s`. Precondition: each configuration fits its operator (see `space::validate`).
/// `classes` are those of `g`. Complexity: O(shards of weights * log + edges * shards).
[[nodiscard]] std::vector<memory_use> memory_by_device(graph::dense_graph const& g, std::vector<sharing_class> const& classes, std::size_t devices,
                                                       simulation_options const& options, std::span<space::configuration const> s);

/// Bytes that any strategy of `g` needs at least, on all devices together: weights and what belongs to them, and activations, each once. Buffers are
/// left out, as splits make them smaller. `classes` are those of `g`. Complexity: as above, of a strategy without splits.
[[nodiscard]] byte_count least_memory(graph::dense_graph const& g, std::vector<sharing_class> const& classes, simulation_options const& options);

/// Bytes on the fullest device.
[[nodiscard]] inline byte_count most_memory(std::span<memory_use const> by_device) noexcept {
    byte_count most = 0;
    for (auto const& m : by_device) most = std::max(most, m.total());
    return most;
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/memory/strategy_memory.ipp>
#endif
