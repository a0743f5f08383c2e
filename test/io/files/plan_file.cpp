#include <parsearch/io/files/plan_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;
using pipeline::pipeline_plan;

namespace {
/// x -> fc1 (s 64, o 32, k 16) -> relu -> fc 2 (s 64, o 10, k 32).
graph::dense_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 16}});
    g.add("fc 2", ops::linear{.out = 10}, g.add("relu", ops::relu{}, g.add("fc1", ops::linear{.out = 32}, x)));
    return graph::read_graph(g).graph;
}
std::string written(graph::dense_graph const& g, std::size_t devices, pipeline_plan const& p, plan_notes const& notes = {}) {
    std::ostringstream out;
    write_plan_json(out, g, devices, p, notes);
    return out.str();
}
pipeline_plan read(graph::dense_graph const& g, std::size_t devices, std::string const& text, plan_notes* notes = nullptr) {
    std::istringstream in(text);
    return read_plan_json(in, "p.json", g, devices, notes);
}
support::json_schema const& schema() {
    static support::json_schema const made("plan");
    return made;
}
// `p` of `g` fits the schema and reads back equal, and what is read is written alike.
void check_round_trip(graph::dense_graph const& g, std::size_t devices, pipeline_plan const& p, plan_notes const& notes = {}) {
    auto const text = written(g, devices, p, notes);
    plan_notes said;
    auto const again = read(g, devices, text, &said);
    CHECK(again == p);
    CHECK(said == notes);
    CHECK(written(g, devices, again, said) == text);
    CHECK(schema().complaint(text) == "");
}

constexpr char const* small = R"({
  "format": "parsearch.plan",
  "version": 1,
  "model": {"name": "two layers", "operators": 4},
  "topology": {"devices": 8},
  "predicted_ps": 1234,
  "micro_batches": 4,
  "order": "1f1b",
  "sharded_optimizer": true,
  "inputs": [{"name": "x", "start": 3}],
  "stages": [
    {
      "tensor_parallel": 2,
      "recompute": true,
      "operators": [{"name": "relu", "start": 1, "segment": 5, "offloaded": true}, {"name": "fc1", "degrees": {"s": 2, "o": 2}, "start": 0, "strides": {"s": 2, "o": 1}, "segment": 2}]
    },
    {"tensor_parallel": 1, "recompute": false, "operators": [{"name": "fc 2", "degrees": {"k": 2}, "devices": [5, 4], "segment": 0}]}
  ]
})";
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return read(two_layers(), 8, support::replaced(small, part, by)).strategy.size(); });
}
} // namespace

TEST_CASE("plan JSON: a document by hand") {
    auto const g = two_layers();
    plan_notes notes;
    auto const p = read(g, 8, small, &notes);
    CHECK(schema().complaint(std::string(small)) == "");
    CHECK(notes == plan_notes{.model = "two layers", .topology = "", .predicted = picoseconds{1234}});
    CHECK(p.how == pipeline::pipelining{.stage = {0, 0, 0, 1},
                                        .stages = 2,
                                        .micro_batches = 4,
                                        .order = pipeline::launch_order::one_f_one_b,
                                        .recompute = {true, false},
                                        .segment = {0, 2, 5, 0},
                                        .sharded = pipeline::sharded_states::optimizer,
                                        .offloaded = {false, false, true, false}});
    CHECK(p.tensor_parallel == std::vector<std::uint32_t>{2, 1});
    CHECK(p.expert_parallel == 1);
    CHECK(p.context_parallel == 1);
    auto const part = pipeline::micro_batch(g, 4);
    CHECK(to_string(p.strategy[0], part.operations[0]) == "whole @3");
    CHECK(to_string(p.strategy[1], part.operations[1]) == "s2 o2 @0+2,1");
    CHECK(to_string(p.strategy[2], part.operations[2]) == "whole @1");
    CHECK(to_string(p.strategy[3], part.operations[3]) == "k2 @{5,4}");
    // Written: by operator number in each stage.
    CHECK(written(g, 8, p, notes) == R"({
  "format": "parsearch.plan",
  "version": 1,
  "model": {"name": "two layers", "operators": 4},
  "topology": {"devices": 8},
  "predicted_ps": 1234,
  "micro_batches": 4,
  "order": "1f1b",
  "sharded_optimizer": true,
  "inputs": [{"name": "x", "start": 3}],
  "stages": [
    {
      "tensor_parallel": 2,
      "recompute": true,
      "operators": [
        {"name": "fc1", "degrees": {"s": 2, "o": 2}, "start": 0, "strides": {"s": 2, "o": 1}, "segment": 2},
        {"name": "relu", "start": 1, "segment": 5, "offloaded": true}
      ]
    },
    {"tensor_parallel": 1, "recompute": false, "operators": [{"name": "fc 2", "degrees": {"k": 2}, "devices": [5, 4], "segment": 0}]}
  ]
}
)");
    check_round_trip(g, 8, p, notes);
}

