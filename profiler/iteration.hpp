#pragma once
/// One training iteration on one device, kernel after kernel, or on several that divide the samples.

#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

namespace parsearch::profiler {

/// What each device does in an iteration: `works` forward in topological order, then backward in the opposite order; the all-reduces of gradients,
/// one for each set of parameters that operators share; an update for each. `op` of the works points into the graph.
struct device_iteration {
    std::vector<ops::shard_work> works{};
    std::vector<byte_count> all_reduces{}; ///< bytes of gradients
    std::vector<ops::shard_work> updates{};
};

/// Of graph `g` on `devices` devices under data parallelism; whole on one. Where `simulation` does not train, forward alone. Work that takes no time
/// is left out. These are the works of which the simulator asks an oracle for that strategy. Throws `invalid_input` naming an operator that does work
/// and has not one shard on each device. Complexity: O(operators * operands * devices).
[[nodiscard]] inline device_iteration data_parallel_iteration(graph::dense_graph const& g, std::size_t devices,
                                                              sim::simulation_options const& simulation) {
    auto const strategy = space::data_parallel(g, devices);
    device_iteration made;
    auto const takes_time = [](ops::shard_work const& w) {
        return w.op->work != ops::work_class::view && w.op->work != ops::work_class::source && (w.flops > 0 || w.bytes > 0);
    };
    auto const add = [&](std::uint32_t op, ops::shard_work const& w) {
        if (!takes_time(w)) return;
        if (std::cmp_not_equal(strategy[op].shards(), devices))
            throw invalid_input("operator '", g.names[op], "' (", w.op->kind, ") has ", strategy[op].shards(), " shards by its samples: must have ",
                                devices, ", one for each device");
        made.works.push_back(w);
    };
    auto const degrees = [&](std::uint32_t op) { return strategy[op].degrees(); };
    for (auto const op : g.order) add(op, ops::work_of(g.operations[op], degrees(op), ops::pass::forward));
    if (!simulation.training) return made;
    for (auto const op : g.order | std::views::reverse)
        if (g.trains[op]) add(op, ops::work_of(g.operations[op], degrees(op), ops::pass::backward, g.input_gradients(op)));
    std::map<std::uint32_t, std::vector<std::uint32_t>> classes;
    for (std::uint32_t op = 0; op < g.size(); ++op)
        if (!g.operations[op].weights.empty()) classes[g.sharing[op]].push_back(op);
    auto const places = [&](std::uint32_t op) {
        std::vector<std::uint32_t> on;
        for (std::int64_t n = 0; n < strategy[op].shards(); ++n) on.push_back(static_cast<std::uint32_t>(strategy[op].device(n)));
        return on;
    };
    for (auto const& [root, members] : classes) {
        auto const plan = sim::plan_sync(g, members, simulation, degrees, places);
        for (auto const& group : plan.groups) made.all_reduces.push_back(group.gradients);
        for (auto const& held : plan.held)
            if (held.device == 0) {
                auto const update = sim::update_work(g.operations[root], held.elements, sim::update_traffic(held), simulation.optimizer);
                if (takes_time(update)) made.updates.push_back(update);
            }
    }
    return made;
}

/// What one device runs of graph `g` alone, in order: see `data_parallel_iteration`.
[[nodiscard]] inline std::vector<ops::shard_work> iteration_of(graph::dense_graph const& g, sim::simulation_options const& simulation) {
    auto made = data_parallel_iteration(g, 1, simulation);
    made.works.insert(made.works.end(), made.updates.begin(), made.updates.end());
    return std::move(made.works);
}

} // namespace parsearch::profiler
