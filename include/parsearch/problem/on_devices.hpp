#pragma once
/// A problem on some of its devices.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

/// `problem` on the devices with the numbers `which`, ascending, which are numbered from 0 then; graph, oracle, options and ties stay. What
/// `make_problem` makes without the others, without reading graph and topology again. Throws `invalid_input` where there are none, one is none of
/// the problem's or not above that before it, and where constraints say which devices an operator may have, as these have other numbers now
/// (`problem.anywhere()` is without them), or leave an operator nothing on so few. Complexity: O(devices^2 * length of a route), and that of the
/// space.
[[nodiscard]] inline parallelization on_devices(parallelization const& problem, std::span<std::size_t const> which) {
    auto const& w = *problem.workload();
    if (which.empty()) throw invalid_input("on_devices: no devices: there must be one at least");
    if (problem.space().options().admits)
        throw invalid_input("on_devices: constraints of the problem say which devices operators may have, and these are numbered anew: must be "
                            "problem.anywhere(), or a problem made without the other devices");
    std::vector<bool> used(w.topology.size(), false);
    std::vector<std::uint32_t> numbers;
    for (std::size_t n = 0; n < which.size(); ++n) {
        if (which[n] >= used.size()) throw invalid_input("on_devices: device number ", which[n], ": the problem has ", used.size());
        if (n > 0 && which[n] <= which[n - 1])
            throw invalid_input("on_devices: device number ", which[n], " behind ", which[n - 1], ": must be ascending");
        used[which[n]] = true;
        numbers.push_back(static_cast<std::uint32_t>(which[n]));
    }
    parallelization out(
        sim::make_balanced_workload(w.graph, topology::part_of(w.topology, used), cost::any_oracle(w.oracle, std::move(numbers)), w.options),
        problem.space().options());
    out.tie(problem.ties());
    return out.until(problem.stop());
}
/// The same, with handles.
template <class Operator, class Device>
[[nodiscard]] parallelization_of<Operator, Device> on_devices(parallelization_of<Operator, Device> const& problem,
                                                              std::span<std::size_t const> which) {
    auto out = on_devices(static_cast<parallelization const&>(problem), which);
    auto left = std::make_shared<std::vector<Device>>();
    for (auto const d : which) left->push_back(problem.device(d));
    return {std::move(out), problem.operator_handles(), std::move(left), problem.given_options()};
}
/// `on_devices(problem, which)`; nothing where constraints leave an operator nothing on so few. Throws on all else.
[[nodiscard]] inline std::optional<parallelization> on_devices_if_allowed(parallelization const& problem, std::span<std::size_t const> which) {
    auto const& o = problem.space().options();
    if (!o.allows || o.admits) return on_devices(problem, which);
    try {
        return on_devices(problem, which);
    } catch (invalid_input const&) {
        return std::nullopt;
    }
}

/// A strategy of `on_devices(problem, which)` as one of `problem`: each configuration lists its devices. Throws
/// `invalid_input` where a shard is on none of these.
[[nodiscard]] inline space::flat_strategy with_devices(space::flat_strategy s, std::span<std::size_t const> which) {
    for (std::size_t op = 0; op < s.size(); ++op) {
        auto& c = s[op];
        std::vector<std::int32_t> listed;
        for (std::int64_t shard = 0; shard < c.shards(); ++shard) {
            if (c.place(shard) < 0 || std::cmp_greater_equal(c.place(shard), which.size()))
                throw invalid_input("with_devices: operator number ", op, " has shard ", shard, " on device ", c.place(shard), ": there are ",
                                    which.size());
            listed.push_back(static_cast<std::int32_t>(which[static_cast<std::size_t>(c.device(shard))]));
        }
        c.listed = std::move(listed);
        c.start = 0;
        c.stride = {};
    }
    return s;
}

} // namespace parsearch
