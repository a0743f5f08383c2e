#pragma once
// Plans for PyTorch: device meshes, DTensor placements of parameters and activations, styles of parallelize_module, arguments of fully_shard, stages

#include <set>

#include <parsearch/io/exports/pytorch_export.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE ordered_json pytorch_writer::write() {
    auto const& how = p_.plan.how;
    refuse_offloaded(p_, "PyTorch", "placements and checkpoint name no hosts");
    ordered_json root{{"format", pytorch_format}, {"version", pytorch_version}, {"model", p_.notes.model}, {"topology", p_.notes.topology}};
    root["world_size"] = p_.topology.size();
    auto& meshes = root["device_meshes"] = ordered_json::array();
    for (auto const& s : stages_) meshes.push_back(mesh_json(s.mesh));
    auto parameters = ordered_json::array(), activations = ordered_json::array(), styles = ordered_json::array();
    for (auto const op : p_.graph.order) {
        if (is_source(p_.graph.operations[op])) continue;
        add_operator(op, parameters, activations, styles);
    }
    root["parameters"] = std::move(parameters);
    root["activations"] = std::move(activations);
    root["parallelize_module"] = std::move(styles);
    if (how.sharded != pipeline::sharded_states::none) root["sharded_states"] = sharded();
    if (how.stages > 1 || how.micro_batches > 1) root["pipelining"] = pipelining();
    if (std::ranges::find(how.recompute, true) != how.recompute.end()) root["checkpoint"] = checkpoint();
    if (auto const note = note_of_rings(p_); !note.empty()) notes_.push_back(note);
    root["notes"] = notes_;
    return root;
}

