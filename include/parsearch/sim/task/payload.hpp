#pragma once
/// How many bytes the data movement tasks of a task graph are about, and in which collective.

#include <cstdint>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::sim {

struct iteration_plan;

/// What a transfer or collective carries.
struct payload {
    byte_count bytes = 0; ///< of the message (of its segment under `cut_through`), or of the tensor as `collective_kind` counts it; 0 for other tasks
    std::uint32_t devices = 0;    ///< in the collective; 2 for a message, 0 for other tasks
    collective_kind collective{}; ///< of no matter for other tasks
};

/// By task of `tasks`, which an `assembler` made of `plan` and `g` under `options`. Complexity: linear in tasks.
[[nodiscard]] std::vector<payload> payloads(iteration_plan const& plan, graph::dense_graph const& g, task_graph const& tasks,
                                            simulation_options const& options);

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/payload.ipp>
#endif
