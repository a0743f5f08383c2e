#pragma once
// Plans for JAX: meshes, a PartitionSpec per parameter and activation, micro-batches, stages, what is computed again; and the graph, so that a

#include <map>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/jax_export.hpp>
#include <parsearch/io/files/graph_file.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE ordered_json jax_writer::write() {
    auto const& how = p_.plan.how;
    refuse_offloaded(p_, "JAX", "a PartitionSpec names no hosts");
    ordered_json root{{"format", jax_format}, {"version", jax_version}};
    root["model"] = p_.notes.model;
    root["topology"] = p_.notes.topology;
    root["devices"] = p_.topology.size();
    root["training"] = p_.options.training;
    root["optimizer"] = name_of(p_.options.optimizer);
    root["micro_batches"] = how.micro_batches;
    root["order"] = name_of(how.order);
    root["interleaved"] = how.interleaved;
    root["sharded"] = name_of(how.sharded);
    auto& stages = root["stages"] = ordered_json::array();
    for (std::uint32_t s = 0; s < how.stages; ++s) {
        auto const& mesh = stages_[s].mesh;
        ordered_json stage{{"first_device", mesh.first}};
        auto& axes = stage["mesh"] = ordered_json::array();
        for (auto const& a : mesh.axes) axes.push_back({{"name", a.name}, {"size", a.size}});
        stage["recompute"] = how.recomputes(s);
        stages.push_back(std::move(stage));
    }
    constexpr std::array<std::string_view, 3> passes{"forward", "backward", "weight_gradients"};
    auto& launches = root["launches"] = ordered_json::array();
    for (auto const& l : pipeline::launches(how.launching(), p_.options.training))
        launches.push_back({passes[static_cast<std::size_t>(l.pass)], l.stage, l.micro_batch});
    auto& inputs = root["inputs"] = ordered_json::array();
    auto operators = ordered_json::array();
    for (auto const op : p_.graph.order)
        if (is_source(p_.graph.operations[op])) {
            auto const& o = p_.graph.operations[op].outputs.front();
            inputs.push_back({{"name", p_.graph.names[op]}, {"type", name_of(o.type)}, {"shape", shape_of(o)}});
        } else {
            operators.push_back(operator_of(op));
        }
    root["parameters"] = std::move(parameters_);
    root["operators"] = std::move(operators);
    if (idle_ > 0)
        notes_.push_back(text(idle_, idle_ == 1 ? " operator runs" : " operators run", " on fewer devices than the mesh has, the first '",
                              first_idle_, "': JAX runs a program on all devices of a mesh, so that the others do the same work"));
    if (summed_ > 0)
        notes_.push_back(text(summed_, summed_ == 1 ? " operator leaves" : " operators leave", " partial sums, the first '", first_summed_,
                              "': a PartitionSpec has no words for them, it says where the sum is; 'partial' has the axes"));
    if (auto const note = note_of_rings(p_); !note.empty()) notes_.push_back(note);
    root["notes"] = notes_;
    if (p_.report) root["predicted"] = predicted();
    return root;
}

