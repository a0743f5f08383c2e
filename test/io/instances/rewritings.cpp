#include <parsearch/io/instances/rewritings.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using nlohmann::json;

namespace {
constexpr ops::relu rectified{};

/// x, a product, two halves, each through its own operator, their sum and another product.
graph::dense_graph network() {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}, ops::dtype::f32});
    auto const fc = g.add("fc", ops::linear{.out = 8}, x);
    auto const halves = g.add("halves", ops::split{.axis = 1, .sizes = {4, 4}}, fc);
    auto const u = g.add("u", rectified, halves), v = g.add("v", rectified, halves[1]);
    auto const sum = g.add("sum", ops::add{}, u, v);
    g.add("out", ops::linear{.out = 2}, sum);
    return graph::read_graph(g).graph;
}
/// Four places. What stands there need not compute the same: who reads it cannot know.
io::network_instance rewritable() {
    io::network_instance n{.graph = network(), .cluster = topology::p100_cluster(1)};
    auto const op = [&](char const* name) { return n.graph.operations[support::op_named(n.graph, name)]; };
    auto fast = op("fc");
    fast.flops /= 2;
    n.rewritings = {
        {.replaces = {"fc"},
         .by = {{.operators = {{"fc.fast", fast, {{"x"}}}}, .results = {{{"fc"}, {"fc.fast"}}}},
                {.operators = {{"fc", op("fc"), {{"x"}}}}, .results = {{{"fc"}, {"fc"}}}}}},
        {.replaces = {"u"},
         .by = {{.operators = {{"u2", op("u"), {{"v"}}}}, .results = {{{"u"}, {"u2"}}}}, {.operators = {}, .results = {{{"u"}, {"halves", 1}}}}}},
        {.replaces = {"v"},
         .by = {{.operators = {{"v2", op("v"), {{"u"}}}}, .results = {{{"v"}, {"v2"}}}},
                {.operators = {}, .results = {{{"v"}, {"u"}}}},
                {.operators = {{"v", op("v"), {{"halves", 1}}}}, .results = {{{"v"}, {"v"}}}}}},
        {.replaces = {"out", "sum"},
         .by = {{.operators = {{"out", op("out"), {{"turned"}}}, {"turned", op("sum"), {{"v"}, {"u"}}}}, .results = {{{"out"}, {"out"}}}}}}};
    return n;
}
std::string written(io::network_instance const& n) {
    std::ostringstream out;
    io::write_instance_json(out, {.of = n});
    return out.str();
}
io::network_instance read(std::string const& document) {
    std::istringstream in(document);
    return std::get<io::network_instance>(io::read_instance_json(in, "i.json").of);
}
std::string refused(std::string const& document) {
    return support::refusal([&] { return read(document).graph.size(); });
}
/// What is said of the instance after a change of its document.
std::string refused_with(std::function<void(json&)> const& change) {
    auto document = json::parse(written(rewritable()));
    change(document);
    return refused(document.dump());
}
bool equal_graphs(graph::dense_graph const& a, graph::dense_graph const& b) {
    return a.names == b.names && a.operations == b.operations && a.edges == b.edges;
}
io::judgement judged(io::network_instance const& n, std::string const& document) {
    std::istringstream in(document);
    return io::judge({.of = n}, in, "s.json");
}
std::string written(io::network_instance const& n, io::rewritten_plan const& plan) {
    std::ostringstream out;
    io::write_rewritten_json(out, n, plan);
    return out.str();
}
io::rewritten_plan data_parallel_plan(io::network_instance const& n, io::rewriting_choices choices) {
    auto const g = n.graph_of(choices);
    return {std::move(choices), {.how = pipeline::unpipelined(g), .strategy = data_parallel(n.problem_of(g))}};
}
} // namespace

