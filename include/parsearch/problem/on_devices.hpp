#pragma once
/// A problem on some of its devices.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch {

/// `problem` on the devices with these numbers, ascending, which are numbered from 0 then; graph, oracle, options and ties stay. What
/// `make_problem` makes without the others, without reading graph and topology again. Throws `invalid_input` where there are none, one is none of
/// the problem's or not above that before it, and where constraints say which devices an operator may have, as these have other numbers now
/// (`problem.anywhere()` is without them). Complexity: O(devices^2 * length of a route), and that of the space.
[[nodiscard]] inline parallelization on_devices(parallelization const& problem, std::span<std::size_t const> devices) {
    auto const& w = *problem.workload();
    if (devices.empty()) throw invalid_input("on_devices: no devices: there must be one at least");
    if (problem.space().options().admits)
        throw invalid_input("on_devices: constraints of the problem say which devices operators may have, and these are numbered anew: must be "
                            "problem.anywhere(), or a problem made without the other devices");
    std::vector<bool> used(w.topology.size(), false);
    std::vector<std::uint32_t> numbers;
    for (std::size_t n = 0; n < devices.size(); ++n) {
        if (devices[n] >= used.size()) throw invalid_input("on_devices: device number ", devices[n], ": the problem has ", used.size());
        if (n > 0 && devices[n] <= devices[n - 1])
            throw invalid_input("on_devices: device number ", devices[n], " behind ", devices[n - 1], ": must be ascending");
        used[devices[n]] = true;
        numbers.push_back(static_cast<std::uint32_t>(devices[n]));
    }
    parallelization out(sim::make_workload(w.graph, topology::part_of(w.topology, used), cost::any_oracle(w.oracle, std::move(numbers)), w.options),
                        problem.space().options());
    out.tie(problem.ties());
    return out;
}
/// The same, with handles.
template <class Operator, class Device>
[[nodiscard]] parallelization_of<Operator, Device> on_devices(parallelization_of<Operator, Device> const& problem,
                                                              std::span<std::size_t const> devices) {
    auto out = on_devices(static_cast<parallelization const&>(problem), devices);
    std::vector<Operator> operators;
    for (std::size_t op = 0; op < problem.size(); ++op) operators.push_back(problem.handle(op));
    auto left = std::make_shared<std::vector<Device>>();
    for (auto const d : devices) left->push_back(problem.device(d));
    return {std::move(out), std::move(operators), std::move(left)};
}

/// A strategy of `on_devices(problem, devices)` as one of `problem`: each configuration lists its devices. Precondition: it names no device but these.
[[nodiscard]] inline space::flat_strategy with_devices(space::flat_strategy s, std::span<std::size_t const> devices) {
    for (auto& c : s) {
        std::vector<std::int32_t> listed;
        for (std::int64_t shard = 0; shard < c.shards(); ++shard)
            listed.push_back(static_cast<std::int32_t>(devices[static_cast<std::size_t>(c.device(shard))]));
        c.listed = std::move(listed);
        c.start = 0;
        c.stride = {};
    }
    return s;
}

} // namespace parsearch
