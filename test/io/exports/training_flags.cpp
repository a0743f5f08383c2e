#include <parsearch/io/exports/training_flags.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/ring_attention.hpp>
#include <parsearch/io/exports/runtimes.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
struct planned {
    parallelization problem, part;
    pipeline::pipeline_plan plan;
    sim::simulation_options options{};

    [[nodiscard]] std::string written(std::string const& runtime) const {
        auto const files = find_runtime(runtime)->files(
            "file",
            {.graph = part.graph(), .topology = problem.topology(), .plan = plan, .options = options, .notes = {.model = "gpt", .topology = "2x4"}});
        REQUIRE(files.size() == 1);
        return files.front().content;
    }
    [[nodiscard]] std::string refused(std::string const& runtime) const {
        return support::refusal([&] { return written(runtime); });
    }
};
/// GPT of 4 layers and 32 samples on two nodes of four, on `groups` groups. Stage 1 begins at the operator number `layers` whose name ends with
/// `first`.
planned gpt(std::uint32_t tensor, std::uint32_t groups, std::uint32_t micro_batches, std::uint32_t layers = 2,
            std::string const& first = "attention.norm") {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto problem = make_problem(models::gpt({.layers = 4, .hidden = 32, .heads = 4, .sequence = 16, .vocabulary = 64, .batch = 32}), cluster,
                                cost::roofline{cluster});
    auto part = pipeline::micro_batch_problem(problem, micro_batches);
    auto const& g = part.graph();
    auto const devices = 8 / groups;
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = space::split_among_neighbours(g, devices, {.tensor = tensor})};
    plan.how.stages = groups;
    plan.how.micro_batches = micro_batches;
    plan.tensor_parallel.assign(groups, tensor);
    std::uint32_t stage = 0, seen = 0;
    for (auto const op : g.order) {
        if (g.names[op].ends_with(first) && groups > 1 && seen++ == layers) stage = 1;
        plan.how.stage[op] = stage;
        if (g.operations[op].work != ops::work_class::source) plan.strategy[op].start += static_cast<std::int32_t>(stage * devices);
    }
    return {std::move(problem), std::move(part), std::move(plan)};
}
/// The same in one stage, with positions over `context` groups of neighbours and heads over `heads` of them.
planned with_context(std::uint32_t context, std::uint32_t heads, bool ring, ops::dtype type = ops::dtype::f32) {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto const model = models::gpt({.layers = 2, .hidden = 32, .heads = 4, .sequence = 16, .vocabulary = 64, .batch = 32, .type = type});
    auto problem = make_problem(ring ? graph::with_ring_attention(model) : model, cluster, cost::roofline{cluster});
    auto part = pipeline::micro_batch_problem(problem, 1);
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(part.graph()),
                                 .strategy = space::split_among_neighbours(part.graph(), 8, {.context = context, .heads = heads})};
    plan.context_parallel = context;
    plan.context_heads = heads;
    plan.tensor_parallel = {1};
    plan.how.sharded = pipeline::sharded_states::parameters;
    planned out{std::move(problem), std::move(part), std::move(plan)};
    out.options.optimizer = sim::optimizer::adam;
    return out;
}
bool has_line(std::string const& text, std::string const& line) { return ('\n' + text).find('\n' + line + '\n') != std::string::npos; }
} // namespace

TEST_CASE("Megatron-LM gets degrees, micro-batches and shared states") {
    auto p = gpt(2, 2, 4);
    p.plan.how.sharded = pipeline::sharded_states::optimizer;
    CHECK(p.refused("megatron") == "Megatron-LM takes no such plan: states are shared, the optimizer is sgd: its distributed optimizer is adam's");
    p.options.optimizer = sim::optimizer::adam;
    auto const flags = p.written("megatron");
    for (auto const* line : {"--tensor-model-parallel-size 2", "--sequence-parallel", "--pipeline-model-parallel-size 2", "--context-parallel-size 1",
                             "--micro-batch-size 4", "--global-batch-size 32", "--use-distributed-optimizer", "--optimizer adam"})
        CHECK_MESSAGE(has_line(flags, line), line);
    CHECK(flags.find("layout") == std::string::npos);
    CHECK(has_line(gpt(1, 2, 4, 3).written("megatron"), "--pipeline-model-parallel-layout Et*3|tL"));
    p.plan.how.order = pipeline::launch_order::gpipe;
    CHECK(p.refused("megatron") == "Megatron-LM takes no such plan: the order of micro-batches is gpipe: it runs 1f1b");
    p = gpt(1, 1, 2);
    CHECK(has_line(p.written("megatron"), "--optimizer sgd"));
    CHECK(has_line(p.written("megatron"), "--sgd-momentum 0"));
    p.options.optimizer = sim::optimizer::adam;
    p.plan.how.sharded = pipeline::sharded_states::parameters;
    CHECK(has_line(p.written("megatron"), "--data-parallel-sharding-strategy optim_grads_params"));
    p.plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    CHECK(p.refused("megatron") == "Megatron-LM takes no such plan: states are shared within nodes: must be shared by all replicas");
}

