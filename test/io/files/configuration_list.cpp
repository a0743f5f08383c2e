#include <parsearch/io/files/configuration_list.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
graph::dense_graph dense(graph::operator_graph const& g) { return graph::read_graph(g).graph; }
/// x -> fc1 (s 64, o 32, k 16) -> relu -> fc2 (s 64, o 10, k 32).
graph::dense_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.input("x", {{64, 16}});
    g.add("fc 2", ops::linear{.out = 10}, g.add("relu", ops::relu{}, g.add("fc1", ops::linear{.out = 32}, x)));
    return dense(g);
}
std::string written(graph::dense_graph const& g, std::size_t devices, space::flat_strategy const& s, plan_notes const& notes = {}) {
    std::ostringstream out;
    write_plan_json(out, g, devices, s, notes);
    return out.str();
}
space::flat_strategy read(graph::dense_graph const& g, std::size_t devices, std::string const& text, plan_notes* notes = nullptr) {
    std::istringstream in(text);
    return read_plan_json(in, "p.json", g, devices, notes).strategy;
}
support::json_schema const& schema() {
    static support::json_schema const made("plan");
    return made;
}
constexpr char const* small = R"({
  "format": "parsearch.plan",
  "version": 1,
  "model": {"name": "two layers", "operators": 4},
  "topology": {"devices": 8},
  "predicted_ps": 1234,
  "micro_batches": 1,
  "order": "1f1b",
  "sharded_optimizer": false,
  "stages": [{"operators": [
    {"name": "fc1", "degrees": {"s": 2, "o": 4}, "start": 7, "strides": {"s": -4, "o": -1}},
    {"name": "fc 2", "degrees": {"k": 2}, "devices": [3, 3]},
    {"name": "relu", "start": 5}
  ]}]
})";
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return read(two_layers(), 8, support::replaced(small, part, by)).size(); });
}
} // namespace

TEST_CASE("configurations JSON: a document by hand") {
    auto const g = two_layers();
    plan_notes notes;
    auto const s = read(g, 8, small, &notes);
    CHECK(schema().complaint(std::string(small)) == "");
    CHECK(notes == plan_notes{.model = "two layers", .topology = "", .predicted = picoseconds{1234}});
    REQUIRE(s.size() == 4);
    CHECK(to_string(s[0], g.operations[0]) == "whole @0");
    CHECK(to_string(s[1], g.operations[1]) == "s2 o4 @7+-4,-1");
    CHECK(s[1].device(7) == 0);
    CHECK(to_string(s[2], g.operations[2]) == "whole @5");
    CHECK(to_string(s[3], g.operations[3]) == "k2 @{3,3}");
    // Written: by operator number, two spaces, what is 1 left out.
    CHECK(written(g, 8, s, notes) == R"({
  "format": "parsearch.plan",
  "version": 1,
  "model": {"name": "two layers", "operators": 4},
  "topology": {"devices": 8},
  "predicted_ps": 1234,
  "micro_batches": 1,
  "order": "1f1b",
  "sharded_optimizer": false,
  "stages": [
    {
      "operators": [
        {"name": "fc1", "degrees": {"s": 2, "o": 4}, "start": 7, "strides": {"s": -4, "o": -1}},
        {"name": "relu", "start": 5},
        {"name": "fc 2", "degrees": {"k": 2}, "devices": [3, 3]}
      ]
    }
  ]
}
)");
}

