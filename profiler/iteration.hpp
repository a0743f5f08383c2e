#pragma once
/// One training iteration on one device, kernel after kernel.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <ranges>
#include <span>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>

#include "work_list.hpp"

namespace parsearch::profiler {

/// What one device runs in an iteration of graph `g` where every operator is whole on it: forward in topological order; where `simulation` trains,
/// backward in the opposite order, then an update for each set of parameters that operators share. Work that takes no time is left out.
/// `op` of the works points into `g`. These are the works of which the simulator asks an oracle for that strategy. Complexity: O(operators *
/// operands).
[[nodiscard]] inline std::vector<ops::shard_work> iteration_of(graph::dense_graph const& g, sim::simulation_options const& simulation) {
    std::array<std::int32_t, ops::max_dims> whole{};
    whole.fill(1);
    std::vector<ops::shard_work> works;
    auto const add = [&](ops::shard_work const& w) {
        auto const kind = w.op->work;
        if (kind != ops::work_class::view && kind != ops::work_class::source && (w.flops > 0 || w.bytes > 0)) works.push_back(w);
    };
    auto const degrees = [&](std::uint32_t op) { return std::span<std::int32_t const>(whole.data(), g.operations[op].dims.size()); };
    for (auto const op : g.order) add(ops::work_of(g.operations[op], degrees(op), ops::pass::forward));
    if (!simulation.training) return works;
    for (auto const op : g.order | std::views::reverse)
        if (g.trains[op]) add(ops::work_of(g.operations[op], degrees(op), ops::pass::backward, g.input_gradients(op)));
    std::map<std::uint32_t, std::vector<std::uint32_t>> classes;
    for (std::uint32_t op = 0; op < g.size(); ++op)
        if (!g.operations[op].weights.empty()) classes[g.sharing[op]].push_back(op);
    std::vector<std::uint32_t> const only{0};
    for (auto const& [root, members] : classes) {
        auto const plan =
            sim::plan_sync(g, members, simulation.gradients, degrees, [&](std::uint32_t) -> std::vector<std::uint32_t> const& { return only; });
        for (auto const& held : plan.held) add(sim::update_work(g.operations[root], held.elements, sim::update_traffic(held), simulation.optimizer));
    }
    return works;
}

} // namespace parsearch::profiler