TEST_CASE("torchtitan gets degrees and a schedule") {
    auto p = gpt(2, 2, 4);
    CHECK(p.refused("torchtitan") == "torchtitan takes no such plan: 2 replicas share no states, and tensor parallelism is 2: its DDP goes with no "
                                     "other parallelism, must be 1, or gradients or parameters shared");
    p.plan.how.sharded = pipeline::sharded_states::gradients;
    auto const flags = p.written("torchtitan");
    for (auto const* line :
         {"--parallelism.tensor_parallel_degree 2", "--parallelism.pipeline_parallel_degree 2", "--parallelism.data_parallel_replicate_degree 1",
          "--parallelism.data_parallel_shard_degree 2", "--parallelism.pipeline_parallel_layers_per_stage 2",
          "--parallelism.pipeline_parallel_first_stage_less_layers 0", "--parallelism.pipeline_parallel_last_stage_less_layers 0",
          "--training.mixed_precision_param float32", "--parallelism.pipeline_parallel_schedule 1F1B",
          "--parallelism.pipeline_parallel_microbatch_size 4", "--training.local_batch_size 16", "--training.global_batch_size 32"})
        CHECK_MESSAGE(has_line(flags, line), line);
    p = gpt(4, 2, 4, 3);
    CHECK(p.refused("torchtitan") == "torchtitan takes no such plan: stage 1 has 1 layers, stage 0 3: its flags say one number of all stages");
    p = gpt(1, 1, 1);
    p.plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    auto const within = p.written("torchtitan");
    CHECK(has_line(within, "--parallelism.data_parallel_replicate_degree 2"));
    CHECK(has_line(within, "--parallelism.data_parallel_shard_degree 4"));
    CHECK(has_line(within, "--parallelism.fsdp_reshard_after_forward always"));
    p.plan.how.sharded = pipeline::sharded_states::optimizer;
    CHECK(p.refused("torchtitan").find("the optimizer's state is shared alone") != std::string::npos);
}

TEST_CASE("DeepSpeed gets replicas alone") {
    auto p = gpt(1, 1, 2);
    p.plan.how.sharded = pipeline::sharded_states::gradients;
    auto const json = nlohmann::json::parse(p.written("deepspeed"));
    CHECK(json == nlohmann::json::parse(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
                                            "zero_optimization": {"stage": 2}})"));
    p.plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    CHECK(nlohmann::json::parse(p.written("deepspeed"))["zero_optimization"] == nlohmann::json::parse(R"({"stage": 3, "mics_shard_size": 4})"));
    CHECK(gpt(2, 1, 1).refused("deepspeed") ==
          "DeepSpeed takes no such plan: tensor parallelism is 2: its configuration says replicas alone, must be 1");
    CHECK(gpt(1, 2, 1).refused("deepspeed") ==
          "DeepSpeed takes no such plan: the number of stages is 2: its configuration says replicas alone, must be 1");
}

TEST_CASE("stages that begin within a layer are refused") {
    for (auto const* runtime : {"megatron", "torchtitan"}) {
        CHECK(gpt(4, 2, 4, 2, "mlp.norm")
                  .refused(runtime)
                  .find("operator 'block3.mlp.norm' (layer_norm) is in stage 1, with the layers that are cut "
                        "there it must be in stage 0") != std::string::npos);
        CHECK(gpt(4, 2, 4, 0, "embedding.dropout").refused(runtime).find("operator 'embedding.dropout' (dropout) is in stage 1") !=
              std::string::npos);
        CHECK(gpt(4, 2, 4, 0, "logits").refused(runtime).find("operator 'norm' (layer_norm) is in stage 0") != std::string::npos);
    }
}

TEST_CASE("how keys and values are exchanged has flags") {
    CHECK(has_line(with_context(4, 1, true).written("megatron"), "--cp-comm-type p2p"));
    CHECK(has_line(with_context(4, 1, false).written("megatron"), "--cp-comm-type all_gather"));
    CHECK(has_line(with_context(4, 4, false).written("megatron"), "--cp-comm-type a2a"));
    CHECK(with_context(4, 2, false).refused("megatron") == "Megatron-LM takes no such plan: attention has heads over 2 of the 4 parts of sequences: "
                                                           "--cp-comm-type a2a splits them over all parts, must be 1 or 4");
    CHECK(has_line(with_context(4, 1, true).written("torchtitan"), "--parallelism.context_parallel_rotate_method alltoall"));
    CHECK(has_line(with_context(4, 1, false).written("torchtitan"), "--parallelism.context_parallel_rotate_method allgather"));
    for (auto const* runtime : {"jax", "pytorch"}) {
        std::string const said = "operator 'block1.attention' is the first that passes keys and values on in a ring";
        CHECK(with_context(4, 1, true).written(runtime).find(said) != std::string::npos);
        CHECK(with_context(4, 1, false).written(runtime).find(said) == std::string::npos);
    }
}

