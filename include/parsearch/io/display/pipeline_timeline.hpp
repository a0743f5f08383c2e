#pragma once
/// The timeline of a pipeline with all of its micro-batches, as io/display/timeline.hpp writes those of strategies.

#include <cstdint>
#include <ostream>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/timeline.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/task/payload.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

/// Simulates `plan` and writes its timeline; `cluster` is the topology of the simulator's problem. What comes once per micro-batch has its number,
/// from 0, behind its name ("fc1 forward, micro-batch 3"; "fc1 forward again, micro-batch 3" where it is recomputed) and as `micro_batch` among its
/// arguments. What sharded parameters move has the name of the first operator of the block whose weights they are. Throws `invalid_input` as the
/// simulator and `write_timeline` do. Complexity: O(n log n) in tasks, those of all micro-batches.
inline void write_pipeline_timeline(std::ostream& stream, pipeline::pipeline_simulator& simulator, topology::cluster const& cluster,
                                    pipeline::pipeline_plan const& plan) {
    sim::report r;
    r.makespan = simulator.simulate(plan.how, plan.strategy);
    auto const& part = simulator.micro_batches(plan.how.micro_batches);
    r.tasks = simulator.tasks();
    r.schedule = simulator.schedule();
    r.carried = sim::payloads(simulator.plan(), part.graph(), r.tasks, part.options());
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
        if (auto const what = simulator.origins()[t].moves; what != pipeline::block_transfer::none && r.tasks.kind[t] == sim::task_kind::collective)
            r.carried[t].collective = what == pipeline::block_transfer::gather ? collective_kind::all_gather : collective_kind::reduce_scatter;
    write_timeline(stream, part, cluster, plan.strategy, r, [&](std::uint32_t t) -> timeline_remark {
        auto const kind = r.tasks.kind[t];
        bool const moves = kind == sim::task_kind::transfer || kind == sim::task_kind::collective;
        auto const& origin = simulator.origins()[t];
        bool const once = kind == sim::task_kind::update || (moves && r.tasks.label[t].traffic == sim::traffic_kind::weight_gradient);
        if (once && origin.moves == pipeline::block_transfer::none) return {};
        std::string_view const what = origin.again ? " again" : origin.moves != pipeline::block_transfer::none ? " of its block" : "";
        return {.name = text(what, ", micro-batch ", origin.micro_batch), .arguments = text(",\"micro_batch\":", origin.micro_batch)};
    });
}

} // namespace parsearch::io