TEST_CASE("rewritings: the graph of choices, by hand") {
    auto const n = rewritable();
    io::graph_rewriter const rewriter(n.graph, n.rewritings);
    rewriter.require_each();
    CHECK(equal_graphs(rewriter(rewriter.none()), n.graph));
    io::rewriting_choices choices{0, 0, 3, 0}; // the operator itself
    CHECK(equal_graphs(rewriter(choices), n.graph));

    choices = {1, 0, 0, 0};
    auto g = rewriter(choices);
    CHECK(g.names == std::vector<std::string>{"x", "fc.fast", "halves", "u", "v", "sum", "out"});
    CHECK(g.edges == n.graph.edges);
    CHECK(g.operations[1].flops == n.graph.operations[1].flops / 2);

    choices = {1, 2, 3, 1}; // u is a half; what stood first gives its place to all of the alternative, in its order
    g = rewriter(choices);
    CHECK(g.names == std::vector<std::string>{"x", "fc.fast", "halves", "v", "out", "turned"});
    CHECK(g.edges == std::vector<graph::edge>{{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 1, 3, 0}, {5, 0, 4, 0}, {3, 0, 5, 0}, {2, 1, 5, 1}});

    choices = {0, 2, 2, 0}; // v is u, which is a half
    CHECK(rewriter(choices).edges == std::vector<graph::edge>{{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 1, 3, 0}, {2, 1, 3, 1}, {3, 0, 4, 0}});

    auto const said = [&](io::rewriting_choices const& c) { return support::refusal([&] { return rewriter(c).size(); }); };
    CHECK(said({0, 1, 1, 0}).find("cycle in the operator graph: ") == 0);
    CHECK(said({0, 1, 2, 0}).find("cycle in the operator graph: ") == 0); // u2 reads v, which is u
    CHECK(said({0, 0, 0}) == "3 choices of alternatives: there are 4 places, must be one each");
    CHECK(said({0, 3, 0, 0}) == "choice 3 of place 1 (\"u\"): must be from 1 to 2, its alternatives, or 0");

    auto round = n; // each is the other
    round.rewritings[1].by[1].results[0].is = {"v"};
    io::graph_rewriter const rounds(round.graph, round.rewritings);
    rounds.require_each();
    choices = {0, 2, 2, 0};
    CHECK(support::refusal([&] { return rounds(choices).size(); }).find("stands for itself: these alternatives make a cycle") != std::string::npos);
}

TEST_CASE("rewritings: written and read again") {
    static support::json_schema const schema("instance");
    auto const n = rewritable();
    auto const document = written(n);
    CHECK(schema.complaint(document) == "");
    auto const again = read(document);
    CHECK(again.rewritings == n.rewritings);
    CHECK(written(again) == document);

    // Random networks: every operator may be replaced by one of another name, some by two at once.
    constexpr std::uint64_t seed = 3100;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < support::cases(30); ++round) {
        io::network_instance r{.graph = graph::read_graph(support::random_network(rng, 6, 0)).graph, .cluster = topology::p100_cluster(1)};
        for (std::size_t op = 0; op < r.graph.size(); ++op) {
            auto const& operation = r.graph.operations[op];
            if (operation.work == ops::work_class::source || bernoulli(rng, 0.3)) continue;
            io::named_operator other{text(r.graph.names[op], "'"), operation, {}};
            for (auto const& e : r.graph.in(op)) other.inputs.push_back({r.graph.names[e.producer], e.slot});
            io::alternative a{{other}, {}};
            for (std::uint32_t slot = 0; slot < operation.outputs.size(); ++slot)
                a.results.push_back({{r.graph.names[op], slot}, {other.name, slot}});
            r.rewritings.push_back({{r.graph.names[op]}, {a}});
        }
        auto const same = read(written(r));
        CHECK(same.rewritings == r.rewritings);
        io::rewriting_choices choices;
        for (std::size_t p = 0; p < r.rewritings.size(); ++p) choices.push_back(static_cast<std::uint32_t>(uniform_index(rng, 2)));
        auto const g = same.graph_of(choices);
        CHECK(g.edges == r.graph.edges);
        CHECK(g.operations == r.graph.operations);
        auto const problem = r.problem();
        auto const strategy = support::random_strategy(rng, problem);
        CHECK(io::judge(same, {choices, {.how = pipeline::unpipelined(g), .strategy = strategy}}).cost == problem.evaluator()(strategy));
    }
}

