#pragma once
// A problem on some of its devices.

#include <parsearch/core/error.hpp>
#include <parsearch/problem/on_devices.hpp>

namespace parsearch {

PARSEARCH_INLINE parallelization on_devices(parallelization const& problem, std::span<std::size_t const> which) {
    auto const& w = *problem.workload();
    if (which.empty()) throw invalid_input("on_devices: no devices: there must be one at least");
    std::vector<bool> used(w.topology.size(), false);
    std::vector<std::uint32_t> numbers;
    for (std::size_t n = 0; n < which.size(); ++n) {
        if (which[n] >= used.size()) throw invalid_input("on_devices: device number ", which[n], ": the problem has ", used.size());
        if (n > 0 && which[n] <= which[n - 1])
            throw invalid_input("on_devices: device number ", which[n], " behind ", which[n - 1], ": must be ascending");
        used[which[n]] = true;
        numbers.push_back(static_cast<std::uint32_t>(which[n]));
    }
    auto options = problem.space().options();
    if (options.admits)
        options.admits = [before = std::move(options.admits), numbers](std::string_view name, ops::operation const& op,
                                                                       space::configuration const& c) {
            for (std::int64_t n = 0; n < c.shards(); ++n)
                if (c.place(n) < 0 || std::cmp_greater_equal(c.place(n), numbers.size())) return false;
            return before(name, op, with_devices(c, numbers));
        };
    parallelization out(sim::make_balanced_workload(w.graph, topology::part_of(w.topology, used), cost::any_oracle(w.oracle, numbers), w.options),
                        options);
    out.tie(problem.ties());
    return out.until(problem.stop());
}

PARSEARCH_INLINE std::optional<parallelization> on_devices_if_allowed(parallelization const& problem, std::span<std::size_t const> which) {
    auto const& o = problem.space().options();
    if (!o.allows && !o.admits) return on_devices(problem, which);
    try {
        return on_devices(problem, which);
    } catch (invalid_input const&) {
        return std::nullopt;
    }
}

PARSEARCH_INLINE space::configuration with_devices(space::configuration c, std::span<std::uint32_t const> which) {
    std::vector<std::int32_t> listed;
    for (std::int64_t shard = 0; shard < c.shards(); ++shard)
        listed.push_back(static_cast<std::int32_t>(which[static_cast<std::size_t>(c.device(shard))]));
    c.listed = std::move(listed);
    c.start = 0;
    c.stride = {};
    return c;
}

PARSEARCH_INLINE space::flat_strategy with_devices(space::flat_strategy s, std::span<std::size_t const> which) {
    std::vector<std::uint32_t> const numbers(which.begin(), which.end());
    for (std::size_t op = 0; op < s.size(); ++op) {
        for (std::int64_t shard = 0; shard < s[op].shards(); ++shard)
            if (s[op].place(shard) < 0 || std::cmp_greater_equal(s[op].place(shard), which.size()))
                throw invalid_input("with_devices: operator number ", op, " has shard ", shard, " on device ", s[op].place(shard), ": there are ",
                                    which.size());
        s[op] = with_devices(std::move(s[op]), numbers);
    }
    return s;
}

} // namespace parsearch
