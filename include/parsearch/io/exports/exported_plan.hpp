#pragma once
/// What is exported, and what all exports read of it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
[[nodiscard]] inline std::vector<exported_stage> stages_of(exported_plan const& p, std::span<std::int32_t const> also = {}) {
    auto const& how = p.plan.how;
    pipeline::validate(how, p.graph);
    if (p.plan.strategy.size() != p.graph.size())
        throw invalid_input("the strategy has ", p.plan.strategy.size(), " configurations: the graph has ", p.graph.size(), " operators");
    auto const devices = static_cast<std::uint32_t>(p.topology.size()), groups = how.launching().groups();
    if (devices % groups != 0)
        throw invalid_input("a pipeline of ", groups, " groups on ", devices,
                            " devices: runtimes have as many devices in each, groups must divide them");
    std::vector<exported_stage> out(how.stages);
    for (auto const op : p.graph.order) {
        if (detail::is_source(p.graph.operations[op])) continue;
        space::validate(p.plan.strategy[op], p.graph.operations[op], devices, p.graph.names[op]);
        out[how.stage[op]].operators.push_back(op);
    }
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        auto const first = static_cast<std::int32_t>(how.launching().group_of(s) * (devices / groups));
        out[s].mesh = mesh_of(p.graph, p.plan.strategy, out[s].operators, first, static_cast<std::int32_t>(devices / groups), also);
    }
    return out;
}

/// The name of a weight: the tensor's that operators share, else "operator.weight".
[[nodiscard]] inline std::string parameter_name(graph::dense_graph const& g, std::uint32_t op, ops::operand const& weight) {
    return weight.parameter.empty() ? text(g.names[op], '.', weight.name) : weight.parameter;
}

/// Samples of an iteration: what the sample dims of a micro-batch have in common (an operator may have samples and positions in one dim), times the
/// micro-batches. 0 where no operator has samples.
[[nodiscard]] inline std::int64_t samples_of(exported_plan const& p) {
    std::int64_t samples = 0;
    for (auto const& op : p.graph.operations)
        for (auto const& d : op.dims)
            if (d.kind == ops::dim_kind::sample && op.work != ops::work_class::source) samples = std::gcd(samples, d.extent);
    return samples * p.plan.how.micro_batches;
}

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

/// The first attention whose keys and values are passed on in a ring among parts of its positions, and the first that gathers them.
struct ring_attentions {
    std::optional<std::uint32_t> ring{}, gathered{};
};
[[nodiscard]] inline ring_attentions ring_attentions_of(exported_plan const& p) {
    ring_attentions out;
    for (auto const number : p.graph.order) {
        auto const& op = p.graph.operations[number];
        if (op.work != ops::work_class::attention) continue;
        for (std::size_t i = 1; i < op.inputs.size() && i < 3; ++i)
            for (std::size_t k = 0; k < op.dims.size(); ++k) {
                if (p.plan.strategy[number].degree[k] == 1 || ops::repeats_work(op.dims[k].kind) || ops::is_indexed_by(op.inputs[i], k)) continue;
                auto& first = op.inputs[i].passed_on ? out.ring : out.gathered;
                if (!first) first = number;
            }
    }
    return out;
}
/// Whether attentions pass keys and values on in a ring. Refuses plans of which some do and others gather them.
[[nodiscard]] inline bool passes_on_in_rings(exported_plan const& p, std::string_view runtime) {
    auto const [ring, gathered] = ring_attentions_of(p);
    if (ring && gathered)
        throw takes_no_such(runtime, "operator '", p.graph.names[*ring], "' passes keys and values on in a ring, '", p.graph.names[*gathered],
                            "' gathers them: must be alike");
    return ring.has_value();
}
/// What a runtime that is told where tensors are cannot be told of rings; empty where there are none.
[[nodiscard]] inline std::string note_of_rings(exported_plan const& p) {
    auto const first = ring_attentions_of(p).ring;
    if (!first) return {};
    return text("operator '", p.graph.names[*first],
                "' is the first that passes keys and values on in a ring: where tensors are is said, not in which ", "order they are exchanged");
}

/// How many devices each node has. Throws `invalid_input` where they have different numbers.
[[nodiscard]] inline std::uint32_t node_size(exported_plan const& p) {
    auto const size = topology::devices_per_node(p.topology);
    if (size == 0)
        throw invalid_input("states are shared within nodes, and ", p.topology.size(),
                            " devices are not on nodes of as many in a row: runtimes share among as many on each");
    return static_cast<std::uint32_t>(size);
}
} // namespace detail

/// Tasks [first, last) of a simulation.
struct task_range {
    std::uint32_t first = 0, last = 0;
};

/// The tasks of a simulation in order; those of one message or collective, a task on each of its links, together.
[[nodiscard]] inline std::vector<task_range> movements_and_tasks(sim::report const& r) {
    auto const moves = [&](std::uint32_t t) { return r.tasks.kind[t] == sim::task_kind::transfer || r.tasks.kind[t] == sim::task_kind::collective; };
    auto const are_one = [&](std::uint32_t a, std::uint32_t b) {
        auto const &x = r.tasks.label[a], &y = r.tasks.label[b];
        return r.tasks.kind[a] == r.tasks.kind[b] && x.op == y.op && x.number == y.number && x.edge == y.edge && x.traffic == y.traffic &&
               r.run_of(a) == r.run_of(b) && r.schedule.ready[a] == r.schedule.ready[b];
    };
    std::vector<task_range> out;
    for (std::uint32_t t = 0; t < r.tasks.size(); t = out.back().last) {
        auto end = t + 1;
        while (moves(t) && end < r.tasks.size() && are_one(t, end)) ++end;
        out.push_back({t, end});
    }
    return out;
}

/// "none", "optimizer", "gradients", "parameters" or "parameters within nodes".
[[nodiscard]] constexpr std::string_view name_of(pipeline::sharded_states s) noexcept {
    constexpr std::array<std::string_view, pipeline::all_sharded_states.size()> names{"none", "optimizer", "gradients", "parameters",
                                                                                      "parameters within nodes"};
    return names[static_cast<std::size_t>(s)];
}

} // namespace parsearch::io
