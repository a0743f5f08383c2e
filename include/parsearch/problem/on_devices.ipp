#pragma once
// A problem on some of its devices.

#include <parsearch/core/error.hpp>
#include <parsearch/problem/on_devices.hpp>

namespace parsearch {

PARSEARCH_INLINE parallelization on_devices(parallelization const& problem, std::span<std::size_t const> which) {
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

PARSEARCH_INLINE std::optional<parallelization> on_devices_if_allowed(parallelization const& problem, std::span<std::size_t const> which) {
    auto const& o = problem.space().options();
    if (!o.allows || o.admits) return on_devices(problem, which);
    try {
        return on_devices(problem, which);
    } catch (invalid_input const&) {
        return std::nullopt;
    }
}

PARSEARCH_INLINE space::flat_strategy with_devices(space::flat_strategy s, std::span<std::size_t const> which) {
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
