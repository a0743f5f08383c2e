#pragma once
// Plans as command lines and configurations of training programs: Megatron-LM, torchtitan, DeepSpeed. See docs/run.md for what each cannot say.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/flags_file.hpp>
#include <parsearch/io/exports/textbook_plan.hpp>
#include <parsearch/io/exports/training_flags.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

namespace parsearch::io::detail {

/// How Megatron-LM exchanges keys and values in context parallelism (what it passes to Transformer Engine): in rings, gathered, or heads for
/// positions.
PARSEARCH_IO_INLINE std::string_view megatron_exchange(exported_plan const& p, textbook_plan const& t, std::string_view runtime) {
    if (t.heads == t.context) return "a2a";
    if (t.heads > 1)
        throw takes_no_such(runtime, "attention has heads over ", t.heads, " of the ", t.context,
                            " parts of sequences: --cp-comm-type a2a splits them over all parts, must be 1 or ", t.context);
    return passes_on_in_rings(p, runtime) ? "p2p" : "all_gather";
}

/// The layers of stages as Megatron-LM says them: "Et*3|t*4|t*3L".
PARSEARCH_IO_INLINE std::string megatron_layout(std::vector<std::uint32_t> const& layers) {
    std::string out = "E";
    for (std::size_t s = 0; s < layers.size(); ++s) {
        if (s > 0) out += '|';
        if (layers[s] > 0) out += layers[s] == 1 ? std::string("t") : text("t*", layers[s]);
    }
    return out + 'L';
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_megatron_flags(std::ostream& out, exported_plan const& p) {
    constexpr std::string_view runtime = "Megatron-LM";
    detail::refuse_inference(p, runtime);
    auto const t = textbook_of(p, runtime);
    auto const& how = p.plan.how;
    auto const wrong = [&](auto const&... why) { return detail::takes_no_such(runtime, why...); };
    using pipeline::sharded_states;
    detail::refuse_no_layers(t, runtime);
    if (how.stages > 1 && how.order != pipeline::launch_order::one_f_one_b)
        throw wrong("the order of micro-batches is ", name_of(how.order), ": it runs 1f1b");
    if (how.sharded == sharded_states::parameters_within_nodes) throw wrong("states are shared within nodes: must be shared by all replicas");
    if (how.sharded >= sharded_states::gradients && how.stages > 1)
        throw wrong(name_of(how.sharded), " are shared, in ", how.stages, " stages: its FSDP takes one");
    if (how.sharded != sharded_states::none && p.options.optimizer != sim::optimizer::adam)
        throw wrong("states are shared, the optimizer is ", name_of(p.options.optimizer), ": its distributed optimizer is adam's");
    detail::refuse_kept(p, runtime);
    detail::refuse_offloaded(p, runtime, "its flags offload layers, not operators");
    detail::flags_file flags;
    flags.note(text("Megatron-LM, ", p.notes.model, " on ", p.notes.topology, ": pass them by $(grep -v '^#' FILE)"));
    flags.add("--tensor-model-parallel-size", t.tensor);
    if (t.tensor > 1) flags.add("--sequence-parallel");
    flags.add("--pipeline-model-parallel-size", t.groups);
    flags.add("--context-parallel-size", t.context);
    if (t.context > 1) flags.add("--cp-comm-type", detail::megatron_exchange(p, t, runtime));
    flags.add("--expert-model-parallel-size", t.experts);
    if (t.experts > 1) {
        flags.add("--expert-tensor-parallel-size", 1);
        flags.add("--moe-token-dispatcher-type", "alltoall");
    }
    flags.add("--micro-batch-size", t.micro_batch);
    flags.add("--global-batch-size", t.samples);
    bool const even = std::ranges::all_of(t.layers, [&](auto n) { return n == t.layers.front(); });
    if (how.stages > 1 && !even) flags.add("--pipeline-model-parallel-layout", detail::megatron_layout(t.layers));
    else if (t.interleaved > 1) flags.add("--num-virtual-stages-per-pipeline-rank", t.interleaved);
    switch (how.sharded) {
    case sharded_states::none: break;
    case sharded_states::optimizer: flags.add("--use-distributed-optimizer"); break;
    default:
        flags.add("--use-megatron-fsdp");
        flags.add("--use-distributed-optimizer");
        flags.add("--data-parallel-sharding-strategy", how.sharded == sharded_states::gradients ? "optim_grads" : "optim_grads_params");
        flags.add("--no-gradient-accumulation-fusion");
        flags.add("--ckpt-format", "fsdp_dtensor");
    }
    if (t.recomputes) {
        auto const most = *std::max_element(t.layers.begin(), t.layers.end());
        flags.add("--recompute-granularity", "full");
        flags.add("--recompute-method", "uniform");
        flags.add("--recompute-num-layers", std::max(1U, (most + t.segments - 1) / std::max(1U, t.segments)));
        flags.note("segments are of equal numbers of layers here; in the plan they are cut where least crosses");
    }
    flags.add("--optimizer", p.options.optimizer == sim::optimizer::adam ? "adam" : "sgd");
    if (p.options.optimizer == sim::optimizer::sgd) flags.add("--sgd-momentum", 0);
    bool const bf16 = detail::has_type(p, ops::dtype::bf16), f16 = detail::has_type(p, ops::dtype::f16);
    if (bf16) flags.add("--bf16");
    if (f16) flags.add("--fp16");
    if (bf16 && p.options.gradients == sim::gradient_type::of_weights) flags.add("--grad-reduce-in-bf16");
    if (f16 && p.options.gradients == sim::gradient_type::f32) flags.add("--accumulate-allreduce-grads-in-fp32");
    flags.write(out);
}

PARSEARCH_IO_INLINE void write_torchtitan_flags(std::ostream& out, exported_plan const& p) {
    constexpr std::string_view runtime = "torchtitan";
    detail::refuse_inference(p, runtime);
    auto const t = textbook_of(p, runtime);
    auto const& how = p.plan.how;
    auto const wrong = [&](auto const&... why) { return detail::takes_no_such(runtime, why...); };
    using pipeline::launch_order, pipeline::sharded_states;
    detail::refuse_no_layers(t, runtime);
    if (t.heads > 1)
        throw wrong("attention has heads over ", t.heads, " of the ", t.context, " parts of sequences: its context parallelism splits positions");
    if (how.sharded == sharded_states::optimizer) throw wrong("the optimizer's state is shared alone: its FSDP shares gradients with it");
    if (how.sharded == sharded_states::none && t.data > 1)
        for (auto const& [what, n] : {std::pair{"tensor parallelism", t.tensor},
                                      {"context parallelism", t.context},
                                      {"expert parallelism", t.experts},
                                      {"the number of groups of stages", t.groups}})
            if (n > 1)
                throw wrong(t.data, " replicas share no states, and ", what, " is ", n,
                            ": its DDP goes with no other parallelism, must be 1, or gradients or parameters shared");
    if (detail::has_type(p, ops::dtype::f16)) throw wrong("weights are f16: its mixed precision takes bfloat16 or float32");
    detail::refuse_kept(p, runtime);
    detail::refuse_offloaded(p, runtime, "no flag of it offloads activations");
    detail::flags_file flags;
    flags.note(text("torchtitan, ", p.notes.model, " on ", p.notes.topology, ": pass them by $(grep -v '^#' FILE)"));
    // Replicas: all share states, those of a node, or none.
    auto shard = how.sharded == sharded_states::none ? 1U : t.data;
    if (how.sharded == sharded_states::parameters_within_nodes) {
        auto const node = detail::node_size(p);
        if (node % (t.tensor * t.context) != 0)
            throw wrong("states are shared within nodes of ", node, " devices, a replica has ", t.tensor * t.context, ": must be a divisor");
        shard = std::min(t.data, node / (t.tensor * t.context));
        if (t.data % shard != 0) throw wrong(t.data, " replicas share states within nodes, ", shard, " on each: must be a divisor");
    }
    flags.add("--parallelism.data_parallel_replicate_degree", t.data / shard);
    flags.add("--parallelism.data_parallel_shard_degree", shard);
    flags.add("--parallelism.tensor_parallel_degree", t.tensor);
    flags.add("--parallelism.context_parallel_degree", t.context);
    if (t.context > 1) flags.add("--parallelism.context_parallel_rotate_method", detail::passes_on_in_rings(p, runtime) ? "alltoall" : "allgather");
    flags.add("--parallelism.expert_parallel_degree", t.experts);
    flags.add("--parallelism.pipeline_parallel_degree", t.groups);
    if (how.sharded != sharded_states::none)
        flags.add("--parallelism.fsdp_reshard_after_forward", how.sharded == sharded_states::gradients ? "never" : "always");
    flags.add("--training.global_batch_size", t.samples);
    if (how.stages > 1) {
        auto const order = [&]() -> std::string_view {
            bool const many = t.interleaved > 1;
            switch (how.order) {
            case launch_order::gpipe:
                if (many) break;
                return "GPipe";
            case launch_order::one_f_one_b: return many ? "Interleaved1F1B" : "1F1B";
            case launch_order::zb_h1:
            case launch_order::zb_h2:
                if (!many) break;
                flags.note(text(name_of(how.order), " is run as InterleavedZeroBubble, whose warm-up is of its own"));
                return "InterleavedZeroBubble";
            case launch_order::eager_one_f_one_b: break;
            }
            throw wrong("the order of micro-batches is ", name_of(how.order), " with ", t.interleaved,
                        " stages on each group: must be gpipe or 1f1b with one, 1f1b, zb-h1 or zb-h2 with several");
        }();
        flags.add("--parallelism.pipeline_parallel_schedule", order);
        flags.add("--parallelism.pipeline_parallel_microbatch_size", t.micro_batch);
        flags.add("--training.local_batch_size", t.micro_batch * how.micro_batches);
        for (std::size_t s = 0; s < t.layers.size(); ++s)
            if (t.layers[s] != t.layers.front())
                throw wrong("stage ", s, " has ", t.layers[s], " layers, stage 0 ", t.layers.front(), ": its flags say one number of all stages");
        flags.add("--parallelism.pipeline_parallel_layers_per_stage", t.layers.front());
        flags.add("--parallelism.pipeline_parallel_first_stage_less_layers", 0);
        flags.add("--parallelism.pipeline_parallel_last_stage_less_layers", 0);
    } else {
        flags.add("--training.local_batch_size", t.micro_batch);
    }
    bool const bf16 = detail::has_type(p, ops::dtype::bf16);
    flags.add("--training.mixed_precision_param", bf16 ? "bfloat16" : "float32");
    flags.add("--training.mixed_precision_reduce", "float32");
    if (bf16) flags.note("the plan keeps parameters in bf16, torchtitan in float32 beside copies in bfloat16");
    if (bf16 && p.options.gradients == sim::gradient_type::of_weights) flags.note("the plan reduces gradients in bf16, torchtitan in float32");
    flags.add("--optimizer.name", "Adam");
    if (p.options.optimizer != sim::optimizer::adam)
        flags.note(text("the optimizer of the plan is ", name_of(p.options.optimizer), ": torchtitan has Adam and AdamW"));
    flags.add("--activation_checkpoint.mode", t.recomputes ? "full" : "none");
    if (t.recomputes) flags.note("each layer is a segment; in the plan segments are cut where least crosses");
    flags.write(out);
}

PARSEARCH_IO_INLINE void write_deepspeed_config(std::ostream& out, exported_plan const& p) {
    constexpr std::string_view runtime = "DeepSpeed";
    detail::refuse_inference(p, runtime);
    auto const t = textbook_of(p, runtime);
    auto const& how = p.plan.how;
    auto const refuse_above_one = [&](std::string_view what, std::uint32_t n) {
        if (n > 1) throw detail::takes_no_such(runtime, what, " is ", n, ": its configuration says replicas alone, must be 1");
    };
    refuse_above_one("tensor parallelism", t.tensor);
    refuse_above_one("context parallelism", t.context);
    refuse_above_one("expert parallelism", t.experts);
    refuse_above_one("the number of stages", how.stages);
    detail::refuse_offloaded(p, runtime, "its configuration does not say of which layers");
    if (t.recomputes) throw detail::takes_no_such(runtime, "activations are computed again: its configuration does not say of which layers");
    using pipeline::sharded_states;
    ordered_json root{
        {"train_batch_size", t.samples}, {"train_micro_batch_size_per_gpu", t.micro_batch}, {"gradient_accumulation_steps", how.micro_batches}};
    auto const stage = std::min<std::uint32_t>(static_cast<std::uint32_t>(how.sharded), 3);
    ordered_json zero{{"stage", stage}};
    if (how.sharded == sharded_states::parameters_within_nodes)
        zero["mics_shard_size"] = std::min<std::size_t>(p.topology.size(), detail::node_size(p));
    root["zero_optimization"] = std::move(zero);
    if (detail::has_type(p, ops::dtype::bf16)) root["bf16"] = {{"enabled", true}};
    if (detail::has_type(p, ops::dtype::f16)) root["fp16"] = {{"enabled", true}};
    write_json(out, root);
}

} // namespace parsearch::io
