#include <parsearch/models/summary.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>

using namespace parsearch;

namespace {
/// y[8] = f(x[8]) with a weight of `elements` elements (none where 0) and flops that tell the passes apart.
ops::operation layer(std::int64_t elements, std::string parameter, double unit) {
    ops::operand const x{.name = "x", .axes = {{.extent = 8}}, .gradient_flops = unit * 10};
    ops::operation op{.kind = "layer", .inputs = {x}, .outputs = {{.name = "y", .axes = {{.extent = 8}}}}};
    if (elements)
        op.weights.push_back({.name = "w", .axes = {{.extent = elements}}, .gradient_flops = unit * 100, .parameter = std::move(parameter)});
    op.flops = unit;
    op.multiply_adds = unit / 2;
    op.backward_flops = unit * 1000;
    return op;
}
graph::tensor_ref add(graph::operator_graph& g, std::string name, ops::operation op, graph::tensor_ref x) {
    return g.insert(std::move(name), std::move(op), std::vector{x});
}
} // namespace

TEST_CASE("summary: forward, gradients of weights and of wanted inputs, and other backward work are summed") {
    graph::operator_graph g;
    auto x = add(g, "first", layer(5, "", 1), g.input("x", {{8}}));
    add(g, "second", layer(7, "", 2), x);
    auto const s = models::summarize(g);
    CHECK(s.operators == 2);
    CHECK(s.parameters == 12);
    CHECK(s.multiply_adds == 1.5);
    CHECK(s.forward_flops == 3);
    // The gradient of the graph's input is not wanted.
    CHECK(s.training_flops == (1 + 100 + 1000) + (2 + 20 + 200 + 2000));
}

TEST_CASE("summary: operators before the first weight only run forward") {
    graph::operator_graph g;
    auto x = add(g, "fixed", layer(0, "", 1), g.input("x", {{8}}));
    add(g, "trained", layer(7, "", 2), x);
    CHECK(models::summarize(g).training_flops == 1 + (2 + 200 + 2000));
}

TEST_CASE("summary: a shared parameter counts once, its work each time") {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("x", {{8}});
    for (int i = 0; i < 3; ++i) x = add(g, "shared" + std::to_string(i), layer(5, "w", 1), x);
    add(g, "own", layer(5, "", 1), x);
    auto const s = models::summarize(g);
    CHECK(s.operators == 4);
    CHECK(s.parameters == 10);
    CHECK(s.forward_flops == 4);
    CHECK(s.training_flops == 4 * (1 + 100 + 1000) + 3 * 10);
}

TEST_CASE("summary: a gradient that two consumers send back is counted at both") {
    graph::operator_graph g;
    auto const x = add(g, "w", layer(5, "", 1), g.input("x", {{8}}));
    add(g, "left", layer(0, "", 1), x);
    add(g, "right", layer(0, "", 1), x);
    CHECK(models::summarize(g).training_flops == (1 + 100 + 1000) + 2 * (1 + 10 + 1000));
}