PARSEARCH_IO_INLINE ordered_json pytorch_writer::mesh_json(device_mesh const& mesh) {
    ordered_json out{{"first_rank", mesh.first}, {"shape", ordered_json::array()}, {"names", ordered_json::array()}};
    for (auto const& a : mesh.axes) {
        out["shape"].push_back(a.size);
        out["names"].push_back(a.name);
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json pytorch_writer::placements(device_mesh const& mesh, std::vector<axis_numbers> const& split,
                                                            axis_numbers const& partial, std::string const& what) {
    std::vector<std::string> of(mesh.axes.size(), "Replicate()");
    for (std::size_t axis = 0; axis < split.size(); ++axis) {
        if (!std::ranges::is_sorted(split[axis]))
            throw invalid_input(what, ": axis ", axis, " is split over dims of the mesh in another order: DTensor splits in the order of the mesh");
        for (auto const a : split[axis]) of[a] = text("Shard(", axis, ')');
    }
    for (auto const a : partial) of[a] = "Partial()";
    return of;
}

PARSEARCH_IO_INLINE void pytorch_writer::add_operator(std::uint32_t number, ordered_json& parameters, ordered_json& activations,
                                                      ordered_json& styles) {
    auto const& g = p_.graph;
    auto const& op = g.operations[number];
    auto const& mesh = stages_[p_.plan.how.stage[number]].mesh;
    auto const place = text("operator '", g.names[number], "' (", op.kind, ')');
    auto const use = use_of(mesh, op, p_.plan.strategy[number], g.names[number]);
    if (std::ranges::any_of(use.idle, [&](auto a) { return mesh.axes[a].size > 1; }) && !std::exchange(told_idle_, true))
        notes_.push_back(text(place, " is the first that runs on fewer devices than its mesh: its tensors are replicated over the rest"));
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (ops::repeats_work(op.dims[k].kind) && !use.dims[k].empty())
            throw invalid_input(place, ": dim '", op.dims[k].name, "' splits what repeats work: DTensor has no such placement");
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        auto const& o = op.outputs[slot];
        activations.push_back({{"operator", g.names[number]},
                               {"output", slot},
                               {"stage", p_.plan.how.stage[number]},
                               {"placements", placements(mesh, split_of(op, o, use, g.names[number]), axes_beside(o, use), place)}});
    }
    for (auto const& w : op.weights) {
        auto const name = parameter_name(g, number, w);
        auto placed = placements(mesh, split_of(op, w, use, g.names[number]), {}, place);
        auto const stage = p_.plan.how.stage[number];
        auto const [at, fresh] = placements_.try_emplace(name, stage, placed);
        if (!fresh) {
            auto const& [first_stage, first_placed] = at->second;
            if (first_stage != stage)
                throw invalid_input(place, " of stage ", stage, ": parameter '", name, "' is of stage ", first_stage,
                                    ", too: a parameter of several stages is not exported");
            if (first_placed != placed)
                throw invalid_input(place, ": parameter '", name, "' is placed ", placed.dump(), " here and ", first_placed.dump(),
                                    " by an operator before: DTensor has one placement of each");
            continue;
        }
        parameters.push_back({{"name", name}, {"module", module_of(name)}, {"stage", stage}, {"placements", std::move(placed)}});
    }
    add_style(number, use, mesh, styles);
}

PARSEARCH_IO_INLINE void pytorch_writer::add_style(std::uint32_t number, mesh_use const& use, device_mesh const& mesh, ordered_json& styles) {
    auto const& g = p_.graph;
    auto const& op = g.operations[number];
    if (op.weights.empty()) return;
    auto const& w = op.weights.front();
    auto const split = split_of(op, w, use, g.names[number]);
    auto const module = module_of(parameter_name(g, number, w));
    auto const style = [&](std::string_view name, std::uint32_t axis, ordered_json more) {
        ordered_json out{{"module", module}, {"stage", p_.plan.how.stage[number]}, {"mesh_dim", mesh.axes[axis].name}, {"style", name}};
        out.update(more);
        styles.push_back(std::move(out));
    };
    bool const lookup = op.kind == "embedding";
    if ((op.kind == "linear" || lookup) && split.size() == 2 && split[0].size() + split[1].size() == 1) {
        bool const rows = split[0].size() == 1; // of the weight: outputs of a linear layer, entries of a table
        auto const axis = rows ? split[0].front() : split[1].front();
        ordered_json more{{"input_layouts", placement_along(axis, input_split(number, use), false)}};
        more["output_layouts"] = read_along(number, axis);
        style(rows == lookup ? "RowwiseParallel" : "ColwiseParallel", axis, std::move(more));
        return;
    }
    if (op.work == ops::work_class::normalization) {
        auto const x = input_split(number, use);
        for (std::size_t i = 1; i < x.size(); ++i)
            if (x[i].size() == 1 && split.front().empty()) style("SequenceParallel", x[i].front(), {{"sequence_dim", i}});
        return;
    }
    if (std::ranges::any_of(split, [](auto const& axes) { return !axes.empty(); }))
        notes_.push_back(
            text("module '", module, "' (", op.kind, "): no style of parallelize_module splits it: distribute its parameters as placed"));
}

PARSEARCH_IO_INLINE std::string pytorch_writer::read_along(std::uint32_t number, std::uint32_t axis) const {
    auto const& g = p_.graph;
    for (auto const e : g.out(number)) {
        auto const& edge = g.edges[e];
        if (p_.plan.how.stage[edge.consumer] != p_.plan.how.stage[number]) continue;
        auto const& op = g.operations[edge.consumer];
        auto const use = use_of(stages_[p_.plan.how.stage[number]].mesh, op, p_.plan.strategy[edge.consumer], g.names[edge.consumer]);
        return placement_along(axis, split_of(op, op.inputs[edge.input], use, g.names[edge.consumer]), false);
    }
    return "Replicate()";
}

PARSEARCH_IO_INLINE ordered_json pytorch_writer::sharded() {
    using pipeline::sharded_states;
    auto const states = p_.plan.how.sharded;
    ordered_json out;
    if (states == sharded_states::optimizer) {
        out["class"] = "torch.distributed.optim.ZeroRedundancyOptimizer";
        notes_.push_back("the optimizer's state alone is shared: FSDP2 shares gradients with it");
        return out;
    }
    out["function"] = "torch.distributed.fsdp.fully_shard";
    out["reshard_after_forward"] = states >= sharded_states::parameters;
    if (states == sharded_states::parameters_within_nodes) {
        out["shard_within"] = node_size(p_);
        notes_.push_back("states are shared within nodes: fully_shard takes a mesh of two dims, copies between nodes and parts within them");
    }
    // Modules that are gathered together: the innermost that holds all parameters of a block.
    std::map<std::uint32_t, std::set<std::string>> of_block;
    for (std::size_t op = 0; op < p_.graph.size(); ++op)
        for (auto const& w : p_.graph.operations[op].weights)
            of_block[p_.plan.how.block_of(op)].insert(module_of(parameter_name(p_.graph, static_cast<std::uint32_t>(op), w)));
    auto& groups = out["groups"] = ordered_json::array();
    for (auto const& [block, modules] : of_block) groups.push_back(std::vector<std::string>(modules.begin(), modules.end()));
    return out;
}

PARSEARCH_IO_INLINE ordered_json pytorch_writer::pipelining() {
    using pipeline::launch_order;
    auto const& how = p_.plan.how;
    ordered_json out{{"n_microbatches", how.micro_batches}};
    if (how.stages == 1) {
        notes_.push_back("one stage: micro-batches are accumulated, with gradients synchronised behind the last");
        return out;
    }
    auto const schedule = [&]() -> std::string_view {
        bool const many = how.interleaved > 1;
        if (how.order == launch_order::gpipe) return many ? "ScheduleLoopedBFS" : "ScheduleGPipe";
        if (how.order == launch_order::one_f_one_b) return many ? "ScheduleInterleaved1F1B" : "Schedule1F1B";
        if (how.order == launch_order::zb_h1 && many) return "ScheduleInterleavedZeroBubble";
        throw takes_no_such("torch.distributed.pipelining", "the order of micro-batches is ", name_of(how.order), " with ", how.interleaved,
                            " stages on each group: must be gpipe or 1f1b, or zb-h1 with several");
    }();
    out["schedule"] = schedule;
    auto& splits = out["split_spec"] = ordered_json::array();
    for (std::uint32_t s = 1; s < how.stages; ++s) {
        if (stages_[s].operators.empty()) throw invalid_input("stage ", s, " has no operators: it cannot begin at one");
        auto const first = stages_[s].operators.front();
        ordered_json split{{"stage", s}, {"operator", p_.graph.names[first]}, {"point", "BEGINNING"}};
        auto const with = std::ranges::find_if(stages_[s].operators, [&](auto op) { return !p_.graph.operations[op].weights.empty(); });
        if (with != stages_[s].operators.end())
            split["module"] = module_of(parameter_name(p_.graph, *with, p_.graph.operations[*with].weights.front()));
        splits.push_back(std::move(split));
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json pytorch_writer::checkpoint() const {
    auto const& how = p_.plan.how;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::string>> segments;
    for (auto const& stage : stages_)
        for (auto const op : stage.operators)
            if (how.computes_again(op)) segments[{how.stage[op], how.segment_of(op)}].push_back(p_.graph.names[op]);
    ordered_json out{{"function", "torch.utils.checkpoint.checkpoint"}, {"use_reentrant", false}, {"segments", ordered_json::array()}};
    for (auto const& [segment, operators] : segments) out["segments"].push_back({{"stage", segment.first}, {"operators", operators}});
    return out;
}

} // namespace parsearch::io::detail
