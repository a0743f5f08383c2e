#include <parsearch/io/instances/instance.hpp>

#include <chrono>
#include <cstddef>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
std::string written(instance const& i) {
    std::ostringstream out;
    write_instance_json(out, i);
    return out.str();
}
instance read(std::string const& text) {
    std::istringstream in(text);
    return read_instance_json(in, "i.json");
}
std::string refused(std::string const& text) {
    return support::refusal([&] { return read(text).name; });
}
support::json_schema const& schema() {
    static support::json_schema const made("instance");
    return made;
}
void check_round_trip(instance const& i) {
    auto const text = written(i);
    CHECK(schema().complaint(text) == "");
    CHECK(written(read(text)) == text);
}
instance mlp() {
    network_instance n{.graph = graph::read_graph(make_model("mlp,features=8,hidden=8,classes=4,batch=8")).graph, .cluster = topology::dgx_h100(1)};
    n.options.simulation.memory = sim::memory_policy::reject;
    n.options.space.min_shard = 2;
    n.prices = {.host_time = std::chrono::nanoseconds(5000), .f8_products = true};
    return {.name = "mlp-8", .group = "small", .description = "two layers on eight devices", .of = std::move(n)};
}
/// Two decisions of two and three choices, within a budget; not all go together.
constexpr char const* tables = R"({
  "format": "parsearch.instance",
  "version": 1,
  "name": "pair",
  "class": "additive",
  "description": "two decisions",
  "question": "choices",
  "tables": {
    "decisions": [{"name": "a", "costs_ps": [5, 1], "memory_bytes": [1, 9]}, {"name": "b", "costs_ps": [3, null, 0], "memory_bytes": [2, 2, 2]}],
    "pairs": [{"from": 0, "to": 1, "costs_ps": [0, 1, 2, 3, 4, null]}],
    "budget_bytes": 10
  }
}
)";
std::string refused_with(std::string const& part, std::string const& by) { return refused(support::replaced(tables, part, by)); }
} // namespace

TEST_CASE("instance JSON: tables by hand, written as they were read") {
    auto const i = read(tables);
    CHECK(written(i) == tables);
    CHECK(schema().complaint(std::string(tables)) == "");
    CHECK(i.name == "pair");
    CHECK(i.group == "additive");
    auto const& t = std::get<table_instance>(i.of);
    CHECK(t.names == std::vector<std::string>{"a", "b"});
    CHECK(t.budget == 10);
    CHECK(t.memory[0] == std::vector<byte_count>{1, 9});
    CHECK(t.costs.costs().operator_cost(1, 1) == cost_traits<picoseconds>::infinity());
    CHECK(t.costs.costs().edge_cost(0, 1, 0) == picoseconds{3}); // the first choice of `from` first
    CHECK(t.costs.evaluator()(search::numbered_strategy{0, 2}) == picoseconds{7});
}

TEST_CASE("instance JSON: a network, whole, with what it was measured to take") {
    auto i = mlp();
    check_round_trip(i);
    auto const back = read(written(i));
    CHECK(back.description == i.description);
    auto& n = std::get<network_instance>(i.of);
    auto const& again = std::get<network_instance>(back.of);
    CHECK(again.asks == instance_question::strategy);
    CHECK(again.cluster == n.cluster);
    CHECK(again.options.simulation.memory == sim::memory_policy::reject);
    CHECK(again.options.space.min_shard == 2);
    CHECK(again.prices.host_time == n.prices.host_time);
    CHECK(again.prices.f8_products);

    auto const before = n.problem().evaluator()(data_parallel(n.problem()));
    CHECK(again.problem().evaluator()(data_parallel(again.problem())) == before);
    n.asks = instance_question::plan;
    n.profile.emplace();
    auto const& op = n.graph.operations[1];
    n.profile->add({.device = "h200_sxm",
                    .kernel = cost::kernel_of(ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), ops::pass::forward)),
                    .time = picoseconds{1}});
    n.profile->add({.device = n.cluster.describe_device(0).kind,
                    .kernel = cost::kernel_of(ops::work_of(op, std::vector<std::int32_t>{8, 1, 1}, ops::pass::forward)),
                    .time = picoseconds{700'000'000}});
    check_round_trip(i);
    auto const measured = read(written(i));
    auto const& m = std::get<network_instance>(measured.of);
    CHECK(m.asks == instance_question::plan);
    CHECK(m.profile == n.profile);
    CHECK(m.problem().evaluator()(data_parallel(m.problem())) == n.problem().evaluator()(data_parallel(n.problem())));
    CHECK(m.problem().evaluator()(data_parallel(m.problem())) > before);
}

