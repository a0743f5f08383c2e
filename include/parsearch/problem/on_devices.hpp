#pragma once
/// A problem on some of its devices.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch {

/// `problem` on the devices with the numbers `which`, ascending, which are numbered from 0 then; graph, oracle, options and ties stay. What
/// `make_problem` makes without the others, without reading graph and topology again. Constraints stay, those of devices by the numbers that these
/// had. Throws `invalid_input` where there are none, one is none of the problem's or not above that before it, and where constraints leave an
/// operator nothing on these. Complexity: O(devices^2 * length of a route), and that of the space.
[[nodiscard]] parallelization on_devices(parallelization const& problem, std::span<std::size_t const> which);
/// The same, with handles.
template <class Operator, class Device>
[[nodiscard]] parallelization_of<Operator, Device> on_devices(parallelization_of<Operator, Device> const& problem,
                                                              std::span<std::size_t const> which) {
    auto out = on_devices(static_cast<parallelization const&>(problem), which);
    auto left = std::make_shared<std::vector<Device>>();
    for (auto const d : which) left->push_back(problem.device(d));
    return {std::move(out), problem.operator_handles(), std::move(left), problem.given_options()};
}
/// `on_devices(problem, which)`; nothing where constraints leave an operator nothing on these. Throws on all else.
[[nodiscard]] std::optional<parallelization> on_devices_if_allowed(parallelization const& problem, std::span<std::size_t const> which);

/// A configuration of an operator of `on_devices(problem, which)`, all of whose devices are among these, as one of `problem`: it lists its devices.
[[nodiscard]] space::configuration with_devices(space::configuration c, std::span<std::uint32_t const> which);
/// A strategy of `on_devices(problem, which)` as one of `problem`: each configuration lists its devices. Throws
/// `invalid_input` where a shard is on none of these.
[[nodiscard]] space::flat_strategy with_devices(space::flat_strategy s, std::span<std::size_t const> which);

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/on_devices.ipp>
#endif
