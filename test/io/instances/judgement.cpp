#include <parsearch/io/instances/judgement.hpp>

#include <cstddef>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/json_schema.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
network_instance gpt(instance_question asks, byte_count memory) {
    auto device = topology::p100_sxm;
    device.memory = memory;
    network_instance n{.asks = asks,
                       .graph = graph::read_graph(make_model("gpt,layers=2,hidden=64,heads=4,sequence=32,vocabulary=1000,batch=16")).graph,
                       .cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = device})};
    n.options.simulation.memory = sim::memory_policy::reject;
    return n;
}
constexpr byte_count enough = byte_count{16} << 30;
std::string written(network_instance const& n, pipeline::pipeline_plan const& plan) {
    std::ostringstream out;
    write_plan_json(out, n.problem(), plan);
    return out.str();
}
judgement judged(instance const& i, std::string const& solution) {
    std::istringstream in(solution);
    return judge(i, in, "s.json");
}
pipeline::pipeline_plan of(parallelization const& problem, space::flat_strategy s) {
    return {.how = pipeline::unpipelined(problem.graph()), .strategy = std::move(s)};
}
/// Samples over the four devices, in two micro-batches.
pipeline::pipeline_plan accumulating(parallelization const& problem) {
    auto plan = of(problem, {});
    plan.how.micro_batches = 2;
    plan.how.sharded = pipeline::sharded_states::optimizer;
    plan.strategy = data_parallel(pipeline::micro_batch_problem(problem, 2));
    return plan;
}
} // namespace

TEST_CASE("judgement: a strategy costs what the evaluator says, with the memory of the simulation") {
    auto const n = gpt(instance_question::strategy, enough);
    auto const problem = n.problem();
    constexpr std::uint64_t seed = 271;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < support::cases(40); ++round) {
        auto const s = support::random_strategy(rng, problem);
        auto const v = judge(n, of(problem, s));
        CHECK(v.feasible());
        CHECK(v.cost == problem.evaluator()(s));
        CHECK(v.memory == simulate(problem, s).memory);
        CHECK(v.capacity == std::vector<byte_count>(4, problem.topology().devices[0].memory));
        CHECK(judged({.of = n}, written(n, of(problem, s))).cost == v.cost);
    }
}

TEST_CASE("judgement: a plan costs what the simulator of pipelines says") {
    auto const n = gpt(instance_question::plan, enough);
    auto const problem = n.problem();
    auto const plan = accumulating(problem);
    auto const v = judge(n, plan);
    CHECK(v.reason == "");
    pipeline::pipeline_simulator simulator(problem);
    CHECK(v.cost == simulator(plan.how, plan.strategy));
    CHECK(v.memory == simulator.memory());
    CHECK(judged({.of = n}, written(n, plan)).cost == v.cost);
    CHECK(judge(n, of(problem, data_parallel(problem))).cost == problem.evaluator()(data_parallel(problem)));
}

