#pragma once
// The memory that a strategy needs, without simulating it.

#include <cstdint>

#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/memory/strategy_memory.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::vector<memory_use> memory_by_device(graph::dense_graph const& g, std::vector<sharing_class> const& classes, std::size_t devices,
                                                          simulation_options const& options, std::span<space::configuration const> s) {
    std::vector<shard_memory> shards;
    std::vector<std::vector<std::uint32_t>> places(g.size());
    for (std::size_t op = 0; op < g.size(); ++op) {
        shards.push_back(memory_of(g.operations[op], s[op].degrees()));
        for (std::int64_t n = 0, count = s[op].shards(); n < count; ++n) places[op].push_back(static_cast<std::uint32_t>(s[op].device(n)));
    }
    struct synchronised {
        sync_plan sync;
    };
    std::vector<synchronised> plans;
    auto const place = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return places[op]; };
    for (auto const& members : classes)
        plans.push_back({plan_sync(
            g, members, options, [&](std::uint32_t op) { return s[op].degrees(); }, place)});
    std::vector<memory_use> out;
    memory_account(g, devices)
        .add_up(
            options, plans, [&](std::size_t op) -> shard_memory const& { return shards[op]; }, place, out);
    return out;
}

PARSEARCH_INLINE byte_count least_memory(graph::dense_graph const& g, std::vector<sharing_class> const& classes, simulation_options const& options) {
    std::vector<space::configuration> whole;
    for (auto const& op : g.operations) whole.push_back(space::whole(op));
    auto const use = memory_by_device(g, classes, 1, options, whole).front();
    return use.total() - use.buffers;
}

} // namespace parsearch::sim