TEST_CASE("plan JSON: the example of the documentation") {
    auto const example = support::documented_example("parsearch.plan");
    CHECK(schema().complaint(example) == "");
    auto const g = graph::read_graph(models::mlp({.features = 4096, .hidden = {8192}, .classes = 1000, .batch = 256})).graph;
    auto const p = read(g, 4, example);
    CHECK(p.how.stages == 2);
    check_round_trip(g, 4, p);
}

TEST_CASE("plan JSON: a network as it is, a stage without operators, the stage of inputs") {
    auto const g = two_layers();
    pipeline_plan p{.how = pipeline::unpipelined(g), .strategy = space::data_parallel(g, 8)};
    CHECK(written(g, 8, p).find("recompute") == std::string::npos);
    CHECK(written(g, 8, p).find("tensor_parallel") == std::string::npos);
    CHECK(written(g, 8, p).find("segment") == std::string::npos);
    check_round_trip(g, 8, p);
    p.how.stages = 3;
    p.how.stage = {0, 0, 2, 2};
    check_round_trip(g, 8, p);
    p.how.stage[0] = 2; // does not matter
    CHECK(read(g, 8, written(g, 8, p)).how.stage == std::vector<std::uint32_t>{0, 0, 2, 2});
}

TEST_CASE("plan JSON: what is wrong is named") {
    CHECK(refused("\"version\": 1", "\"version\": 2") == "p.json: version is 2: must be 1, which this release reads");
    CHECK(refused("parsearch.plan", "parsearch.run") == "p.json: format is \"parsearch.run\": must be \"parsearch.plan\"");
    CHECK(refused("parsearch.plan", "parsearch.strategy") == "p.json: inputs: unknown member: known are format, version, model, topology, "
                                                             "predicted_ps, rewritten_by, operators");
    CHECK(support::refusal([&] { return read(two_layers(), 8, "[]").strategy.size(); }) ==
          "p.json: the document is an array of 0: must be an object");
    CHECK(refused("\"operators\": 4", "\"operators\": 5") == "p.json: model.operators is 5: the graph has 4");
    CHECK(refused("\"devices\": 8", "\"devices\": 16") == "p.json: topology.devices is 16: the topology has 8");
    CHECK(refused("\"micro_batches\": 4,", "") == "p.json: micro_batches is missing");
    CHECK(refused("\"micro_batches\": 4", "\"micro_batches\": 0") == "p.json: micro_batches is 0: must be an integer from 1 to 4294967295");
    CHECK(refused("\"micro_batches\": 4", "\"micro_batches\": 3") ==
          "p.json: micro_batches: micro-batches: operator 'fc1' (linear) has 64 samples: 3 micro-batches must divide them");
    CHECK(refused("\"1f1b\"", "\"interleaved\"") == "p.json: order is \"interleaved\": must be one of gpipe, 1f1b, eager-1f1b, zb-h1, zb-h2");
    CHECK(refused("\"sharded_optimizer\": true", "\"sharded_optimizer\": 1") == "p.json: sharded_optimizer is 1: must be true or false");
    CHECK(refused("\"sharded_optimizer\": true", "\"sharded_optimizer\": false, \"sharded_gradients\": true") ==
          "p.json: sharded_gradients is true: must be false where sharded_optimizer is");
    CHECK(refused("\"sharded_optimizer\": true", "\"sharded_optimizer\": false, \"sharded_parameters\": true") ==
          "p.json: sharded_parameters is true: must be false where sharded_optimizer is");
    CHECK(refused("\"sharded_optimizer\": true", "\"sharded_optimizer\": true, \"sharded_within_nodes\": true") ==
          "p.json: sharded_within_nodes is true: must be false where sharded_parameters is");
    CHECK(refused("\"name\": \"x\"", "\"name\": \"fc1\"") == "p.json: inputs[0].name is \"fc1\": is no graph input: must be in a stage");
    CHECK(refused("{\"name\": \"relu\", \"start\": 1, \"segment\": 5, \"offloaded\": true}",
                  "{\"name\": \"relu\", \"start\": 1, \"segment\": 5, \"offloaded\": true}, {\"name\": \"x\", \"start\": 1}") ==
          "p.json: stages[0].operators[1].name is \"x\": is the operator of inputs[0] already: once is enough");
    CHECK(refused("\"inputs\": [{\"name\": \"x\", \"start\": 3}],\n  \"stages\": [\n    {\n      \"tensor_parallel\": 2,\n      \"recompute\": "
                  "true,\n      \"operators\": [",
                  "\"stages\": [\n    {\n      \"tensor_parallel\": 2,\n      \"recompute\": true,\n      \"operators\": [{\"name\": \"x\", "
                  "\"start\": 3}, ") == "p.json: stages[0].operators[0].name is \"x\": is a graph input: must be among inputs, and is in no stage");
    CHECK(refused("\"name\": \"fc 2\"", "\"name\": \"relu\"") ==
          "p.json: stages[1].operators[0].name is \"relu\": is the operator of stages[0].operators[0] already: once is enough");
    CHECK(refused("\"name\": \"fc 2\"", "\"name\": \"fc3\"") ==
          "p.json: stages[1].operators[0].name is \"fc3\": must be the name of an operator of the graph");
    CHECK(refused("{\"name\": \"relu\", \"start\": 1, \"segment\": 5, \"offloaded\": true}, ", "") ==
          "p.json: stages: operator \"relu\" is missing: all but graph inputs must be there");
    CHECK(refused("\"s\": 2, \"o\": 2", "\"s\": 32, \"o\": 2") ==
          "p.json: stages[0].operators[1]: operator 'fc1' (linear): configuration splits dim 's' of extent 16 by 32: must be from 1 to the extent");
    CHECK(refused("[5, 4]", "[5, 8]") ==
          "p.json: stages[1].operators[0]: operator 'fc 2' (linear): configuration puts shard 1 on device 8: the topology has 8");
    CHECK(refused("\"tensor_parallel\": 2", "\"tensor_parallel\": 9") == "p.json: stages[0].tensor_parallel is 9: must be an integer from 1 to 8");
    CHECK(refused("\"tensor_parallel\": 1, ", "") ==
          "p.json: stages[1]: tensor_parallel is missing, and stages[0] has it: must be of all stages or of none");
    CHECK(refused("\"recompute\": true,", "") == "p.json: stages[1]: recompute is given, and stages[0] has none: must be of all stages or of none");
    CHECK(refused("\"offloaded\": true", "\"offloaded\": 1") == "p.json: stages[0].operators[0].offloaded is 1: must be true or false");
    CHECK(refused("\"order\": \"1f1b\"", "\"order\": \"zb-h1\"").find("order zb-h1 with offloaded activations") != std::string::npos);
    CHECK(refused("\"recompute\": true", "\"recompute\": \"yes\"") == "p.json: stages[0].recompute is \"yes\": must be true or false");
    CHECK(refused("\"recompute\": true", "\"recomputes\": true") ==
          "p.json: stages[0].recomputes: unknown member: known are tensor_parallel, recompute, operators");
    CHECK(refused(", \"segment\": 2", "") ==
          "p.json: stages[0].operators[1]: segment is missing, and stages[0].operators[0] has it: must be of all operators or of none");
    CHECK(refused("\"segment\": 2", "\"segment\": -2") == "p.json: stages[0].operators[1].segment is -2: must be an integer from 0 to 4294967295");
    CHECK(refused("\"segment\": 2", "\"segment\": 6") ==
          "p.json: stages: pipeline: operator 'relu' of segment 5 reads 'fc1' of segment 6: data may not go back to an earlier segment");
    CHECK(refused("\"start\": 3}", "\"start\": 3, \"segment\": 0}") ==
          "p.json: inputs[0].segment: unknown member: known are name, degrees, start, strides, devices");
    auto const said = [](auto const& change) {
        auto document = nlohmann::json::parse(small);
        change(document.at("stages"));
        return support::refusal([&] { return read(two_layers(), 8, document.dump()).strategy.size(); });
    };
    CHECK(said([](auto& stages) { std::swap(stages[0]["operators"], stages[1]["operators"]); }) ==
          "p.json: stages: pipeline: operator 'fc 2' of stage 0 reads 'relu' of stage 1: data may not go back to an earlier stage");
    CHECK(said([](auto& stages) { stages.clear(); }) == "p.json: stages is an array of 0: must have at least one stage");
}

