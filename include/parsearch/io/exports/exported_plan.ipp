#pragma once
// What is exported, and what all exports read of it.

#include <numeric>

#include <parsearch/io/exports/exported_plan.hpp>

namespace parsearch::io::detail {

/// The first attention whose keys and values are passed on in a ring among parts of its positions, and the first that gathers them.
struct ring_attentions {
    std::optional<std::uint32_t> ring{}, gathered{};
};

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<exported_stage> stages_of(exported_plan const& p, std::span<std::int32_t const> also) {
    auto const& how = p.plan.how;
    pipeline::validate(how, p.graph);
    if (p.options.replicas > 1)
        throw invalid_input("the plan is of one of ", p.options.replicas, " replicas: must be of all devices, see `pipeline::on_all_replicas`");
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

PARSEARCH_IO_INLINE std::int64_t samples_of(exported_plan const& p) {
    std::int64_t samples = 0;
    for (auto const& op : p.graph.operations)
        for (auto const& d : op.dims)
            if (d.kind == ops::dim_kind::sample && op.work != ops::work_class::source) samples = std::gcd(samples, d.extent);
    return samples * p.plan.how.micro_batches;
}

} // namespace parsearch::io

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE ring_attentions ring_attentions_of(exported_plan const& p) {
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

PARSEARCH_IO_INLINE bool passes_on_in_rings(exported_plan const& p, std::string_view runtime) {
    auto const [ring, gathered] = ring_attentions_of(p);
    if (ring && gathered)
        throw takes_no_such(runtime, "operator '", p.graph.names[*ring], "' passes keys and values on in a ring, '", p.graph.names[*gathered],
                            "' gathers them: must be alike");
    return ring.has_value();
}

PARSEARCH_IO_INLINE std::string note_of_rings(exported_plan const& p) {
    auto const first = ring_attentions_of(p).ring;
    if (!first) return {};
    return text("operator '", p.graph.names[*first],
                "' is the first that passes keys and values on in a ring: where tensors are is said, not in which ", "order they are exchanged");
}

PARSEARCH_IO_INLINE std::uint32_t node_size(exported_plan const& p) {
    auto const size = topology::devices_per_node(p.topology);
    if (size == 0)
        throw invalid_input("states are shared within nodes, and ", p.topology.size(),
                            " devices are not on nodes of as many in a row: runtimes share among as many on each");
    return static_cast<std::uint32_t>(size);
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<task_range> movements_and_tasks(sim::report const& r) {
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

} // namespace parsearch::io
