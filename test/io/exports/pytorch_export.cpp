#include <parsearch/io/exports/pytorch_export.hpp>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
struct planned {
    parallelization problem;
    pipeline::pipeline_plan plan;

    [[nodiscard]] nlohmann::json json() const {
        sim::simulation_options const options{};
        std::ostringstream out;
        write_pytorch_export(out, {.graph = problem.graph(), .topology = problem.topology(), .plan = plan, .options = options});
        return nlohmann::json::parse(out.str());
    }
};
planned gpt(std::size_t tensor) {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto problem = make_problem(models::gpt({.layers = 2, .hidden = 32, .heads = 4, .sequence = 16, .vocabulary = 64, .batch = 32}), cluster,
                                cost::roofline{cluster});
    auto const& g = problem.graph();
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = space::tensor_parallel(g, 8, tensor)};
    return {std::move(problem), std::move(plan)};
}
/// Llama in two stages, cut at its second block.
planned staged_llama(bool tied) {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto const model = models::llama(
        {.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 4, .feed_forward = 64, .sequence = 16, .vocabulary = 64, .tied = tied, .batch = 32});
    auto problem = make_problem(model, cluster, cost::roofline{cluster});
    auto const& g = problem.graph();
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = space::one_device(g)};
    plan.how.stages = 2;
    bool later = false;
    for (auto const op : g.order) {
        later = later || g.names[op] == "block2.attention.norm";
        plan.how.stage[op] = later ? 1 : 0;
        if (later && g.operations[op].work != ops::work_class::source) plan.strategy[op] = space::whole(g.operations[op], 4);
    }
    return {std::move(problem), std::move(plan)};
}
nlohmann::json of(nlohmann::json const& list, std::string const& member, std::string const& name) {
    for (auto const& one : list)
        if (one[member] == name) return one;
    return {};
}
} // namespace

TEST_CASE("parameters have placements, modules styles") {
    auto const json = gpt(2).json();
    CHECK(json["device_meshes"] == nlohmann::json::parse(R"json([{"first_rank": 0, "shape": [4, 2], "names": ["data", "model"]}])json"));
    CHECK(of(json["parameters"], "name", "block1.mlp.1.weight")["placements"] == nlohmann::json::parse(R"json(["Replicate()", "Shard(0)"])json"));
    CHECK(of(json["activations"], "operator", "block1.mlp.2")["placements"] == nlohmann::json::parse(R"json(["Shard(0)", "Partial()"])json"));
    CHECK(of(json["activations"], "operator", "block1.mlp.add")["placements"] == nlohmann::json::parse(R"json(["Shard(0)", "Shard(1)"])json"));
    auto const up = of(json["parallelize_module"], "module", "block1.mlp.1"), down = of(json["parallelize_module"], "module", "block1.mlp.2");
    CHECK(up["style"] == "ColwiseParallel");
    CHECK(up["output_layouts"] == "Shard(2)");
    CHECK(down["style"] == "RowwiseParallel");
    CHECK(down["output_layouts"] == "Shard(1)");
    CHECK(of(json["parallelize_module"], "module", "block1.mlp.norm")["style"] == "SequenceParallel");
    CHECK(of(json["parallelize_module"], "module", "tokens")["style"] == "RowwiseParallel");
    CHECK(gpt(1).json()["parallelize_module"].empty());
}

TEST_CASE("shared states name a function or a class") {
    auto p = gpt(1);
    CHECK(!p.json().contains("sharded_states"));
    p.plan.how.sharded = pipeline::sharded_states::optimizer;
    CHECK(p.json()["sharded_states"]["class"] == "torch.distributed.optim.ZeroRedundancyOptimizer");
    p.plan.how.sharded = pipeline::sharded_states::gradients;
    CHECK(p.json()["sharded_states"]["reshard_after_forward"] == false);
    p.plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    auto const within = p.json()["sharded_states"];
    CHECK(within["reshard_after_forward"] == true);
    CHECK(within["shard_within"] == 4);
}

TEST_CASE("stages are split at operators, in an order that PyTorch has") {
    auto p = staged_llama(false);
    CHECK(support::refusal([] { return staged_llama(true).json(); }) ==
          "operator 'logits' (linear) of stage 1: parameter 'tokens.weight' is of stage 0, too: a parameter of several stages is not exported");
    auto const pipelining = p.json()["pipelining"];
    CHECK(pipelining["schedule"] == "Schedule1F1B");
    CHECK(pipelining["split_spec"] == nlohmann::json::parse(R"json([{"stage": 1, "operator": "block2.attention.norm", "point": "BEGINNING",
                                                               "module": "block2.attention.norm"}])json"));
    p.plan.how.order = pipeline::launch_order::eager_one_f_one_b;
    CHECK(support::refusal([&] { return p.json(); }).find("the order of micro-batches is eager-1f1b with 1 stages on each group") !=
          std::string::npos);
}