TEST_CASE("rewritings: what is refused, with its place") {
    using path = json::json_pointer;
    auto const with = [](char const* at, json const& value) { return refused_with([&](json& d) { d["rewritings"][path(at)] = value; }); };
    auto const without = [](char const* at, std::size_t i) { return refused_with([&](json& d) { d["rewritings"][path(at)].erase(i); }); };
    CHECK(refused_with([](json&) {}) == "");
    CHECK(with("/0/replaces", json::array()) == "i.json: rewritings[0].replaces is an array of 0: must name at least one operator");
    CHECK(with("/0/replaces/0", "q") == "i.json: rewritings[0].replaces[0] is \"q\": must be the name of an operator of the graph");
    CHECK(with("/0/replaces/0", "x") == "i.json: rewritings[0].replaces[0] is \"x\": is a graph input: must be another operator");
    CHECK(with("/1/replaces/0", "fc") ==
          "i.json: rewritings[1].replaces[0] is \"fc\": is in rewritings[0] already: an operator is in one place, once");
    CHECK(with("/3/replaces/1", "out") ==
          "i.json: rewritings[3].replaces[1] is \"out\": is in rewritings[3] already: an operator is in one place, once");
    CHECK(with("/1/by", json::array()) == "i.json: rewritings[1].by is an array of 0: must have at least one alternative");

    CHECK(
        with("/0/by/0/operators/0/name", "sum") ==
        "i.json: rewritings[0].by[0].operators[0].name is \"sum\": is the name of an operator of the graph outside of the place: names must differ");
    CHECK(with("/1/by/0/operators/0/name", "fc.fast") ==
          "i.json: rewritings[1].by[0].operators[0].name is \"fc.fast\": is the name of an operator of rewritings[0]: names must differ");
    CHECK(with("/3/by/0/operators/1/name", "out") ==
          "i.json: rewritings[3].by[0].operators[1].name is \"out\": is the name of another operator of the alternative: names must differ");
    CHECK(refused_with([](json& d) {
              d["rewritings"][0]["by"][0]["operators"].push_back(d["graph"]["operators"][0]);
              d["rewritings"][0]["by"][0]["operators"][1]["name"] = "y";
          }) == "i.json: rewritings[0].by[0].operators[1].work is \"source\": must be another: an alternative has no inputs of its own");

    CHECK(
        with("/0/by/0/operators/0/inputs/0/of", "q") ==
        "i.json: rewritings[0].by[0].operators[0].inputs[0].of is \"q\": must be the name of an operator of the alternative, or of one of the graph "
        "outside of the place");
    CHECK(with("/0/by/0/operators/0/inputs/0/of", "fc").find("must be the name of an operator of the alternative") != std::string::npos);
    CHECK(with("/0/by/0/operators/0/inputs/0/output", 1) ==
          "i.json: rewritings[0].by[0].operators[0].inputs[0].output is 1: must be below 1, the outputs of \"x\"");
    CHECK(with("/0/by/0/operators/0/inputs/0/of", "u") ==
          "i.json: rewritings[0].by[0]: operator 'fc.fast' (linear): input 0 is output 0 of 'u' of shape f32[8,4]: must be f32[8,6]");
    CHECK(with("/0/by/0/operators/0/kind", "").find("i.json: rewritings[0].by[0]: ") == 0);
    CHECK(with("/0/by/0/operators/0/work", "magic").find("i.json: rewritings[0].by[0].operators[0].work is \"magic\": must be one of ") == 0);
    CHECK(with("/0/by/0/operators/0/colour", 1).find("i.json: rewritings[0].by[0].operators[0]") == 0);

    CHECK(with("/0/by/0/results/0/of", "u") == "i.json: rewritings[0].by[0].results[0].of is \"u\": must be one of the operators that are replaced");
    CHECK(with("/0/by/0/results/0/output", 1) == "i.json: rewritings[0].by[0].results[0].output is 1: must be below 1, the outputs of \"fc\"");
    CHECK(
        with("/0/by/0/results/0/is", "fc") ==
        "i.json: rewritings[0].by[0].results[0].is is \"fc\": must be the name of an operator of the alternative, or of one of the graph outside of "
        "the place");
    CHECK(with("/1/by/1/results/0/is_output", 2) ==
          "i.json: rewritings[1].by[1].results[0].is_output is 2: must be below 2, the outputs of \"halves\"");
    CHECK(with("/1/by/1/results/0/is", "x").find("rewritings[1].by[1].results[0].is_output is 1: must be below 1") != std::string::npos);
    CHECK(with("/0/by/0/results/0/is", "u") ==
          "i.json: rewritings[0].by[0].results[0].is is \"u\": its output 0 is f32[8,4], must be f32[8,8], as output 0 of \"fc\" is");
    CHECK(refused_with([](json& d) {
              auto& results = d["rewritings"][0]["by"][0]["results"];
              results.push_back(results[0]);
          }) == "i.json: rewritings[0].by[0].results[1].of is \"fc\": something stands for its output 0 already: must be there once");
    CHECK(without("/0/by/1/results", 0) ==
          "i.json: rewritings[0].by[1].results is an array of 0: must say what stands for output 0 of \"fc\", which \"halves\" reads");
    CHECK(without("/3/by/0/results", 0) == ""); // nobody reads it
    // Not by the graph, but by another place.
    CHECK(refused_with([](json& d) {
              d["rewritings"][3]["by"][0]["results"] = json::array();
              d["rewritings"][0]["by"][0]["operators"][0]["inputs"][0] = {{"of", "out"}, {"type", "f32"}, {"axes", json::array()}};
          }) == "i.json: rewritings[3].by[0].results is an array of 0: must say what stands for output 0 of \"out\", which \"fc.fast\" reads");
    CHECK(with("/1/by/0/operators/0/inputs/0/of", "sum") ==
          "i.json: rewritings[3].by[0].results is an array of 1: must say what stands for output 0 of \"sum\", which \"u2\" reads");
    CHECK(refused_with([](json& d) {
              d["rewritings"][3]["by"][0]["results"].push_back({{"of", "sum"}, {"is", "turned"}});
              d["rewritings"][1]["by"][0]["operators"][0]["inputs"][0]["of"] = "sum";
          }) == "i.json: rewritings[1].by[0]: cycle in the operator graph: 'sum' -> 'u2' -> 'sum': an operator graph is acyclic");

    CHECK(refused_with([](json& d) { d["question"] = "plan"; }) ==
          "i.json: rewritings is an array of 4: must not be given where the question is not strategy");
    CHECK(refused_with([](json& d) { d["rewritings"] = 1; }) == "i.json: rewritings is 1: must be an array");
    auto n = rewritable();
    n.asks = io::instance_question::plan;
    CHECK(support::refusal([&] { return written(n); }) == "rewritings is an array of 4: must not be given where the question is not strategy");
    n = rewritable();
    n.rewritings[0].replaces[0] = "q";
    CHECK(support::refusal([&] { return written(n); }) == "rewritings[0].replaces[0] is \"q\": must be the name of an operator of the graph");
    n = rewritable();
    n.graph.names[4] = "u";
    CHECK(support::refusal([&] { return io::graph_rewriter(n.graph, n.rewritings).none(); }) ==
          "two operators of the graph are called \"u\": names must differ where there are rewritings");
    n = rewritable();
    n.rewritings[0].by[0].operators[0].inputs.clear();
    CHECK(support::refusal([&] { return written(n); }) == "rewritings[0].by[0]: operator 'fc.fast' (linear): the graph gives it 0 inputs: it has 1");
}

