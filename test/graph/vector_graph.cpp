#include <parsearch/graph/vector_graph.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

static_assert(OperatorGraph<graph::operator_graph>);

TEST_CASE("operator_graph: shapes follow from the inputs") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}, ops::dtype::bf16});
    auto const y = g.add("fc", ops::linear{.out = 10}, x);
    CHECK(to_string(g.shape(y)) == "bf16[8,10]");
    auto const parts = g.add("split", ops::split{.axis = 1, .sizes = {4, 6}}, y);
    CHECK(to_string(g.shape(parts)) == "bf16[8,4]");
    CHECK(to_string(g.shape(parts[1])) == "bf16[8,6]");
    auto const sum = g.add("sum", ops::add{}, parts[1], x);
    std::vector<graph::tensor_ref> const list{sum, sum, parts[0]};
    auto const joined = g.add("joined", ops::concat{.axis = 1}, std::span<graph::tensor_ref const>(list));
    CHECK(to_string(g.shape(joined)) == "bf16[8,16]");
    auto const read = graph::read_graph(g);
    CHECK(read.graph.names == std::vector<std::string>{"x", "fc", "split", "sum", "joined"});
    CHECK(read.graph.edges ==
          std::vector<graph::edge>{{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 1, 3, 0}, {0, 0, 3, 1}, {3, 0, 4, 0}, {3, 0, 4, 1}, {2, 0, 4, 2}});
    CHECK(read.graph.trains == std::vector<bool>{false, true, true, true, true});
}

TEST_CASE("operator_graph: an operation that the caller describes") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}});
    ops::operation op{.kind = "mine", .dims = {{"s", 8, ops::dim_kind::sample}}};
    op.inputs.push_back({.name = "in", .axes = {{.extent = 8, .terms = {{0, 1}}}, {.extent = 6}}});
    op.outputs.push_back({.name = "out", .axes = {{.extent = 8, .terms = {{0, 1}}}}});
    std::vector<graph::tensor_ref> const in{x};
    auto const y = g.insert("own", op, in);
    CHECK(to_string(g.shape(y)) == "f32[8]");
    CHECK(graph::read_graph(g).graph.operations[1] == op);
}

TEST_CASE("operator_graph: refusals name the operator") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}});
    auto const y = g.input("y", {{8, 5}});
    CHECK(support::refusal([&] { return g.add("sum", ops::add{}, x, y); }).find("operator 'sum' (add): input 1 of shape f32[8,5]") == 0);
    CHECK(support::refusal([&] { return g.add("fc", ops::linear{.out = 0}, x); }).find("operator 'fc' (linear): ") == 0);
    CHECK(support::refusal([&] {
              return g.add("fc", ops::linear{.out = 4}, graph::tensor_ref{7, 0});
          }) == "operator 'fc': input is output 0 of operator 7, which does not exist");
    CHECK(support::refusal([&] { return g.add("fc", ops::linear{.out = 4}, x[1]); }) ==
          "operator 'fc': input is output 1 of operator 0, which does not exist");
    CHECK(g.size() == 2); // what was refused left nothing behind
}

TEST_CASE("operator_graph: a value") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}});
    auto copy = g;
    copy.add("fc", ops::linear{.out = 4}, x);
    CHECK(g.size() == 1);
    CHECK(copy.size() == 2);
    CHECK(graph::read_graph(copy).graph.edges.size() == 1);
}
