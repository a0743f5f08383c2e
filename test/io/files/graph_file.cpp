#include <parsearch/io/files/graph_file.hpp>

#include <cstddef>
#include <memory>
#include <random>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/io/names/zoo.hpp>
#include <parsearch/ops/device_shares.hpp>
#include <parsearch/problem/problem.hpp>
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
std::string written(graph::dense_graph const& g) {
    std::ostringstream out;
    write_graph_json(out, g);
    return out.str();
}
graph::dense_graph read(std::string const& text) {
    std::istringstream in(text);
    return read_graph_json(in, "g.json");
}
std::string refused(std::string const& text) {
    return support::refusal([&] { return read(text).size(); });
}
support::json_schema const& schema() {
    static support::json_schema const made("graph");
    return made;
}
bool equal(graph::dense_graph const& a, graph::dense_graph const& b) {
    return a.names == b.names && a.operations == b.operations && a.edges == b.edges && a.first_in == b.first_in && a.order == b.order &&
           a.trains == b.trains && a.sharing == b.sharing;
}
/// Reads back equal, fits the schema, is written the same again.
void check_round_trip(graph::dense_graph const& g) {
    auto const text = written(g);
    CHECK(schema().complaint(text) == "");
    auto const back = read(text);
    CHECK(equal(back, g));
    CHECK(written(back) == text);
}
/// x -> a linear layer that keeps its input -> half of its outputs.
constexpr char const* small = R"({
  "format": "parsearch.graph",
  "version": 1,
  "operators": [
    {
      "name": "x",
      "kind": "input",
      "work": "source",
      "dims": [{"name": "s", "extent": 8, "kind": "sample"}, {"name": "k", "extent": 4, "kind": "parameter"}],
      "outputs": [{"name": "x", "type": "bf16", "axes": [{"extent": 8, "terms": [[0, 1]]}, {"extent": 4, "terms": [[1, 1]]}]}]
    },
    {
      "name": "fc",
      "kind": "linear",
      "variant": "wide",
      "work": "attention",
      "flops": 512,
      "multiply_adds": 256,
      "backward_flops": 1.5,
      "product_flops": 500,
      "backward_product_flops": 1,
      "saved_bytes": 2,
      "intermediate_bytes": 3,
      "backward_intermediate_bytes": 4,
      "dims": [
        {"name": "s", "extent": 8, "kind": "sample"},
        {"name": "o", "extent": 8, "kind": "parameter"},
        {"name": "k", "extent": 4, "kind": "reduction"},
        {"extent": 2, "kind": "sums"}
      ],
      "inputs": [
        {
          "of": "x",
          "name": "x",
          "type": "bf16",
          "axes": [{"extent": 8, "terms": [[0, 1]]}, {"extent": 4, "terms": [[2, 1]]}],
          "saved": true,
          "summed": true,
          "passed_on": true,
          "gradient_flops": 512,
          "touched_bytes": 64
        }
      ],
      "weights": [
        {
          "name": "w",
          "type": "bf16",
          "axes": [{"extent": 8, "terms": [[1, 1]]}, {"extent": 4, "terms": [[2, 1]]}],
          "gradient_flops": 512,
          "parameter": "tied"
        },
        {"name": "past", "type": "f16", "axes": [{"extent": 8, "terms": [[0, 1]]}], "cache": true}
      ],
      "outputs": [
        {"name": "y", "type": "bf16", "axes": [{"extent": 8, "terms": [[0, 1]]}, {"extent": 8, "terms": [[1, 1]]}], "differentiable": false},
        {"type": "i64", "axes": [{"extent": 8, "terms": [[0, 1]]}]}
      ]
    },
    {
      "name": "half",
      "kind": "slice",
      "work": "memory",
      "dims": [{"name": "s", "extent": 8, "kind": "sample"}, {"name": "c", "extent": 4, "kind": "attribute"}],
      "inputs": [
        {"of": "fc", "name": "x", "type": "bf16", "axes": [{"extent": 8, "terms": [[0, 1]]}, {"extent": 8, "terms": [[1, 1]], "offset": 4}]},
        {"of": "fc", "output": 1, "type": "i64", "axes": [{"extent": 8, "terms": [[0, 1]], "span": 2}]}
      ],
      "outputs": [{"name": "y", "type": "bf16", "axes": [{"extent": 8, "terms": [[0, 1]]}, {"extent": 4, "terms": [[1, 1]]}]}]
    }
  ]
}
)";
std::string refused_with(std::string const& part, std::string const& by) { return refused(support::replaced(small, part, by)); }
} // namespace

TEST_CASE("graph JSON: a document by hand, written as it was read") {
    auto const g = read(small);
    CHECK(written(g) == small);
    CHECK(schema().complaint(std::string(small)) == "");
    REQUIRE(g.size() == 3);
    auto const& fc = g.operations[1];
    CHECK(fc.variant == "wide");
    CHECK(fc.dims[3].kind == ops::dim_kind::sums);
    CHECK(fc.dims[3].name == "#3"); // as plans call a dim whose name is left out
    CHECK(fc.inputs[0].touched_bytes == 64);
    CHECK(fc.weights[0].touched_bytes < 0);
    CHECK(fc.weights[1].cache);
    CHECK(!fc.outputs[0].differentiable);
    CHECK(g.edges[2] == graph::edge{1, 1, 2, 1});
    CHECK(g.operations[2].inputs[0].axes[1].offset == 4);
}