TEST_CASE("plan JSON: what does not fit is not written") {
    auto const g = two_layers();
    auto const good = read(g, 8, small);
    auto const said = [&](auto const& change) {
        auto p = good;
        change(p);
        return support::refusal([&] { return written(g, 8, p); });
    };
    CHECK(said([](auto& p) { p.how.stages = 0; }) == "pipeline: 0 stages: must be at least 1");
    CHECK(said([](auto& p) { p.how.micro_batches = 7; }) ==
          "micro-batches: operator 'fc1' (linear) has 64 samples: 7 micro-batches must divide them");
    CHECK(said([](auto& p) { p.how.micro_batches = 64; }) ==
          "operator 'fc1' (linear): configuration splits dim 's' of extent 1 by 2: must be from 1 to the extent");
    CHECK(said([](auto& p) { p.strategy.pop_back(); }) == "the strategy has 3 configurations: the graph has 4 operators");
    CHECK(said([](auto& p) { p.tensor_parallel.pop_back(); }) ==
          "pipeline: degrees of tensor parallelism of 1 stages: there are 2, must be one each, or none");
    CHECK(said([](auto& p) { p.tensor_parallel[1] = 9; }) ==
          "pipeline: a stage's degree of tensor parallelism is 9: must be from 1 to 8, the devices");
    CHECK(said([](auto& p) { p.how.sharded = static_cast<pipeline::sharded_states>(7); }) ==
          "pipeline: 'sharded' is number 7: must be one of those declared");
    CHECK(said([](auto& p) { p.how.block = {1}; }) == "pipeline: blocks of 1 operators: the graph has 4, must be one each, or empty");
    CHECK(said([](auto& p) { p.expert_parallel = 9; }) == "pipeline: experts are split over 9: must be from 1 to 8, the devices");
    CHECK(said([](auto& p) { p.context_parallel = 9; }) == "pipeline: positions are split over 9: must be from 1 to 8, the devices");
    CHECK(said([](auto& p) { p.context_heads = 2; }) == "pipeline: heads are split over 2: must divide 1, over how many positions are");
    CHECK(refused("\"order\"", "\"context_parallel\": 0, \"order\"") == "p.json: context_parallel is 0: must be an integer from 1 to 8");
    CHECK(refused("\"order\"", "\"context_heads\": 2, \"order\"") == "p.json: context_heads is 2: must divide context_parallel, 1");
    CHECK(refused("\"order\"", "\"expert_parallel\": 9, \"order\"") == "p.json: expert_parallel is 9: must be an integer from 1 to 8");
    auto twins = g;
    twins.names[3] = "fc1";
    CHECK(support::refusal([&] { return written(twins, 8, good); }) ==
          "operators 1 and 3 of the graph are both named \"fc1\": a plan's document tells operators by name");
}