TEST_CASE("types and experts have flags") {
    auto p = with_context(1, 1, false, ops::dtype::bf16);
    CHECK(has_line(p.written("megatron"), "--bf16"));
    CHECK(!has_line(p.written("megatron"), "--grad-reduce-in-bf16"));
    CHECK(has_line(p.written("torchtitan"), "--training.mixed_precision_param bfloat16"));
    CHECK(has_line(p.written("torchtitan"), "--optimizer.name Adam"));
    p.options.gradients = sim::gradient_type::of_weights;
    CHECK(has_line(p.written("megatron"), "--grad-reduce-in-bf16"));
    CHECK(p.written("torchtitan").find("# the plan reduces gradients in bf16, torchtitan in float32\n") != std::string::npos);
    CHECK(with_context(1, 1, false, ops::dtype::f16).refused("torchtitan").find("weights are f16") != std::string::npos);

    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto problem = make_problem(
        models::moe(
            {.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 4, .feed_forward = 64, .experts = 4, .sequence = 16, .vocabulary = 64, .batch = 8}),
        cluster, cost::roofline{cluster});
    auto part = pipeline::micro_batch_problem(problem, 1);
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(part.graph()),
                                 .strategy = space::split_among_neighbours(part.graph(), 4, {.experts = 4})};
    plan.expert_parallel = 4;
    plan.tensor_parallel = {1};
    planned const experts{std::move(problem), std::move(part), std::move(plan)};
    CHECK(has_line(experts.written("megatron"), "--expert-model-parallel-size 4"));
    CHECK(has_line(experts.written("megatron"), "--moe-token-dispatcher-type alltoall"));
    CHECK(experts.refused("torchtitan").find("4 replicas share no states, and expert parallelism is 4") != std::string::npos);
}

TEST_CASE("activations on hosts are refused by all, inference by those that train") {
    auto p = gpt(1, 1, 1);
    auto const& g = p.part.graph();
    for (auto const& runtime : runtime_exports) {
        if (runtime.name == "vllm") continue; // refuses training
        p.plan.how.offloaded.assign(g.size(), false);
        for (std::size_t op = 0; op < g.size(); ++op) p.plan.how.offloaded[op] = g.names[op] == "block2.mlp.1";
        CHECK_MESSAGE(p.refused(std::string(runtime.name)).find("operator 'block2.mlp.1' has its activations on the host until backward: ") !=
                          std::string::npos,
                      runtime.name);
    }
    p.plan.how.offloaded.clear();
    p.options.training = false;
    for (auto const* runtime : {"megatron", "torchtitan", "deepspeed"})
        CHECK(p.refused(runtime).find("takes no such plan: it is of forward alone: the runtime trains") != std::string::npos);
}

TEST_CASE("nodes of different sizes share nothing within them") {
    auto const p = gpt(1, 1, 1);
    auto plan = p.plan;
    plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    auto irregular = p.problem.topology();
    irregular.node = {0, 0, 0, 1, 1, 1, 1, 1};
    for (auto const* runtime : {"jax", "torchtitan", "pytorch", "deepspeed"})
        CHECK(support::refusal([&] {
                  return find_runtime(runtime)->files("file", {.graph = p.part.graph(), .topology = irregular, .plan = plan, .options = p.options});
              }).find("8 devices are not on nodes of as many in a row") != std::string::npos);
}

TEST_CASE("an operator that is not as the numbers say is named") {
    auto p = gpt(2, 1, 1);
    auto const& g = p.part.graph();
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.names[op] == "block2.mlp.1") p.plan.strategy[op] = space::split_samples(g.operations[op], 8);
    auto const refused = p.refused("megatron");
    CHECK(refused.find("operator 'block2.mlp.1' (linear) is s8 @0+1, with tensor parallelism of 2") != std::string::npos);
    CHECK(refused.find("it must be s4 o2 @0+2,1") != std::string::npos);
}

TEST_CASE("a strategy without a degree is recognised") {
    auto p = gpt(4, 1, 1);
    p.plan.tensor_parallel.clear();
    CHECK(has_line(p.written("megatron"), "--tensor-model-parallel-size 4"));
}

TEST_CASE("runtimes are found by name") {
    CHECK(runtime_names() == "jax, megatron, torchtitan, pytorch, deepspeed, vllm, chakra");
    for (auto const& r : runtime_exports) CHECK(find_runtime(r.name) == &r);
    CHECK(find_runtime("mesh") == nullptr);
}
