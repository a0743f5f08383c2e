#include <parsearch/io/exports/jax_export.hpp>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
struct written_plan {
    parallelization problem;
    pipeline::pipeline_plan plan;
    sim::simulation_options options{};

    [[nodiscard]] nlohmann::json json(sim::report const* report = nullptr) const {
        std::ostringstream out;
        write_jax_export(out, {.graph = problem.graph(), .topology = problem.topology(), .plan = plan, .options = options, .report = report});
        return nlohmann::json::parse(out.str());
    }
};
written_plan of(space::flat_strategy (*strategy)(graph::dense_graph const&, std::size_t), std::uint32_t nodes = 1) {
    auto const model = models::mlp({.features = 16, .hidden = {32, 32}, .classes = 8, .batch = 16});
    auto const cluster = topology::nodes({.count = nodes, .gpus_per_node = 4 / nodes, .device = topology::h100_sxm});
    auto problem = make_problem(model, cluster, cost::roofline{cluster});
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(problem.graph()), .strategy = strategy(problem.graph(), 4)};
    return {std::move(problem), std::move(plan)};
}
nlohmann::json named(nlohmann::json const& list, std::string const& name) {
    for (auto const& one : list)
        if (one["name"] == name) return one;
    return {};
}
space::flat_strategy split_batch(graph::dense_graph const& g, std::size_t devices) { return space::data_parallel(g, devices); }
space::flat_strategy tensor_2(graph::dense_graph const& g, std::size_t devices) { return space::tensor_parallel(g, devices, 2); }
} // namespace

TEST_CASE("parameters and activations have specs by the axes of the mesh") {
    auto const p = of(tensor_2);
    auto const json = p.json();
    CHECK(json["format"] == "parsearch.jax");
    CHECK(json["stages"][0]["mesh"] == nlohmann::json::parse(R"([{"name": "data", "size": 2}, {"name": "model", "size": 2}])"));
    auto const weight = named(json["parameters"], "fc1.weight");
    CHECK(weight["spec"] == nlohmann::json::parse(R"([["model"], []])"));
    CHECK(weight["replicas"] == nlohmann::json::parse(R"(["data"])"));
    CHECK(!weight.contains("state_spec"));
    CHECK(named(json["parameters"], "fc2.weight")["spec"] == nlohmann::json::parse(R"([[], ["model"]])"));
    auto const fc2 = named(json["operators"], "fc2");
    CHECK(fc2["outputs"][0]["spec"] == nlohmann::json::parse(R"([["data"], []])"));
    CHECK(fc2["outputs"][0]["partial"] == nlohmann::json::parse(R"(["model"])"));
    REQUIRE(json["notes"].size() == 1);
    CHECK(json["notes"][0].get<std::string>().find("partial sums, the first 'fc2'") != std::string::npos);
    CHECK(json["launches"] == nlohmann::json::parse(R"([["forward", 0, 0], ["backward", 0, 0]])"));
}

TEST_CASE("shared states have specs of their own") {
    auto p = of(split_batch, 2);
    p.plan.how.sharded = pipeline::sharded_states::parameters;
    CHECK(named(p.json()["parameters"], "fc1.weight")["state_spec"] == nlohmann::json::parse(R"([["data"], []])"));
    p.plan.how.sharded = pipeline::sharded_states::parameters_within_nodes;
    auto const within = p.json();
    CHECK(within["stages"][0]["mesh"] == nlohmann::json::parse(R"([{"name": "data", "size": 2}, {"name": "data2", "size": 2}])"));
    CHECK(named(within["parameters"], "fc1.weight")["state_spec"] == nlohmann::json::parse(R"([["data2"], []])"));
    CHECK(named(within["parameters"], "fc1.weight")["replicas"] == nlohmann::json::parse(R"(["data", "data2"])"));
}

TEST_CASE("what is predicted is counted once for each message and collective") {
    auto const p = of(split_batch);
    auto evaluate = p.problem.simulator();
    auto const report = sim::make_report(evaluate, p.plan.strategy);
    auto const json = p.json(&report);
    double bytes = 0;
    for (auto const& move : json["predicted"]["moves"]) {
        CHECK(move["kind"] == "all_reduce");
        CHECK(move["traffic"] == "weight_gradient");
        CHECK(move["devices"] == 4);
        bytes += 2 * 3 * move["bytes"].get<double>() * move["times"].get<double>();
    }
    CHECK(bytes == report.bytes_moved());
    CHECK(json["predicted"]["memory"].size() == 4);
    CHECK(json["predicted"]["memory"][0]["weights"] == report.memory[0].weights);
}

TEST_CASE("an operator on fewer devices is noted, a parameter of two stages refused") {
    auto p = of(split_batch);
    p.plan.strategy[1] = space::whole(p.problem.graph().operations[1], 2);
    auto const notes = p.json()["notes"];
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].get<std::string>().starts_with("1 operator runs on fewer devices than the mesh has, the first '"));

    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 2, .device = topology::h100_sxm});
    auto problem = make_problem(models::gpt({.layers = 1, .hidden = 16, .heads = 2, .sequence = 8, .vocabulary = 32, .batch = 4}), cluster,
                                cost::roofline{cluster});
    auto const& g = problem.graph();
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(g), .strategy = space::one_device(g)};
    plan.how.stages = 2;
    std::string tied;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        bool const last = g.names[op] == "logits" || g.names[op] == "loss";
        plan.how.stage[op] = last ? 1 : 0;
        if (last) plan.strategy[op] = space::whole(g.operations[op], 1);
        if (g.names[op] == "logits") tied = g.operations[op].weights[0].parameter;
    }
    written_plan const staged{std::move(problem), std::move(plan)};
    auto const refused = support::refusal([&] { return staged.json(); });
    if (tied.empty()) CHECK(refused.empty());
    else CHECK(refused.find("is of stage 0, too: a parameter of several stages is not exported") != std::string::npos);
}

TEST_CASE("what blocks of shared parameters move is told parameter by parameter") {
    for (auto const sharded :
         {pipeline::sharded_states::gradients, pipeline::sharded_states::parameters, pipeline::sharded_states::parameters_within_nodes})
        for (std::uint32_t const operators_of_a_block : {1U, 3U}) {
            auto p = of(split_batch, 2);
            p.plan.how.sharded = sharded;
            for (std::uint32_t op = 0; op < p.problem.graph().size(); ++op) p.plan.how.block.push_back(op / operators_of_a_block);
            auto const report = simulate(p.problem, p.plan);
            auto const json = p.json(&report);
            double bytes = 0;
            for (auto const& move : json["predicted"]["moves"]) {
                auto const ring = move["kind"] == "all_reduce" ? 2.0 : 1.0;
                bytes += ring * (move["devices"].get<double>() - 1) * move["bytes"].get<double>() * move["times"].get<double>();
            }
            CHECK(bytes == report.bytes_moved());
        }
}