TEST_CASE("plan JSON: reader and schema know the same members") {
    auto const said = [](std::string const& text) { return support::refusal([&] { return read(two_layers(), 8, text).strategy.size(); }); };
    auto document = nlohmann::json::parse(small);
    CHECK(support::members_known(document, said) == schema().members());
}

TEST_CASE("plan JSON: what partition finds reads back equal, and costs the same") {
    auto const cluster = topology::summit(1);
    std::mt19937_64 unused;
    auto const check = [&](auto const& model, pipeline::partition_options const& options) {
        auto const problem = make_problem(model, cluster, cost::roofline{cluster},
                                          {.simulation = {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}});
        auto const found = pipeline::partition(problem, {}, unused, options);
        check_round_trip(problem.graph(), problem.topology().size(), found.best, {.model = "m", .topology = "t", .predicted = found.cost});
        std::ostringstream out;
        write_plan_json(out, problem, found.best);
        std::istringstream in(out.str());
        auto const again = read_plan_json(in, "p.json", problem);
        CHECK(pipeline::pipeline_simulator(problem)(again.how, again.strategy) == found.cost);
        return found.best.how;
    };
    auto const how = check(models::gpt({.layers = 24, .hidden = 2048, .heads = 16, .vocabulary = 50304, .batch = 24, .type = ops::dtype::f16}),
                           {.evaluations = 200, .sharded_optimizer = false});
    CHECK(how.micro_batches > 1);
    check(models::inception_v3({.batch = 12}), {.evaluations = 20});
}