PARSEARCH_IO_INLINE ordered_json jax_writer::operator_of(std::uint32_t number) {
    auto const& g = p_.graph;
    auto const& op = g.operations[number];
    auto const& how = p_.plan.how;
    auto const& mesh = stages_[how.stage[number]].mesh;
    auto const use = use_of(mesh, op, p_.plan.strategy[number], g.names[number]);
    if (!use.idle.empty() && idle_++ == 0) first_idle_ = g.names[number];
    ordered_json out{{"name", g.names[number]}, {"kind", op.kind}};
    if (!op.variant.empty()) out["variant"] = op.variant;
    out["stage"] = how.stage[number];
    if (!how.segment.empty()) out["segment"] = how.segment[number];
    if (how.recomputes(how.stage[number])) out["computed_again"] = how.computes_again(number);
    if (!how.block.empty()) out["block"] = how.block[number];
    auto const names = cost::dim_names(op);
    auto& dims = out["dims"] = ordered_json::array();
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        ordered_json dim{{"name", names[k]}, {"extent", op.dims[k].extent}, {"kind", name_of(op.dims[k].kind)}};
        if (!use.dims[k].empty()) dim["over"] = names_of(mesh, use.dims[k]);
        dims.push_back(std::move(dim));
    }
    auto& inputs = out["inputs"] = ordered_json::array();
    for (auto const& e : g.in(number)) {
        auto const& o = op.inputs[e.input];
        ordered_json input{{"name", o.name}, {"of", g.names[e.producer]}, {"output", e.slot}, {"axes", axes_to_json(o.axes)}};
        if (o.saved) input["saved"] = true;
        if (!g.carries_gradient(e)) input["gradient"] = false;
        inputs.push_back(std::move(input));
    }
    if (!op.weights.empty()) {
        auto& weights = out["weights"] = ordered_json::array();
        for (auto const& w : op.weights) weights.push_back(weight_of(number, w, use, mesh));
    }
    auto& outputs = out["outputs"] = ordered_json::array();
    for (auto const& o : op.outputs) {
        ordered_json output{
            {"type", name_of(o.type)}, {"axes", axes_to_json(o.axes)}, {"spec", spec_of(mesh, split_of(op, o, use, g.names[number]))}};
        axis_numbers partial;
        for (std::size_t k = 0; k < use.dims.size(); ++k)
            if (ops::leaves_partial_sums(op, o, k)) partial.insert(partial.end(), use.dims[k].begin(), use.dims[k].end());
        std::ranges::sort(partial);
        if (!partial.empty()) {
            output["partial"] = names_of(mesh, partial);
            if (summed_++ == 0) first_summed_ = g.names[number];
        }
        if (o.saved) output["saved"] = true;
        outputs.push_back(std::move(output));
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json jax_writer::weight_of(std::uint32_t number, ops::operand const& w, mesh_use const& use, device_mesh const& mesh) {
    auto const& op = p_.graph.operations[number];
    auto const& how = p_.plan.how;
    auto const name = parameter_name(p_.graph, number, w);
    auto const split = split_of(op, w, use, p_.graph.names[number]);
    auto const beside = axes_beside(w, use);
    ordered_json out{{"name", w.name}, {"parameter", name}, {"axes", axes_to_json(w.axes)}, {"spec", spec_of(mesh, split)}};
    auto const [at, fresh] = stage_of_parameter_.try_emplace(name, how.stage[number]);
    if (!fresh) {
        if (at->second != how.stage[number])
            throw invalid_input("operator '", p_.graph.names[number], "' (", op.kind, ") of stage ", how.stage[number], ": parameter '", name,
                                "' is of stage ", at->second, ", too: a parameter of several stages is not exported");
        return out;
    }
    ordered_json parameter{{"name", name}, {"stage", how.stage[number]}, {"type", name_of(w.type)}, {"shape", shape_of(w)}, {"spec", out["spec"]}};
    parameter["replicas"] = names_of(mesh, beside);
    if (w.cache) parameter["cache"] = true;
    if (how.sharded >= pipeline::sharded_states::gradients) shared_.push_back(shared_weight_of(number, w, split, beside, mesh));
    if (how.sharded != pipeline::sharded_states::none && !beside.empty()) {
        if (auto const shared = shared_axis_of(w, split, beside, mesh)) {
            auto state = split;
            state[shared->axis].insert(state[shared->axis].end(), shared->over.begin(), shared->over.end());
            parameter["state_spec"] = spec_of(mesh, state);
        } else {
            notes_.push_back(text("parameter '", name, "' of shape ", ops::to_string(ops::tensor_of(w)),
                                  " is not shared by its replicas: JAX shares along an axis, and they divide none"));
        }
    }
    parameters_.push_back(std::move(parameter));
    return out;
}

PARSEARCH_IO_INLINE shared_weight jax_writer::shared_weight_of(std::uint32_t number, ops::operand const& w, std::vector<axis_numbers> const& split,
                                                               axis_numbers const& beside, device_mesh const& mesh) const {
    shared_weight out{.block = p_.plan.how.block_of(number)};
    for (auto const& axes : split)
        for (auto const a : axes) out.parts *= static_cast<std::uint32_t>(mesh.axes[a].size);
    for (auto const a : beside) {
        out.replicas *= static_cast<std::uint32_t>(mesh.axes[a].size);
        if (mesh.axes[a].stride < sharing_within(mesh)) out.sharing *= static_cast<std::uint32_t>(mesh.axes[a].size);
    }
    out.bytes = ops::bytes_of(w) / out.parts;
    out.gradients = ops::elements_of(w) * sim::gradient_size(p_.options.gradients, w.type) / out.parts;
    return out;
}

PARSEARCH_IO_INLINE std::optional<shared_axis> jax_writer::shared_axis_of(ops::operand const& w, std::vector<axis_numbers> const& split,
                                                                          axis_numbers const& beside, device_mesh const& mesh) const {
    shared_axis out;
    auto const within = sharing_within(mesh);
    std::int64_t sharers = 1;
    for (auto const a : beside)
        if (mesh.axes[a].stride < within) {
            out.over.push_back(a);
            sharers *= mesh.axes[a].size;
        }
    if (sharers == 1) return std::nullopt;
    for (std::size_t i = 0; i < w.axes.size(); ++i) {
        auto parts = sharers;
        for (auto const a : split[i]) parts *= mesh.axes[a].size;
        if (w.axes[i].extent % parts == 0) {
            out.axis = i;
            return out;
        }
    }
    return std::nullopt;
}

PARSEARCH_IO_INLINE ordered_json jax_writer::predicted() const {
    auto const& r = *p_.report;
    using sort = std::tuple<std::uint32_t, sim::traffic_kind, sim::task_part, bool, collective_kind, byte_count, std::uint32_t>;
    std::map<sort, std::uint64_t> times;
    std::map<std::tuple<std::uint32_t, std::uint32_t, collective_kind>, std::uint64_t> of_blocks; // by block, operator told and kind
    for (auto const& [first, last] : movements_and_tasks(r)) {
        bool const message = r.tasks.kind[first] == sim::task_kind::transfer;
        if (!message && r.tasks.kind[first] != sim::task_kind::collective) continue;
        auto const& l = r.tasks.label[first];
        auto const& c = r.carried[first];
        if (r.run_of(first).part == sim::task_part::of_block) ++of_blocks[{p_.plan.how.block_of(l.op), l.op, c.collective}];
        else ++times[{l.op, l.traffic, r.run_of(first).part, message, c.collective, c.bytes, c.devices}];
    }
    for (auto const& [what, n] : of_blocks) {
        auto const& [block, op, kind] = what;
        for (auto const& w : shared_)
            if (w.block == block)
                if (auto const [bytes, devices, groups] = w.moved(kind); devices > 1)
                    times[{op, sim::traffic_kind::weight_gradient, sim::task_part::of_block, false, kind, bytes, devices}] += n * groups;
    }
    ordered_json out{{"time_ps", r.makespan.count()}, {"moves", ordered_json::array()}, {"memory", ordered_json::array()}};
    for (auto const& [m, n] : times) {
        auto const& [op, traffic, part, message, kind, bytes, devices] = m;
        ordered_json move{{"operator", p_.graph.names[op]}, {"traffic", name_of(traffic)}, {"kind", message ? "message" : name_of(kind)}};
        if (part != sim::task_part::whole) move["part"] = spoken(part);
        move["bytes"] = bytes;
        move["devices"] = devices;
        move["times"] = n;
        out["moves"].push_back(std::move(move));
    }
    for (auto const& m : r.memory)
        out["memory"].push_back({{"weights", m.weights},
                                 {"gradients", m.gradients},
                                 {"optimizer", m.optimizer},
                                 {"activations", m.activations},
                                 {"cache", m.cache},
                                 {"buffers", m.buffers}});
    return out;
}

} // namespace parsearch::io::detail