TEST_CASE("instance JSON: random networks and random tables cost the same when they are read") {
    constexpr std::uint64_t seed = 2700;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < support::cases(40); ++round) {
        network_instance n{.graph = graph::read_graph(support::random_network(rng, 6, 0)).graph, .cluster = topology::p100_cluster(1)};
        n.options.simulation.training = bernoulli(rng, 0.7);
        n.options.simulation.discipline = bernoulli(rng, 0.5) ? sim::discipline::fifo : sim::discipline::in_order;
        n.options.space.reduction = bernoulli(rng, 0.5);
        n.options.space.copies = bernoulli(rng, 0.3) ? 2 : 1;
        instance const i{.of = n};
        check_round_trip(i);
        auto const problem = n.problem();
        auto const again = read(written(i));
        auto const same = std::get<network_instance>(again.of).problem();
        auto const strategy = support::random_strategy(rng, problem);
        CHECK(!same.space().first_outside(strategy));
        CHECK(same.evaluator()(strategy) == problem.evaluator()(strategy));
    }
    for (int round = 0; round < support::cases(100); ++round) {
        auto const cost = [&] {
            return uniform_index(rng, 8) == 0 ? cost_traits<picoseconds>::infinity() : picoseconds{static_cast<std::int64_t>(uniform_bits(rng) >> 2)};
        };
        std::vector<std::string> names;
        std::vector<std::vector<picoseconds>> own, both;
        std::vector<operator_pair> pairs;
        for (std::size_t d = 0, n = 2 + uniform_index(rng, 5); d < n; ++d) {
            names.push_back(text("d", d));
            own.emplace_back(1 + uniform_index(rng, 4));
            for (auto& c : own.back()) c = cost();
        }
        for (std::size_t e = uniform_index(rng, 6); e > 0; --e) {
            auto const from = uniform_index(rng, own.size());
            pairs.push_back({from, (from + 1 + uniform_index(rng, own.size() - 1)) % own.size()});
            both.emplace_back(own[pairs.back().from].size() * own[pairs.back().to].size());
            for (auto& c : both.back()) c = cost();
        }
        check_round_trip({.of = table_instance{.names = names, .costs = search::additive_problem<picoseconds>({own, pairs, both})}});
    }
}