TEST_CASE("graph JSON: the models of the zoo, and random networks with copies and partial sums") {
    for (auto const* const name : {"lenet", "dlrm", "gpt,layers=1", "moe,layers=1"}) check_round_trip(graph::read_graph(make_model(name)).graph);
    constexpr std::uint64_t seed = 27;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int n = 0; n < support::cases(100); ++n) check_round_trip(graph::read_graph(support::random_network(rng)).graph);
}

TEST_CASE("graph JSON: a problem of what was read costs the same") {
    auto const model = make_model("gpt,layers=2,hidden=64,heads=4,sequence=32,vocabulary=1000,batch=16");
    auto const cluster = topology::p100_cluster(2);
    std::ostringstream out;
    write_graph_json(out, model); // any operator graph
    auto const problem = make_problem(model, cluster, cost::roofline{cluster});
    auto const again = make_problem(read(out.str()), cluster, cost::roofline{cluster});
    for (auto const& start : problem.starts()) CHECK(problem.evaluator()(start) == again.evaluator()(start));
}

TEST_CASE("graph JSON: an operator may stand before those that it reads") {
    auto const g = read(small);
    auto document = nlohmann::json::parse(small);
    std::swap(document["operators"][0], document["operators"][2]);
    auto const turned = read(document.dump());
    CHECK(turned.names == std::vector<std::string>{"half", "fc", "x"});
    CHECK(turned.order == std::vector<std::uint32_t>{2, 1, 0});
}

TEST_CASE("graph JSON: what is refused, with its place") {
    CHECK(refused_with(R"({"extent": 2, "kind": "sums"})", R"({"name": "", "extent": 2, "kind": "sums"})")
              .ends_with("operator 'fc' (linear): dim 3 has an empty name: each dim must have a name of its own"));
    CHECK(refused_with("\"version\": 1", "\"version\": 2") == "g.json: version is 2: must be 1, which this release reads");
    CHECK(refused_with("\"name\": \"half\"", "\"name\": \"fc\"") ==
          "g.json: operators[2].name is \"fc\": is the name of operators[1] already: names must differ");
    CHECK(refused_with("\"of\": \"x\"", "\"of\": \"z\"") ==
          "g.json: operators[1].inputs[0].of is \"z\": must be the name of an operator of the document");
    CHECK(refused_with("\"output\": 1", "\"output\": 2") ==
          "g.json: operators: operator 'half' (slice): input 1 is output 2 of 'fc', which has only 2 outputs");
    CHECK(refused_with("\"of\": \"x\"", "\"of\": \"half\"").find("g.json: operators: ") == 0); // a cycle, or shapes that differ
    CHECK(refused_with("\"flops\": 512", "\"flops\": -1") == "g.json: operators[1].flops is -1: must be a number of at least 0");
    CHECK(refused_with("[[2, 1]]", "[[2]]") ==
          "g.json: operators[1].inputs[0].axes[1].terms[0] is an array of 1: must be the number of a dim and a stride");
    CHECK(refused_with("[[2, 1]]", "[[7, 1]]").find("g.json: operators: operator 'fc' (linear): input 'x' has a term of dim 7") == 0);
    CHECK(refused_with("\"reduction\"", "\"tail\"") ==
          "g.json: operators[1].dims[2].kind is \"tail\": must be one of sample, attribute, parameter, reduction, fixed, copies, sums");
    CHECK(refused_with("\"type\": \"i64\"", "\"type\": \"i63\"").find("must be one of f64, f32, tf32, f16, bf16, i64, i32, i8") != std::string::npos);
    CHECK(refused_with("\"work\": \"memory\",", "") == "g.json: operators[2]: work is missing");
    CHECK(refused(R"({"format": "parsearch.graph", "version": 1, "operators": []})") ==
          "g.json: operators: the operator graph has no operators: at least one is needed");

    auto g = read(small);
    g.names[2] = "fc";
    CHECK(support::refusal([&] { return written(g); }) == "operators 1 and 2 of the graph are both named \"fc\": a document tells operators by name");
    g = read(small);
    g.operations[1].outputs[0].passed_on = true;
    CHECK(support::refusal([&] { return written(g); }) == "operator \"fc\": operand \"y\" has passed_on: this is of inputs alone");
    g = read(small);
    g.operations[2].inputs[0].parameter = "tied";
    CHECK(support::refusal([&] { return written(g); }) == "operator \"half\": operand \"x\" has parameter: this is of weights alone");
    CHECK(refused_with("\"differentiable\": false", "\"cache\": true").find("g.json: operators[1].outputs[0].cache: unknown member") == 0);
    g = read(small);
    g.operations[2].dims[0].shares = std::make_shared<ops::device_shares const>(std::vector<double>{1, 2});
    CHECK(support::refusal([&] { return written(g); }) ==
          "operator \"half\" (slice): dim \"s\" has shares of devices: these are of a simulation, and not written");
}

TEST_CASE("graph JSON: reader and schema know the same members") {
    auto document = nlohmann::json::parse(small);
    document["description"] = "";
    CHECK(support::members_known(document, refused) == schema().members());
}

TEST_CASE("graph JSON: whatever a document holds, a graph or a refusal; what is read fits the schema") {
    auto const counts = support::read_mutations(27, support::cases(1500), small, [&](std::string const& text) {
        auto const g = read(text);
        CHECK(schema().complaint(text) == "");
        CHECK(equal(read(written(g)), g));
    });
    CHECK(counts.read > support::cases(150U));
    CHECK(counts.refused > support::cases(1500U));
}
