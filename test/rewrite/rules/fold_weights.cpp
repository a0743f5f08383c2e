#include <parsearch/rewrite/rules/fold_weights.hpp>

#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>

#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
template <class Op> ops::operation made(Op const& op, std::vector<ops::tensor> const& in) { return op.infer(in); }

/// Two layers of one input, merged.
struct two_layers {
    parallel_graph g;
    tensor_ref x = g.add_input("x", {{4, 3}}), v = g.add_weight("v", {{6, 3}}), w = g.add_weight("w", {{2, 3}});
    two_layers() {
        auto const a = g.add_operator("a", made(ops::linear{.out = 6, .bias = false}, {{{4, 3}}}), {x, v});
        auto const b = g.add_operator("b", made(ops::linear{.out = 2, .bias = false}, {{{4, 3}}}), {x, w});
        g.set_results({{a, 0}, {b, 0}});
    }
    [[nodiscard]] parallel_graph merged() const { return algebraic_rules()[1](g).at(0).graph; }
};
} // namespace

TEST_CASE("fold weights: what merging joins is one weight, of the joined values") {
    two_layers t;
    auto const merged = t.merged(), folded = fold_weights(merged);
    CHECK(merged.size() == 6);
    CHECK(folded.size() == 4); // x, one weight, one layer, the split
    auto const read = graph::read_graph(folded).graph;
    REQUIRE(read.operations[1].weights.size() == 1);
    CHECK(ops::tensor_of(read.operations[1].weights[0]) == ops::tensor{{8, 3}});
    CHECK(read.operations[1] == made(ops::linear{.out = 8, .bias = false}, {{{4, 3}}}));

    std::mt19937_64 rng(1);
    support::named_arrays values{
        {"x", reference::random_array({4, 3}, rng)}, {"v", reference::random_array({6, 3}, rng)}, {"w", reference::random_array({2, 3}, rng)}};
    std::vector<reference::array> const seeds{reference::random_array({4, 6}, rng), reference::random_array({4, 2}, rng)};
    auto const before = support::run(t.g, values, seeds, purpose::training);
    values["v|w"] = reference::joined(std::vector{values["v"], values["w"]}, 0);
    auto const after = support::run(folded, values, seeds, purpose::training);
    CHECK(after.results == before.results);
    CHECK(after.gradients.at("v|w") == reference::joined(std::vector{before.gradients.at("v"), before.gradients.at("w")}, 0));
}

TEST_CASE("fold weights: a weight that is cut or turned is held so") {
    parallel_graph g;
    auto const x = g.add_input("x", {{4, 3}}), w = g.add_weight("w", {{3, 8}});
    auto const turned = g.add_operator("turned", made(ops::transpose{.permutation = {1, 0}}, {{{3, 8}}}), {w});
    auto const parts = g.add_operator("parts", made(ops::split{.axis = 0, .sizes = {6, 2}}, {{{8, 3}}}), {{turned, 0}});
    auto const a = g.add_operator("a", made(ops::linear{.out = 6, .bias = false}, {{{4, 3}}}), {x, {parts, 0}});
    auto const b = g.add_operator("b", made(ops::linear{.out = 2, .bias = false}, {{{4, 3}}}), {x, {parts, 1}});
    g.set_results({{a, 0}, {b, 0}});
    auto const folded = fold_weights(g);
    CHECK(folded.size() == 5);
    CHECK(folded[folded[a].inputs[1].producer]->name == "w'[0]");
    CHECK(graph::read_graph(folded).graph.operations[2].weights.size() == 1);
}

TEST_CASE("fold weights: for inference, whatever is computed of weights alone is a weight") {
    parallel_graph g;
    auto const x = g.add_input("x", {{4, 3}}), w = g.add_weight("w", {{8, 3}}), scale = g.add_weight("scale", {{8}});
    auto const rows = g.add_operator("rows", made(ops::reshape{.shape = {8, 1}}, {{{8}}}), {scale});
    auto const scaled = g.add_operator("scaled", made(ops::multiply{}, {{{8, 3}}, {{8, 1}}}), {w, {rows, 0}});
    auto const bias = g.add_operator("bias", made(ops::unary{ops::function::square}, {{{8}}}), {scale}); // the scale is read twice
    auto const y = g.add_operator("y", made(ops::linear{.out = 8}, {{{4, 3}}}), {x, {scaled, 0}, {bias, 0}});
    g.set_results({{y, 0}});
    CHECK(fold_weights(g) == g); // in training they change
    auto const folded = fold_weights(g, purpose::inference);
    CHECK(folded.size() == 4);
    CHECK(folded[folded[y].inputs[1].producer]->name == "scaled");
    CHECK(folded[folded[y].inputs[2].producer]->name == "bias");
    CHECK(graph::read_graph(folded).graph.operations[1] == made(ops::linear{.out = 8}, {{{4, 3}}}));
    // A result is still computed, of what is folded.
    g.set_results({{y, 0}, {scaled, 0}});
    auto const asked = fold_weights(g, purpose::inference);
    CHECK(asked.contains(scaled));
    CHECK_FALSE(asked.contains(rows));
    CHECK(asked.results()[1] == tensor_ref{scaled, 0});
}

TEST_CASE("fold weights: what somebody else reads, or is a result, stays computed") {
    two_layers t;
    auto merged = t.merged();
    auto results = merged.results();
    results.push_back({merged.add_operator("again", made(ops::linear{.out = 6, .bias = false}, {{{4, 3}}}), {t.x, t.v}), 0});
    merged.set_results(results);
    CHECK(fold_weights(merged) == merged);
    two_layers other;
    auto asked = other.merged();
    results = asked.results();
    results.push_back(other.v);
    asked.set_results(results);
    CHECK(fold_weights(asked) == asked);
}
