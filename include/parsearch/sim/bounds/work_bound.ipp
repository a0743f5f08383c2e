#pragma once
// A lower bound for spaces of any size: the least work of all operators, spread evenly over the devices.

#include <algorithm>
#include <limits>
#include <map>

#include <parsearch/sim/bounds/work_bound.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::int64_t work_of(planner& p, std::uint32_t op, space::configuration const& c) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> forward, backward; // by kind of device
    p.time_operator(op, c, forward, backward);
    auto least = most;
    for (std::size_t kind = 0; kind < forward.size(); ++kind) least = std::min(least, saturating_sum(forward[kind], backward[kind]));
    return least > most / c.shards() ? most : c.shards() * least;
}

PARSEARCH_INLINE std::vector<std::uint32_t> first_of_equal_work(graph::dense_graph const& g, space::strategy_space const& space) {
    std::vector<std::uint32_t> out;
    std::map<space::operator_space const*, std::vector<std::uint32_t>> before; // operators that differ, by their space
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto& others = before[&space.of(op)];
        auto const same = std::ranges::find_if(others, [&](auto other) {
            return g.trains[other] == g.trains[op] && g.input_gradients(other) == g.input_gradients(op) && g.operations[other] == g.operations[op];
        });
        out.push_back(same == others.end() ? op : *same);
        if (out.back() == op) others.push_back(op);
    }
    return out;
}

PARSEARCH_INLINE std::vector<std::int64_t> least_work(planner& p, space::strategy_space const& space) {
    auto const& g = p.input().graph;
    std::vector<std::int64_t> out(g.size(), 0);
    auto const first = first_of_equal_work(g, space);
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        if (first[op] != op) {
            out[op] = out[first[op]];
            continue;
        }
        auto const& all = space.of(op);
        out[op] = std::numeric_limits<std::int64_t>::max();
        for (std::size_t split = 0; split < all.splits() && out[op] > 0; ++split) {
            auto [at, end] = all.placements_of(split);
            if (!ops::cut_dim(g.operations[op], all.degrees_of(split))) end = at + 1; // all placements take as long
            for (; at < end; ++at) out[op] = std::min(out[op], work_of(p, op, all[at]));
        }
    }
    return out;
}

} // namespace parsearch::sim