TEST_CASE("rewritings: solutions are judged") {
    auto const n = rewritable();
    auto const plain = data_parallel_plan(n, {0, 0, 0, 0});
    std::ostringstream out;
    io::write_plan_json(out, n.problem(), plain.plan);
    auto const cost = judged(n, out.str()).cost;
    CHECK(cost > picoseconds{0});
    CHECK(io::judge(n, plain).cost == cost);
    CHECK(io::judge(n, plain.plan).cost == cost);
    CHECK(judged(n, written(n, plain)).cost == cost);

    auto const better = data_parallel_plan(n, {1, 2, 3, 1});
    auto const said = io::judge(n, better);
    auto const problem = n.problem_of(n.graph_of(better.choices));
    CHECK(said.feasible());
    CHECK(said.cost == problem.evaluator()(better.plan.strategy));
    CHECK(said.cost < cost);
    CHECK(said.memory == simulate(problem, better.plan.strategy).memory);
    auto const document = written(n, better);
    CHECK(support::json_schema("rewritten").complaint(document) == "");
    CHECK(judged(n, document).cost == said.cost);
    std::istringstream in(document), plan(out.str());
    auto const again = io::read_rewritten_json(in, "s.json", n);
    CHECK(again.choices == better.choices);
    CHECK(again.plan.strategy == better.plan.strategy);
    CHECK(io::read_rewritten_json(plan, "s.json", n).choices == plain.choices);

    auto const with = [&](std::function<void(json&)> const& change) {
        auto changed = json::parse(document);
        change(changed);
        return judged(n, changed.dump()).reason;
    };
    CHECK(with([](json& d) { d["rewritings"].erase(0); }) == "s.json: rewritings is an array of 3: must have 4 choices, one for each place");
    CHECK(with([](json& d) { d["rewritings"][1] = 3; }) == "s.json: rewritings[1] is 3: must be an integer from 0 to 2");
    CHECK(with([](json& d) { d["rewritings"] = {0, 1, 1, 0}; }).find("s.json: rewritings: cycle in the operator graph: ") == 0);
    CHECK(with([](json& d) { d["rewritings"] = {0, 0, 0, 0}; }).find("s.json: plan.model.operators is 6: ") == 0);
    CHECK(with([](json& d) {
              d["plan"]["stages"][0]["operators"][0]["name"] = "fc";
          }).find("s.json: plan.stages[0].operators[0].name is \"fc\": must be the name of an operator of the graph") == 0);
    CHECK(with([](json& d) { d["plan"]["micro_batches"] = 2; }).find("2 micro-batches") != std::string::npos);
    CHECK(with([](json& d) { d.erase("plan"); }) == "s.json: plan is missing");
    CHECK(with([](json& d) { d["format"] = "parsearch.choices"; }) == "s.json: format is \"parsearch.choices\": must be \"parsearch.plan\"");
    auto wrong = n;
    wrong.rewritings[0].replaces[0] = "q";
    CHECK(support::refusal([&] { return io::judge(wrong, plain).cost.count(); }).find("rewritings[0].replaces[0]") == 0);
    auto few = plain;
    few.choices.pop_back();
    CHECK(io::judge(n, few).reason == "3 choices of alternatives: there are 4 places, must be one each");
    auto none = n; // an instance without places has the empty choice
    none.rewritings.clear();
    CHECK(io::judge(none, {{}, plain.plan}).cost == cost);
}

