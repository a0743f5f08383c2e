#pragma once
/// What is exported, and what all exports read of it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/exports/device_mesh.hpp>
#include <parsearch/io/files/configuration_list.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::io {

/// A plan with what it is of. Refers to all of it.
struct exported_plan {
    graph::dense_graph const& graph; ///< of one micro-batch, as `plan.strategy` is
    topology::dense_topology const& topology;
    pipeline::pipeline_plan const& plan;
    sim::simulation_options const& options;
    sim::report const* report = nullptr; ///< of the plan; none: nothing is said of what is predicted
    plan_notes notes{};
};

/// A stage's operators and its devices as a mesh.
struct exported_stage {
    std::vector<std::uint32_t> operators{}; ///< in topological order, without graph inputs
    device_mesh mesh{};
};

/// The stages of a plan: group g of G is on the g-th part of the devices. `also`: distances between devices at which an axis is to end.
/// Throws `invalid_input` where `pipeline::validate` and `mesh_of` do, where the strategy is not of the graph, and where groups do not divide the
/// devices.
[[nodiscard]] std::vector<exported_stage> stages_of(exported_plan const& p, std::span<std::int32_t const> also = {});

/// The name of a weight: the tensor's that operators share, else "operator.weight".
[[nodiscard]] inline std::string parameter_name(graph::dense_graph const& g, std::uint32_t op, ops::operand const& weight) {
    return weight.parameter.empty() ? text(g.names[op], '.', weight.name) : weight.parameter;
}

/// Samples of an iteration: what the sample dims of a micro-batch have in common (an operator may have samples and positions in one dim), times the
/// micro-batches. 0 where no operator has samples.
[[nodiscard]] std::int64_t samples_of(exported_plan const& p);

namespace detail {

/// An error that says why `runtime` can not run a plan.
[[nodiscard]] invalid_input takes_no_such(std::string_view runtime, auto const&... why) {
    return invalid_input(runtime, " takes no such plan: ", why...);
}

/// Refuses the first operator with a flag. `what`: of it, and what the runtime lacks.
inline void refuse_flagged(exported_plan const& p, std::vector<bool> const& flags, std::string_view runtime, auto const&... what) {
    auto const at = std::ranges::find(flags, true);
    if (at != flags.end()) throw takes_no_such(runtime, "operator '", p.graph.names[static_cast<std::size_t>(at - flags.begin())], "' ", what...);
}
/// Refuses kept activations, of which no flag tells.
inline void refuse_kept(exported_plan const& p, std::string_view runtime) {
    refuse_flagged(p, p.plan.how.kept, runtime, "keeps its activations although its stage computes again: flags name no single operators");
}
/// Refuses activations that are on the host between forward and backward. `why`: what the runtime lacks.
inline void refuse_offloaded(exported_plan const& p, std::string_view runtime, std::string_view why) {
    refuse_flagged(p, p.plan.how.offloaded, runtime, "has its activations on the host until backward: ", why);
}
inline void refuse_inference(exported_plan const& p, std::string_view runtime) {
    if (!p.options.training) throw takes_no_such(runtime, "it is of forward alone: the runtime trains");
}

/// Whether attentions pass keys and values on in a ring. Refuses plans of which some do and others gather them.
[[nodiscard]] bool passes_on_in_rings(exported_plan const& p, std::string_view runtime);
/// What a runtime that is told where tensors are cannot be told of rings; empty where there are none.
[[nodiscard]] std::string note_of_rings(exported_plan const& p);

/// Whether some weight has this type.
[[nodiscard]] inline bool has_type(exported_plan const& p, ops::dtype type) {
    return std::ranges::any_of(p.graph.operations,
                               [&](auto const& op) { return std::ranges::any_of(op.weights, [&](auto const& w) { return w.type == type; }); });
}

/// How many devices each node has. Throws `invalid_input` where they have different numbers.
[[nodiscard]] std::uint32_t node_size(exported_plan const& p);
} // namespace detail

/// Tasks [first, last) of a simulation.
struct task_range {
    std::uint32_t first = 0, last = 0;
};

/// The tasks of a simulation in order; those of one message or collective, a task on each of its links, together.
[[nodiscard]] std::vector<task_range> movements_and_tasks(sim::report const& r);

/// "none", "optimizer", "gradients", "parameters" or "parameters within nodes".
[[nodiscard]] constexpr std::string_view name_of(pipeline::sharded_states s) noexcept {
    constexpr std::array<std::string_view, pipeline::all_sharded_states.size()> names{"none", "optimizer", "gradients", "parameters",
                                                                                      "parameters within nodes"};
    return names[static_cast<std::size_t>(s)];
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/exports/exported_plan.ipp>
#endif