TEST_CASE("judgement: what is not feasible, and why") {
    auto const n = gpt(instance_question::strategy, enough);
    auto const problem = n.problem();
    CHECK(judge(n, accumulating(problem)).reason == "the plan has 2 micro-batches: the instance asks for a strategy, which has none");
    auto s = data_parallel(problem);
    s.pop_back();
    CHECK(judge(n, of(problem, s)).reason ==
          text("the plan has ", problem.size() - 1, " configurations: the graph has ", problem.size(), " operators"));

    auto apart = n;
    apart.options.space.sample = false;
    auto const outside = judge(apart, of(problem, data_parallel(problem)));
    CHECK(outside.reason.ends_with("is outside of the instance's space, which does not split it so"));
    auto elsewhere = data_parallel(problem);
    auto& moved = elsewhere[problem.graph().order.back()];
    moved.start = 0;
    moved.stride = {};
    moved.listed = {1, 0, 3, 2};
    CHECK(judge(n, of(problem, elsewhere)).reason.ends_with("is outside of the instance's space, which splits it so, but not on these devices"));
    moved.listed = {0, 1, 2, 3}; // the same devices, said otherwise
    CHECK(judge(n, of(problem, elsewhere)).cost == judge(n, of(problem, data_parallel(problem))).cost);
    auto inputs = data_parallel(problem); // have no tasks
    for (std::size_t op = 0; op < problem.size(); ++op)
        if (auto const& operation = problem.graph().operations[op]; operation.work == ops::work_class::source) {
            inputs[op] = space::whole(operation);
            inputs[op].start = 1;
        }
    CHECK(judge(n, of(problem, inputs)).cost == judge(n, of(problem, data_parallel(problem))).cost);
    moved.listed = {0, 1, 2, 4};
    CHECK(judge(n, of(problem, elsewhere)).reason.find("device 4") != std::string::npos);
    CHECK(!outside.feasible());
    CHECK(outside.memory.empty());

    auto const tight = gpt(instance_question::strategy, byte_count{1} << 20);
    auto const v = judge(tight, of(problem, data_parallel(problem)));
    CHECK(v.reason == text("device 0 needs ", v.memory[0].total(), " bytes of the ", v.capacity[0], " that it has; 4 devices have too few"));
    CHECK(v.memory == judge(n, of(problem, data_parallel(problem))).memory); // which is told nevertheless
    auto priced = tight;                                                     // too little memory costs time then
    priced.options.simulation.memory = sim::memory_policy::penalise;
    auto const penalised = judge(priced, of(problem, data_parallel(problem)));
    CHECK(penalised.feasible());
    CHECK(penalised.cost - penalised.penalty == judge(n, of(problem, data_parallel(problem))).cost);
    CHECK(penalised.penalty > picoseconds{0});
    priced.options.simulation.memory = sim::memory_policy::ignore;
    CHECK(judge(priced, of(problem, data_parallel(problem))).cost == judge(n, of(problem, data_parallel(problem))).cost);

    CHECK(judged({.of = n}, "{}").reason == "s.json: format is missing: a document says its format and version");
    CHECK(judged({.of = n}, "[").reason.find("s.json:1:") == 0);
    CHECK(judged({.of = n}, R"({"format": "parsearch.choices", "version": 1, "choices": []})").reason ==
          "s.json: format is \"parsearch.choices\": must be \"parsearch.plan\"");
}

TEST_CASE("judgement: choices of tables, within a budget") {
    using search::numbered_strategy;
    auto const infinite = cost_traits<picoseconds>::infinity();
    constexpr auto time = [](std::int64_t n) { return picoseconds{n}; };
    table_instance const t{
        .names = {"a", "b"},
        .costs = search::additive_problem<picoseconds>(
            {{{time(5), time(1)}, {time(3), time(0), infinite}}, {{0, 1}}, {{time(0), time(2), time(0), time(7), infinite, time(0)}}}),
        .budget = 10,
        .memory = {{1, 9}, {2, 1, 2}}};
    auto const v = judge(t, numbered_strategy{0, 1});
    CHECK(v.feasible());
    CHECK(v.cost == picoseconds{7});
    CHECK(v.table_memory == 2);
    CHECK(judge(t, numbered_strategy{1, 0}).reason == "the choices take 11 bytes of the 10 that there are");
    CHECK(judge(t, numbered_strategy{1, 1}).reason ==
          "choice 1 of decision 0 (\"a\") and choice 1 of decision 1 (\"b\"): do not go together, as pair 0 says");
    CHECK(judge(t, numbered_strategy{0, 2}).reason == "choice 2 of decision 1 (\"b\"): may not be made");
    CHECK(judge(t, numbered_strategy{0, 3}).reason == "choice 3 of decision 1 (\"b\"): it has 3, numbered from 0");
    CHECK(judge(t, numbered_strategy{0}).reason == "1 choices: there are 2 decisions, must be one each");

    // Memory beyond 64 bits is not less.
    constexpr std::size_t many = 8192;
    std::vector<std::vector<picoseconds>> const costs(many, {time(1)});
    table_instance const large{.names = std::vector<std::string>(many, "x"),
                               .costs = search::additive_problem<picoseconds>({costs, {}, {}}),
                               .budget = 10,
                               .memory = std::vector<std::vector<byte_count>>(many, {byte_count{1} << 50})};
    CHECK(judge(large, numbered_strategy(many, 0)).reason == "the choices take 9223372036854775807 bytes of the 10 that there are");

    std::ostringstream out;
    write_choices_json(out, {0, 1});
    CHECK(out.str() == "{\n  \"format\": \"parsearch.choices\",\n  \"version\": 1,\n  \"choices\": [0, 1]\n}\n");
    CHECK(support::json_schema("choices").complaint(out.str()) == "");
    CHECK(judged({.of = t}, out.str()).cost == picoseconds{7});
    CHECK(judged({.of = t}, R"({"format": "parsearch.choices", "version": 1, "choices": [0, -1]})").reason ==
          "s.json: choices[1] is -1: must be an integer from 0 to 4294967295");
}