TEST_CASE("instance JSON: what is refused, with its place") {
    CHECK(refused_with("\"choices\"", "\"choice\"") == "i.json: question is \"choice\": must be one of strategy, plan, choices");
    CHECK(refused_with("\"choices\"", "\"plan\"") == "i.json: tables is an object: must not be given where the question is of a network");
    CHECK(refused_with("\"tables\": {", "\"graph\": 1, \"tables\": {") ==
          "i.json: graph is 1: must not be given where the question is of choices: tables say all");
    CHECK(refused_with("[5, 1]", "[]") == "i.json: tables.decisions[0].costs_ps is an array of 0: must have a cost for each choice, at least one");
    CHECK(refused_with("[5, 1]", "[5, -1]") == "i.json: tables.decisions[0].costs_ps[1] is -1: must be an integer from 0 to 9223372036854775806");
    CHECK(refused_with("[1, 9]", "[1]") == "i.json: tables.decisions[0].memory_bytes is an array of 1: must have 2 amounts, one per choice");
    CHECK(refused_with(",\n    \"budget_bytes\": 10", "") ==
          "i.json: tables.decisions[0].memory_bytes is an array of 2: must not be given where there is no budget_bytes");
    CHECK(refused_with("\"to\": 1", "\"to\": 0") == "i.json: tables.pairs[0].to is 0: must be another decision than from");
    CHECK(refused_with("\"to\": 1", "\"to\": 2") == "i.json: tables.pairs[0].to is 2: must be an integer from 0 to 1");
    CHECK(refused_with("4, null]", "4]") ==
          "i.json: tables.pairs[0].costs_ps is an array of 5: must have 6 costs, one for each choice of from with each of to");

    auto const whole = written(mlp());
    auto const without = [&](std::string const& part, std::string const& by) { return refused(support::replaced(whole, part, by)); };
    CHECK(without("\"version\": 1,\n    \"operators\"", "\"version\": 9,\n    \"operators\"") ==
          "i.json: graph.version is 9: must be 1, which this release reads");
    CHECK(without("parsearch.topology", "parsearch.map") == "i.json: topology.format is \"parsearch.map\": must be \"parsearch.topology\"");
    CHECK(without("\"roofline\"", "\"guess\"") == "i.json: prices.oracle is \"guess\": must be one of roofline");
    CHECK(without("5000000", "5000001") == "i.json: prices.host_time_ps is 5000001: must be whole nanoseconds, a multiple of 1000");
    CHECK(without("\"reject\"", "\"forget\"").find("i.json: simulation.memory is \"forget\"") == 0);
    CHECK(without("\"min_shard\": 2", "\"min_shard\": 0").find("i.json: ") == 0);

    auto i = mlp();
    std::get<network_instance>(i.of).options.space.allows = [](auto, auto const&, auto) { return true; };
    CHECK(support::refusal([&] { return written(i); }) ==
          "the space of an instance has functions (max_degree, allows, admits): these are not written");
    i = mlp();
    std::get<network_instance>(i.of).options.space.max_degree = [](auto const&, auto const&) { return 2; };
    CHECK(support::refusal([&] { return written(i); }).find("has functions") != std::string::npos);
    i = mlp();
    std::get<network_instance>(i.of).asks = instance_question::plan;
    auto const planned = written(i);
    CHECK(refused(support::replaced(planned, "\"transfers\": \"streaming\"", "\"transfers\": \"fair_sharing\"")).find("i.json: ") == 0);
    CHECK(refused(planned) == "");
    i = mlp();
    std::get<network_instance>(i.of).prices.memory_efficiency = 0.5;
    CHECK(support::refusal([&] { return written(i); }) ==
          "the prices of an instance have efficiencies or a launch overhead: devices must say these, which are not written");
    auto t = read(tables);
    std::get<table_instance>(t.of).names.pop_back();
    CHECK(support::refusal([&] { return written(t); }) == "an instance of tables has 1 names for 2 decisions: must be one each");
    t = read(tables);
    std::get<table_instance>(t.of).memory[1].pop_back();
    CHECK(support::refusal([&] { return written(t); }) == "decision \"b\" of an instance has the memory of 2 choices: must be of all 3");
    std::get<table_instance>(t.of).memory[1].push_back(-1);
    CHECK(support::refusal([&] { return written(t); }) ==
          "the memory of a choice of decision \"b\" of an instance is -1 bytes: must be from 0 to 2^50");
    t = read(tables);
    std::get<table_instance>(t.of).costs =
        search::additive_problem<picoseconds>({{{picoseconds{1}, picoseconds{-2}}, {picoseconds{0}, picoseconds{0}, picoseconds{0}}}, {}, {}});
    CHECK(support::refusal([&] { return written(t); }) == "a cost of decision \"a\" of an instance is -2 ps: must not be negative");
    t = read(tables);
    std::get<table_instance>(t.of).budget.reset();
    CHECK(support::refusal([&] { return written(t); }) ==
          "an instance of tables has the memory of 2 decisions: must be of all 2 where there is a budget, else of none");
}

TEST_CASE("instance JSON: reader and schema know the same members") {
    auto const known = support::members_known(nlohmann::json::parse(tables), refused);
    auto const declared = schema().members();
    for (auto const& name : declared)
        if (name != "oracle" && name != "host_time_ps" && name != "f8_products" && name != "profile") CHECK_MESSAGE(known.contains(name), name);
    for (auto const& name : known) CHECK_MESSAGE(declared.contains(name), name);
}

TEST_CASE("instance JSON: whatever a document holds, an instance or a refusal; what is read fits the schema") {
    auto const check = [](std::string const& text) {
        auto const i = read(text);
        CHECK(schema().complaint(text) == "");
        CHECK(written(read(written(i))) == written(i));
    };
    auto const of_tables = support::read_mutations(28, support::cases(800), tables, check);
    CHECK(of_tables.read > support::cases(50U));
    CHECK(of_tables.refused > support::cases(800U));
    auto const of_network = support::read_mutations(29, support::cases(200), written(mlp()), check);
    CHECK(of_network.read > 0);
    CHECK(of_network.refused > support::cases(200U));
}
