#pragma once
/// A lower bound for spaces of any size: the least work of all operators, spread evenly over the devices.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::sim {

/// No strategy of `space` has a smaller makespan, wherever its shards are: a device does one task at a time, and no operator is less work, forward
/// and backward over all shards, than in the combination of degrees in which it is least, on the kind of device that is fastest. Of weights, messages
/// and dependences it knows nothing. Complexity: O(combinations of degrees of all operators * kinds of devices) calls of the oracle. Throws what the
/// oracle throws.
[[nodiscard]] inline picoseconds work_bound(planner& p, space::strategy_space const& space) {
    auto const& w = p.input();
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    auto const times = [](std::int64_t n, std::int64_t t) { return t > most / n ? most : n * t; };
    std::vector<std::int64_t> forward, backward; // by kind of device
    std::int64_t sum = 0;
    for (std::uint32_t op = 0; op < w.graph.size(); ++op) {
        if (w.graph.operations[op].work == ops::work_class::source) continue;
        auto const& all = space.of(op);
        auto least = most;
        for (std::size_t split = 0; split < all.splits() && least > 0; ++split) {
            p.time_operator(op, all[all.placements_of(split).first], forward, backward);
            for (std::size_t kind = 0; kind < forward.size(); ++kind)
                least = std::min(least, times(all.shards_of(split), saturating_sum(forward[kind], backward[kind])));
        }
        sum = saturating_sum(sum, least);
    }
    return picoseconds{sum / static_cast<std::int64_t>(w.topology.size())};
}

} // namespace parsearch::sim