TEST_CASE("configurations JSON: graph inputs elsewhere than on device 0, strides of dims that are not split, dims without a name of their own") {
    auto g = two_layers();
    auto s = space::data_parallel(g, 8);
    s[0].start = 3;
    s[1].stride[1] = 5; // counts for nothing, and is kept all the same
    CHECK(read(g, 8, written(g, 8, s)) == s);
    g.operations[1].dims[0].name = "#0"; // as graphs are read that name no dims
    g.operations[1].dims[1].name = "#1";
    s[1].degree[1] = 2;
    s[1].degree[0] = 1;
    s[1].start = 1;
    auto const text = written(g, 8, s);
    CHECK(text.find(R"({"name": "fc1", "degrees": {"#1": 2}, "start": 1, "strides": {"#0": 1, "#1": 5}})") != std::string::npos);
    CHECK(read(g, 8, text) == s);
}

TEST_CASE("configurations JSON: what is wrong is named") {
    CHECK(refused("\"version\": 1", "\"version\": 7") == "p.json: version is 7: must be 1, which this release reads");
    CHECK(refused("\"operators\": 4", "\"operators\": 5") == "p.json: model.operators is 5: the graph has 4");
    CHECK(refused("\"devices\": 8", "\"devices\": 16") == "p.json: topology.devices is 16: the topology has 8");
    CHECK(refused("\"topology\": {\"devices\": 8},", "") == "p.json: topology is missing");
    CHECK(refused("1234", "-1") == "p.json: predicted_ps is -1: must be an integer from 0 to 9223372036854775807");
    CHECK(refused("\"name\": \"relu\"", "\"name\": \"relu2\"") ==
          "p.json: stages[0].operators[2].name is \"relu2\": must be the name of an operator of the graph");
    CHECK(refused("\"name\": \"relu\"", "\"name\": \"fc1\"") ==
          "p.json: stages[0].operators[2].name is \"fc1\": is the operator of stages[0].operators[0] already: once is enough");
    CHECK(refused(",\n    {\"name\": \"relu\", \"start\": 5}", "") ==
          "p.json: stages: operator \"relu\" is missing: all but graph inputs must be there");
    CHECK(refused("\"k\": 2", "\"q\": 2") ==
          "p.json: stages[0].operators[1].degrees.q: operator 'fc 2' (linear) has no such dim: its dims are s, o, k");
    CHECK(refused("\"k\": 2", "\"o\": 11") ==
          "p.json: stages[0].operators[1]: operator 'fc 2' (linear): configuration splits dim 'o' of extent 10 by 11: must be from 1 to the extent");
    CHECK(refused("\"k\": 2", "\"k\": 2.0") == "p.json: stages[0].operators[1].degrees.k is 2.0: must be an integer from 1 to 2147483647");
    CHECK(refused("\"k\": 2", "\"k\": 0") == "p.json: stages[0].operators[1].degrees.k is 0: must be an integer from 1 to 2147483647");
    CHECK(refused("[3, 3]", "[3]") ==
          "p.json: stages[0].operators[1]: operator 'fc 2' (linear): configuration lists 1 devices for 2 shards: must be one each");
    CHECK(refused("[3, 3]", "[3, 8]") ==
          "p.json: stages[0].operators[1]: operator 'fc 2' (linear): configuration puts shard 1 on device 8: the topology has 8");
    CHECK(refused("[3, 3]", "[]") == "p.json: stages[0].operators[1].devices is an array of 0: must name a device for each shard");
    CHECK(refused("[3, 3]", "[3, 3], \"start\": 0") == "p.json: stages[0].operators[1].start is 0: must not be given beside devices");
    CHECK(refused("\"start\": 7", "\"start\": 6") ==
          "p.json: stages[0].operators[0]: operator 'fc1' (linear): configuration puts shard 7 on device -1: the topology has 8");
    CHECK(refused("\"start\": 5", "\"start\": 8") ==
          "p.json: stages[0].operators[2]: operator 'relu' (relu): configuration puts shard 0 on device 8: the topology has 8");
    CHECK(refused("\"o\": -1}", "\"o\": 2147483647}") ==
          "p.json: stages[0].operators[0]: operator 'fc1' (linear): configuration puts shard 1 on device 2147483654: the topology has 8");
    CHECK(refused(", \"o\": -1", "") == "p.json: stages[0].operators[0]: strides.o is missing: every split dim must have one");
    CHECK(refused(", \"start\": 5", "") == "p.json: stages[0].operators[2]: start is missing");
    CHECK(refused("\"start\": 5", "\"start\": 5, \"begin\": 5") ==
          "p.json: stages[0].operators[2].begin: unknown member: known are name, degrees, start, strides, devices, segment, block, kept, offloaded");

    auto const g = two_layers();
    auto s = space::data_parallel(g, 8);
    s[3].degree[1] = 11;
    CHECK(support::refusal([&] { return written(g, 8, s); }) ==
          "operator 'fc 2' (linear): configuration splits dim 'o' of extent 10 by 11: must be from 1 to the extent");
    s.pop_back();
    CHECK(support::refusal([&] { return written(g, 8, s); }) == "the strategy has 3 configurations: the graph has 4 operators");
    auto twins = two_layers();
    twins.names[3] = "fc1";
    CHECK(support::refusal([&] { return written(twins, 8, space::data_parallel(twins, 8)); }) ==
          "operators 1 and 3 of the graph are both named \"fc1\": a plan's document tells operators by name");
}

TEST_CASE("configurations JSON: strategies of experts and random ones of the zoo read back equal") {
    constexpr std::uint64_t seed = 99;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::vector<graph::dense_graph> const zoo{dense(models::lenet({})),  dense(models::mlp({})),          dense(models::gpt({.layers = 2})),
                                              dense(models::resnet({})), dense(models::inception_v3({})), dense(models::nmt({.steps = 2}))};
    std::size_t configurations = 0;
    for (auto const& g : zoo)
        for (std::size_t const devices : {1u, 6u, 16u}) {
            std::vector<space::flat_strategy> strategies{space::data_parallel(g, devices), space::one_weird_trick(g, devices),
                                                         space::tensor_parallel(g, devices, devices % 4 ? 1 : 4)};
            space::strategy_space const space(g, devices), all_orders(g, devices, {.all_orders = true});
            for (int i = 0; i < 8; ++i) {
                space::flat_strategy s;
                for (std::size_t op = 0; op < g.size(); ++op)
                    s.push_back(support::random_configuration(rng, g.operations[op], (i % 2 ? all_orders : space)[op], devices, bernoulli(rng, 0.3)));
                strategies.push_back(std::move(s));
            }
            for (auto const& s : strategies) {
                plan_notes const notes{
                    .model = "m", .topology = text(devices), .predicted = picoseconds{static_cast<std::int64_t>(uniform_bits(rng) >> 1)}};
                auto const text = written(g, devices, s, notes);
                plan_notes said;
                bool const equal = read(g, devices, text, &said) == s;
                CHECK(equal);
                CHECK(said == notes);
                CHECK(schema().complaint(text) == "");
                configurations += s.size();
            }
        }
    CHECK(configurations > 10'000);
}

TEST_CASE("configurations JSON: whatever a document holds, a strategy that fits or a refusal; what is read fits the schema") {
    auto const g = two_layers();
    auto const counts = support::read_mutations(5, 4000, small, [&](std::string const& text) {
        auto const s = read(g, 8, text);
        for (std::size_t op = 0; op < g.size(); ++op) space::validate(s[op], g.operations[op], 8, g.names[op]);
        CHECK(schema().complaint(text) == "");
        CHECK(read(g, 8, written(g, 8, s)) == s);
    });
    CHECK(counts.read > 500);
    CHECK(counts.refused > 4000);
}

TEST_CASE("a strategy of rewritten operators says so, and is read with these alone") {
    auto const model = two_layers();
    graph::operator_graph g;
    g.add("fc 2", ops::linear{.out = 10}, g.add("fc1&relu", ops::linear{.out = 32}, g.input("x", {{64, 16}})));
    auto const rewritten = dense(g);
    space::flat_strategy s;
    for (auto const& op : rewritten.operations) s.push_back(space::whole(op));
    plan_notes const notes{.model = "two layers", .topology = {}, .predicted = {}, .rewritten_by = {"fuse: fc1, relu", "merge: a, b"}};
    auto const text = written(rewritten, 8, s, notes);
    CHECK(schema().complaint(text) == "");
    plan_notes said;
    CHECK(read(rewritten, 8, text, &said) == s);
    CHECK(said == notes);
    CHECK(support::refusal([&] { return read(model, 8, text); }) ==
          "p.json: model.operators is 3: the graph has 4; the operators are those that 2 rules, the first \"fuse: fc1, relu\", made of the model's: "
          "the plan is for these alone, which the program plan wrote as operators.json and takes from beside it, of the same model");
    CHECK(written(rewritten, 8, s).find("rewritten_by") == std::string::npos);
}