TEST_CASE("plan JSON: random pipelines of random networks read back equal") {
    int pipelines = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const problem = support::random_problem(rng, support::random_options(rng), {.devices = 3});
        auto const& g = problem.graph();
        auto const samples = pipeline::samples_of(g);
        auto micro_batches = static_cast<std::uint32_t>(1 + uniform_index(rng, static_cast<std::uint64_t>(samples)));
        while (samples % micro_batches != 0) --micro_batches;
        pipeline_plan p{.how = {.stage = std::vector<std::uint32_t>(g.size(), 0),
                                .stages = static_cast<std::uint32_t>(1 + uniform_index(rng, std::min<std::size_t>(3, g.size()))),
                                .micro_batches = micro_batches,
                                .order = pipeline::launch_orders[uniform_index(rng, pipeline::launch_orders.size())],
                                .sharded = pipeline::all_sharded_states[uniform_index(rng, pipeline::all_sharded_states.size())]},
                        .strategy = {}};
        if (cuts_backward(p.how.order)) p.how.sharded = std::min(p.how.sharded, pipeline::sharded_states::optimizer);
        if (p.how.stages == 2 && bernoulli(rng, 0.5)) p.how.interleaved = 2;
        std::uint32_t stage = 0;
        for (auto const op : g.order) {
            if (stage + 1 < p.how.stages && bernoulli(rng, 0.3)) ++stage;
            if (g.operations[op].work != ops::work_class::source) p.how.stage[op] = stage;
        }
        if (bernoulli(rng, 0.5)) {
            p.how.segment.assign(g.size(), 0);
            for (std::uint32_t segment = 0; auto const op : g.order)
                if (g.operations[op].work != ops::work_class::source)
                    p.how.segment[op] = segment += static_cast<std::uint32_t>(uniform_index(rng, 3));
        }
        if (bernoulli(rng, 0.3)) {
            for (std::size_t op = 0; op < g.size(); ++op)
                p.how.kept.push_back(g.operations[op].work != ops::work_class::source && bernoulli(rng, 0.5));
            if (std::find(p.how.kept.begin(), p.how.kept.end(), true) == p.how.kept.end()) p.how.kept.clear(); // what is written is the same
        }
        if (!cuts_backward(p.how.order) && bernoulli(rng, 0.3)) {
            for (std::size_t op = 0; op < g.size(); ++op)
                p.how.offloaded.push_back(g.operations[op].work != ops::work_class::source && bernoulli(rng, 0.5));
            if (!p.how.offloads()) p.how.offloaded.clear();
        }
        if (bernoulli(rng, 0.5))
            for (std::uint32_t s = 0; s < p.how.stages; ++s) p.how.recompute.push_back(bernoulli(rng, 0.5));
        if (bernoulli(rng, 0.5))
            for (std::uint32_t s = 0; s < p.how.stages; ++s)
                p.tensor_parallel.push_back(static_cast<std::uint32_t>(1 + uniform_index(rng, problem.topology().size())));
        if (bernoulli(rng, 0.3))
            for (std::size_t op = 0; op < g.size(); ++op)
                p.how.block.push_back(g.operations[op].work == ops::work_class::source ? 0 : static_cast<std::uint32_t>(uniform_index(rng, 5)));
        if (bernoulli(rng, 0.3)) p.expert_parallel = static_cast<std::uint32_t>(1 + uniform_index(rng, problem.topology().size()));
        if (bernoulli(rng, 0.3)) p.context_parallel = static_cast<std::uint32_t>(1 + uniform_index(rng, problem.topology().size()));
        if (bernoulli(rng, 0.5)) p.context_heads = p.context_parallel;
        try {
            p.strategy = support::random_strategy(rng, pipeline::micro_batch_problem(problem, micro_batches), 0.3);
        } catch (invalid_input const&) {
            continue; // a network that micro-batches can not divide
        }
        check_round_trip(g, problem.topology().size(), p);
        ++pipelines;
    }
    CHECK(pipelines > 200);
}