TEST_CASE("rewritings: reader and schema know the same members; whatever a document holds, an instance or a refusal") {
    auto const document = written(rewritable());
    auto const known = support::members_known(json::parse(document), refused);
    for (auto const& name : support::json_schema("rewritings").members()) CHECK_MESSAGE(known.contains(name), name);
    static support::json_schema const schema("instance");
    auto const seen = support::read_mutations(31, support::cases(300), document, [](std::string const& changed) {
        auto const n = read(changed);
        CHECK(schema.complaint(changed) == "");
        CHECK(written(read(written(n))) == written(n));
    });
    CHECK(seen.read > 0);
    CHECK(seen.refused > support::cases(200U));
}

TEST_CASE("rewritings: what stands for an output may stand in a place that the chain passed before") {
    graph::operator_graph made;
    auto const x = made.input("x", {{8, 6}, ops::dtype::f32});
    auto const a1 = made.add("a1", rectified, x), a2 = made.add("a2", rectified, x), b1 = made.add("b1", rectified, x),
               b2 = made.add("b2", rectified, x), e = made.add("e", rectified, x);
    auto const a = made.add("a", ops::add{}, a1, a2), b = made.add("b", ops::add{}, b1, b2);
    made.add("out", ops::add{}, made.add("sum", ops::add{}, a, b), e);
    auto const g = graph::read_graph(made).graph;
    std::vector<io::rewriting> const places{{.replaces = {"a1", "a2"}, .by = {{.operators = {}, .results = {{{"a1"}, {"b1"}}, {{"a2"}, {"b2"}}}}}},
                                            {.replaces = {"b1", "b2"}, .by = {{.operators = {}, .results = {{{"b1"}, {"a2"}}, {{"b2"}, {"e"}}}}}}};
    io::graph_rewriter const rewriter(g, places);
    auto const all = rewriter(io::rewriting_choices{1, 1});
    CHECK(all.names == std::vector<std::string>{"x", "e", "a", "b", "sum", "out"});
    for (auto const reader : {2U, 3U})
        for (auto const& edge : all.in(reader)) CHECK(all.names[edge.producer] == "e");
}