TEST_CASE("plan JSON: whatever a document holds, a pipeline that fits or a refusal; what is read fits the schema") {
    auto const g = two_layers();
    auto const counts = support::read_mutations(7, 4000, small, [&](std::string const& text) {
        auto const p = read(g, 8, text);
        pipeline::validate(p.how, g);
        auto const part = pipeline::micro_batch(g, p.how.micro_batches);
        for (std::size_t op = 0; op < g.size(); ++op) space::validate(p.strategy[op], part.operations[op], 8, g.names[op]);
        CHECK(schema().complaint(text) == "");
        CHECK(read(g, 8, written(g, 8, p)) == p);
    });
    CHECK(counts.read > 500);
    CHECK(counts.refused > 4000);
}

TEST_CASE("plan JSON: of rewritten operators") {
    auto const g = two_layers();
    auto const p = read(g, 8, small);
    plan_notes const notes{.model = "two layers", .topology = {}, .predicted = {}, .rewritten_by = {"fuse: fc1, relu"}};
    check_round_trip(g, 8, p, notes);
    auto document = nlohmann::json::parse(written(g, 8, p, notes));
    document["stages"][1]["operators"][0]["name"] = "fc3";
    CHECK(support::refusal([&] { return read(g, 8, document.dump()).strategy.size(); }) ==
          "p.json: stages[1].operators[0].name is \"fc3\": must be the name of an operator of the graph; the operators are those that 1 rule, "
          "\"fuse: fc1, relu\", made of the model's: the plan is for these alone, which the program plan wrote as operators.json and takes from "
          "beside it, of the same model");
}

TEST_CASE("plan JSON: what is said beside the plan is read without a graph") {
    auto const g = two_layers();
    auto const p = read(g, 8, small);
    plan_notes const notes{.model = "two layers", .topology = "a rack", .predicted = {}, .rewritten_by = {"fuse: fc1, relu", "merge 2 times"}};
    auto const read_notes = [](std::string const& text) {
        std::istringstream in(text);
        return read_plan_notes(in, "p.json");
    };
    CHECK(read_notes(written(g, 8, p, notes)) == notes);
    CHECK(read_notes(written(g, 8, p, {})) == plan_notes{});
    CHECK(read_notes("fc1 1 2 3").rewritten_by.empty()); // FlexFlow's
    CHECK(read_notes("").rewritten_by.empty());
    CHECK(support::refusal([&] { return read_notes(R"({"rewritten_by": 3})").model.size(); }) == "p.json: rewritten_by is 3: must be an array");
    CHECK(support::refusal([&] { return read_notes("{").model.size(); }).starts_with("p.json:"));
}

TEST_CASE("plan JSON: what earlier releases wrote is read") {
    auto const g = two_layers();
    auto const now = read(g, 8, small);
    CHECK(read(g, 8, support::replaced(small, "parsearch.plan", "parsearch.pipeline")) == now);
    plan_notes notes;
    auto const strategy = read(g, 8, R"({
      "format": "parsearch.strategy", "version": 1, "model": {"name": "two layers", "operators": 4}, "topology": {"devices": 8}, "predicted_ps": 7,
      "operators": [{"name": "x", "start": 3}, {"name": "fc 2", "start": 5}, {"name": "relu", "start": 1},
                    {"name": "fc1", "degrees": {"o": 2}, "start": 2, "strides": {"o": 4}}]
    })",
                               &notes);
    CHECK(notes == plan_notes{.model = "two layers", .topology = {}, .predicted = picoseconds{7}, .rewritten_by = {}});
    CHECK(strategy.how.plain());
    CHECK(strategy.strategy[0].start == 3);
    CHECK(to_string(strategy.strategy[1], g.operations[1]) == "o2 @2+4");
    // The same as the strategy by itself.
    std::ostringstream alone;
    write_plan_json(alone, g, 8, strategy.strategy, notes);
    CHECK(alone.str() == written(g, 8, strategy, notes));
    CHECK(read(g, 8, alone.str()) == strategy);
    CHECK(support::refusal([&] { return read(g, 8, R"({"format": "parsearch.strategy", "version": 2})").strategy.size(); }) ==
          "p.json: version is 2: must be 1, which this release reads");
    CHECK(support::refusal([&] {
              std::ostringstream out;
              write_plan_json(out, g, 8, space::flat_strategy(3, space::whole(g.operations[1])));
              return 0;
          }) == "the strategy has 3 configurations: the graph has 4 operators");
}
