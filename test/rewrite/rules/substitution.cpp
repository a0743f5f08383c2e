#include <parsearch/rewrite/rules/substitution.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

#include "support/cases.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

using parameters = std::vector<pattern_parameter>;
pattern_operator linear(pattern_tensor x, pattern_tensor w) { return {"OP_LINEAR", {x, w}, {{"PM_ACTI", 0}}}; }
pattern_operator relu(pattern_tensor x) { return {"OP_RELU", {x}}; }
pattern_operator sum(pattern_tensor x, pattern_tensor y) { return {"OP_EW_ADD", {x, y}}; }
pattern_operator joined(std::vector<pattern_tensor> parts, std::int64_t axis) { return {"OP_CONCAT", std::move(parts), {{"PM_AXIS", axis}}}; }
pattern_operator cut_in(pattern_tensor x, std::int64_t axis, std::int64_t parts) {
    return {"OP_SPLIT", {x}, {{"PM_AXIS", axis}, {"PM_NUM_OUTPUTS", parts}}};
}
pattern_operator partition(pattern_tensor x, std::int64_t axis) {
    return {"OP_PARTITION", {x}, {{"PM_PARALLEL_DIM", axis}, {"PM_PARALLEL_DEGREE", "degree"}}};
}
pattern_operator combine(pattern_tensor x, std::int64_t axis) {
    return {"OP_COMBINE", {x}, {{"PM_PARALLEL_DIM", axis}, {"PM_PARALLEL_DEGREE", "degree"}}};
}
pattern_operator replicate(pattern_tensor x) { return {"OP_REPLICATE", {x}, {{"PM_PARALLEL_DEGREE", "degree"}}}; }
pattern_operator reduce(pattern_tensor x) { return {"OP_REDUCE", {x}, {{"PM_PARALLEL_DEGREE", "degree"}}}; }
constexpr pattern_tensor x1{-1, 0}, x2{-2, 0}, x3{-3, 0}, x4{-4, 0};

/// Two linear layers of one input as one.
rule merged_linear() {
    return {.name = "merged linear",
            .source = {{linear(x1, x2), linear(x1, x3)}},
            .target = {{joined({x2, x3}, 0), linear(x1, {0, 0}), cut_in({1, 0}, -1, 2)}},
            .outputs = {{{0, 0}, {2, 0}}, {{1, 0}, {2, 1}}}};
}
/// a b + c d as one product.
rule joined_products() {
    return {.name = "joined products",
            .source = {{linear(x1, x2), linear(x3, x4), sum({0, 0}, {1, 0})}},
            .target = {{joined({x1, x3}, -1), joined({x2, x4}, 1), linear({0, 0}, {1, 0})}},
            .outputs = {{{2, 0}, {2, 0}}}};
}
/// (a + b) w = a w + b w.
rule distributed() {
    return {.name = "distributed",
            .source = {{sum(x1, x2), linear({0, 0}, x3)}},
            .target = {{linear(x1, x3), linear(x2, x3), sum({0, 0}, {1, 0})}},
            .outputs = {{{1, 0}, {2, 0}}}};
}
rule relu_behind_sum_wrong() { // relu is not linear
    return {.name = "wrong",
            .source = {{sum(x1, x2), relu({0, 0})}},
            .target = {{relu(x1), relu(x2), sum({0, 0}, {1, 0})}},
            .outputs = {{{1, 0}, {2, 0}}}};
}
rule relu_behind_concat() {
    return {.name = "relu behind concat",
            .source = {{relu(x1), relu(x2), {"OP_CONCAT", {{0, 0}, {1, 0}}, {{"PM_AXIS", "axis"}}}}},
            .target = {{{"OP_CONCAT", {x1, x2}, {{"PM_AXIS", "axis"}}}, relu({0, 0})}},
            .outputs = {{{2, 0}, {1, 0}}}};
}
/// A linear layer in parts of the samples; of the outputs; of what it sums over.
rule in_samples() {
    return {.name = "in samples",
            .source = {{linear(x1, x2)}},
            .target = {{partition(x1, 0), replicate(x2), linear({0, 0}, {1, 0}), combine({2, 0}, 0)}},
            .outputs = {{{0, 0}, {3, 0}}},
            .parameters = {"degree"}};
}
rule in_outputs() {
    return {.name = "in outputs",
            .source = {{linear(x1, x2)}},
            .target = {{replicate(x1), partition(x2, 0), linear({0, 0}, {1, 0}), combine({2, 0}, -1)}},
            .outputs = {{{0, 0}, {3, 0}}},
            .parameters = {"degree"}};
}
rule in_sums() {
    return {.name = "in sums",
            .source = {{linear(x1, x2)}},
            .target = {{partition(x1, -1), partition(x2, 1), linear({0, 0}, {1, 0}), reduce({2, 0})}},
            .outputs = {{{0, 0}, {3, 0}}},
            .parameters = {"degree"}};
}
rule relu_in_parts() {
    return {.name = "relu in parts",
            .source = {{combine(x1, 0), relu({0, 0})}},
            .target = {{relu(x1), combine({0, 0}, 0)}},
            .outputs = {{{1, 0}, {1, 0}}}};
}
/// A detour through parts.
rule detour() {
    return {.name = "detour",
            .source = {{relu(x1)}},
            .target = {{partition(x1, 0), combine({0, 0}, 0), relu({1, 0})}},
            .outputs = {{{0, 0}, {2, 0}}},
            .parameters = {"degree"}};
}
rule undone() { return {.name = "undone", .source = {{partition(x1, 0), combine({0, 0}, 0)}}, .target = {}, .outputs = {{{1, 0}, x1}}}; }

std::vector<rule> right_rules() {
    std::vector<rule> all{merged_linear(), joined_products(), distributed(), relu_behind_concat(), in_samples(), in_outputs(), in_sums(),
                          relu_in_parts(), detour(),          undone()};
    for (auto& r : all) check(r);
    return all;
}

template <class Op> ops::operation made(Op const& op, std::vector<ops::tensor> const& in) { return op.infer(in); }

/// Layers, sums, relus and concats on matrices of eight rows, weights read twice now and then.
parallel_graph random_layers(std::mt19937_64& rng) {
    parallel_graph g;
    std::vector<tensor_ref> matrices{g.add_input("x", {{8, 4}}), g.add_input("y", {{8, 4}})}, weights;
    auto const any = [&] { return matrices[uniform_index(rng, matrices.size())]; };
    for (int n = 0; n < 8; ++n) {
        auto const x = any();
        auto const shape = g.tensor(x).whole;
        auto const width = shape.extents[1];
        switch (uniform_index(rng, 6)) {
        case 0:
        case 1: {
            std::vector<tensor_ref> fitting;
            for (auto const& w : weights)
                if (g.tensor(w).whole.extents[1] == width) fitting.push_back(w);
            if (fitting.empty() || bernoulli(rng, 0.6)) {
                weights.push_back(g.add_weight(text("w", n), {{bernoulli(rng, 0.5) ? 4 : 6, width}}));
                fitting = {weights.back()};
            }
            auto const w = fitting[uniform_index(rng, fitting.size())];
            matrices.push_back({g.add_operator("linear", made(ops::linear{.out = g.tensor(w).whole.extents[0], .bias = false}, {shape}), {x, w}), 0});
            break;
        }
        case 2: {
            auto const y = any();
            if (g.tensor(y).whole == shape) matrices.push_back({g.add_operator("add", made(ops::add{}, {shape, shape}), {x, y}), 0});
            break;
        }
        case 3:
        case 4: matrices.push_back({g.add_operator("relu", made(ops::relu{}, {shape}), {x}), 0}); break;
        default: {
            auto const y = any();
            if (width + g.tensor(y).whole.extents[1] <= 24)
                matrices.push_back({g.add_operator("concat", made(ops::concat{.axis = 1}, {shape, g.tensor(y).whole}), {x, y}), 0});
        }
        }
    }
    std::vector<tensor_ref> results;
    auto const uses = g.uses();
    for (std::uint32_t n = 0; n < g.bound(); ++n)
        if (g[n]->kind == node_kind::compute && uses[n].empty()) results.push_back({n, 0});
    g.set_results(std::move(results));
    return g;
}

struct three {
    parallel_graph g;
    tensor_ref x = g.add_input("x", {{8, 4}}), v = g.add_weight("v", {{6, 4}}), w = g.add_weight("w", {{2, 4}});
    std::uint32_t first = g.add_operator("first", made(ops::linear{.out = 6, .bias = false}, {{{8, 4}}}), {x, v});
    std::uint32_t second = g.add_operator("second", made(ops::linear{.out = 2, .bias = false}, {{{8, 4}}}), {x, w});
    three() { g.set_results({{first, 0}, {second, 0}}); }
};

} // namespace

TEST_CASE("substitution: two layers of one input become one, cut where they were") {
    three t;
    auto const found = matcher(t.g).find(merged_linear());
    REQUIRE(found.size() == 2); // each may be the first
    CHECK(found[0].node == std::vector<std::uint32_t>{t.first, t.second});
    CHECK(found[0].input == std::vector<std::optional<tensor_ref>>{t.x, t.v, t.w});
    auto const after = substitute(t.g, merged_linear(), found[0]);
    REQUIRE(after);
    auto const& g = *after;
    CHECK(g.size() == 6);
    CHECK(to_string(g.tensor(g.results()[0])) == "f32[8,6]");
    CHECK(to_string(g.tensor(g.results()[1])) == "f32[8,2]");
    CHECK(g.results()[0].producer == g.results()[1].producer);
    std::mt19937_64 rng(1);
    CHECK(support::same_value(t.g, g, rng));
}

TEST_CASE("substitution: a rule stands for every degree that is legal") {
    three t;
    auto const found = matcher(t.g).find(in_outputs());
    REQUIRE(found.size() == 2);
    for (auto const degree : {2, 3, 6}) {
        auto const after = substitute(t.g, in_outputs(), found[0], {{"degree", degree}});
        REQUIRE(after);
        CHECK(to_string(after->tensor(after->results()[0])) == "f32[8,6]");
    }
    CHECK(substitute(t.g, in_outputs(), found[0], {{"degree", 4}}).why().find("the parts would not be equal") != std::string::npos);
    CHECK(substitute(t.g, in_outputs(), found[0]).why() == "no number is given for degree");
}

TEST_CASE("substitution: parts that are put together for an operator that needs it not") {
    three t;
    auto const split = *substitute(t.g, in_samples(), matcher(t.g).find(in_samples())[0], {{"degree", 4}});
    auto with_relu = split;
    with_relu.set_results({{with_relu.add_operator("relu", made(ops::relu{}, {{{8, 6}}}), {split.results()[0]}), 0}, split.results()[1]});
    auto const found = matcher(with_relu).find(relu_in_parts());
    REQUIRE(found.size() == 1);
    CHECK(found[0].variables == bindings{{"degree", 4}});
    auto const after = *substitute(with_relu, relu_in_parts(), found[0]);
    auto const relu_node = after[after.results()[0].producer].inputs[0].producer;
    CHECK(after[relu_node]->split.degree == std::vector<std::int32_t>{4, 1});
    std::mt19937_64 rng(1);
    CHECK(support::same_value(with_relu, after, rng));
}

TEST_CASE("substitution: what is read outside must be mapped") {
    three t;
    auto const sum_of = t.g.add_operator("relu", made(ops::relu{}, {{{8, 6}}}), {{t.first, 0}});
    rule const r{
        .name = "drops", .source = {{linear(x1, x2), relu({0, 0})}}, .target = {{linear(x1, x2), relu({0, 0})}}, .outputs = {{{1, 0}, {1, 0}}}};
    check(r);
    t.g.set_results({{sum_of, 0}, {t.first, 0}});
    CHECK(matcher(t.g).find(r).empty()); // the first layer is a result
    CHECK(matcher(t.g).why_not(r) == "what is to be replaced is needed elsewhere, and the rule does not map it: what operator 0 (OP_LINEAR) makes, "
                                     "at 'first', is a result of the graph");
    auto other = t.g;
    auto const also = other.add_operator("also", made(ops::relu{}, {{{8, 6}}}), {{t.first, 0}});
    other.set_results({{other.add_operator("sum", made(ops::add{}, {{{8, 6}}, {{8, 6}}}), {{sum_of, 0}, {also, 0}}), 0}});
    CHECK(
        matcher(other).why_not(r) ==
        "what is to be replaced is needed elsewhere, and the rule does not map it: what operator 0 (OP_LINEAR) makes, at 'first', is read by 'also'");
    t.g.set_results({{sum_of, 0}});
    CHECK(matcher(t.g).find(r).size() == 1);
    CHECK(matcher(t.g).why_not(merged_linear()).empty());
}

TEST_CASE("substitution: why a rule does not match, or can not be applied") {
    three t;
    CHECK(matcher(t.g).why_not(undone()) == "the graph has no OP_PARTITION");
    CHECK(matcher(t.g).why_not(joined_products()) == "the graph has no OP_EW_ADD");
    rule const loose{.name = "loose", .source = {{relu(x1)}}, .target = {{sum(x1, x2)}}, .outputs = {{{0, 0}, {0, 0}}}};
    check(loose);
    t.g.set_results({{t.g.add_operator("relu", made(ops::relu{}, {{{8, 6}}}), {{t.first, 0}}), 0}});
    CHECK(substitute(t.g, loose, matcher(t.g).find(loose).at(0)).why() == "nothing says what input -2 of the target is");
    for (auto const& parameters :
         {parameters{{"PM_AXIS", 0}}, parameters{{"PM_AXIS", 0}, {"PM_NUM_OUTPUTS", "n"}}, parameters{{"PM_NUM_OUTPUTS", 2}}}) {
        rule const cuts{
            .name = "cuts", .source = {{relu(x1)}}, .target = {{{"OP_SPLIT", {x1}, parameters}}}, .outputs = {{{0, 0}, {0, 1}}}, .parameters = {"n"}};
        check(cuts);
        for (std::int64_t const n : {-1, 0, 1, 1000}) CHECK_FALSE(substitute(t.g, cuts, matcher(t.g).find(cuts).at(0), {{"n", n}}));
    }
    auto halves = merged_linear(); // of the samples instead of the features
    halves.target.operators[2] = cut_in({1, 0}, 0, 2);
    three plain;
    CHECK(substitute(plain.g, halves, matcher(plain.g).find(halves).at(0)).why() ==
          "OP_SPLIT: its results hold 16 entries along axis 0, what is split holds 8: must be as many");
    rule const other{.name = "other shape", .source = {{relu(x1)}}, .target = {{joined({x1, x1}, 0)}}, .outputs = {{{0, 0}, {0, 0}}}};
    CHECK(substitute(t.g, other, matcher(t.g).find(other).at(0)).why().find("must be alike") != std::string::npos);
}

TEST_CASE("substitution: why no node stands for an operator of a rule") {
    three t;
    auto const reason = [](parallel_graph const& g, std::vector<pattern_operator> source, std::vector<constraint> constraints = {}) {
        rule r{.name = "any", .source = {std::move(source)}, .constraints = std::move(constraints)};
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(r.source.operators.size()); ++i) r.outputs.push_back({{i, 0}, x1});
        check(r);
        return matcher(g).why_not(r);
    };
    CHECK(reason(t.g, {{"OP_LINEAR", {x1, x2, x3}}}) == "no OP_LINEAR has 3 operands: these have 2");
    CHECK(reason(t.g, {{"OP_LINEAR", {x1, x2}, {{"PM_ACTI", 2}}}}) == "no OP_LINEAR has PM_ACTI 2: these have 0");
    CHECK(reason(t.g, {{"OP_LINEAR", {x1, x2}, {{"PM_AXIS", 2}}}}) == "no OP_LINEAR has PM_AXIS 2: these have none");
    CHECK(reason(t.g, {{"OP_LINEAR", {x1, x1}}}) == "no OP_LINEAR stands where the rule has one: must read as operand 1 x1 again");
    CHECK(reason(t.g, {linear(x1, x2), linear({0, 0}, x2)}) == "no OP_LINEAR stands where the rule has one: must read as operand 0 what operator 0 "
                                                               "(OP_LINEAR) makes and read as operand 1 the x2 of operator 0 (OP_LINEAR)");

    auto const halves = t.g.reshard(t.x, resharding::partition, 0, 2), quarters = t.g.reshard(t.v, resharding::partition, 1, 4);
    auto const whole = t.g.reshard(halves, resharding::combine, 0, 2);
    t.g.set_results({{t.first, 0}, {t.second, 0}, whole, quarters});
    CHECK(reason(t.g, {partition(x1, 2)}) == "no OP_PARTITION has PM_PARALLEL_DIM 2: these have 0, 1");
    CHECK(reason(t.g, {partition(x1, -3)}) == "no OP_PARTITION has PM_PARALLEL_DIM -3: these have 0, 1");
    CHECK(reason(t.g, {{"OP_PARTITION", {x1}, {{"PM_PARALLEL_DIM", 0}, {"PM_PARALLEL_DEGREE", 4}}}}) ==
          "no OP_PARTITION with PM_PARALLEL_DIM 0 has PM_PARALLEL_DEGREE 4: these have 2");
    CHECK(reason(t.g, {partition(x1, 0), partition(x2, 1)}) ==
          "no OP_PARTITION with PM_PARALLEL_DIM 1 stands where the rule has one: must have the degree of operator 0 (OP_PARTITION)");
    CHECK(reason(t.g, {partition(x1, 1), combine({0, 0}, 0)}) == "no OP_COMBINE stands where the rule has one: must read what operator 0 "
                                                                 "(OP_PARTITION) makes and have the degree of operator 0 (OP_PARTITION)");
    CHECK(reason(t.g, {partition(x1, 0), {"OP_PARTITION", {x2}, {{"PM_PARALLEL_DIM", 0}}}}) ==
          "the graph has too few OP_PARTITION with PM_PARALLEL_DIM 0");
    CHECK(reason(t.g, {combine(x1, 0)}, {{"degree", relation::at_least, 4}}) == "a constraint does not hold: degree is at least 4, and is 2");
    CHECK(reason(t.g, {partition(x1, 0), combine({0, 0}, 0)}).empty());

    auto const parts = t.g.add_operator("split", made(ops::split{.axis = 1, .sizes = {2, 2}}, {{{8, 4}}}), {t.x});
    t.g.set_results({{t.first, 0}, {t.second, 0}, {parts, 0}, {parts, 1}});
    CHECK(reason(t.g, {cut_in(x1, 1, 2), linear({0, 1}, x2)}) ==
          "no OP_LINEAR stands where the rule has one: must read as operand 0 output 1 of operator 0 (OP_SPLIT)");
}

TEST_CASE("substitution: rules say pipeline and batch as they say partition and combine") {
    auto const along = [](std::string type, pattern_tensor t) {
        return pattern_operator{std::move(type), {t}, {{"PM_PARALLEL_DIM", 0}, {"PM_PARALLEL_DEGREE", "n"}}};
    };
    rule const later{.name = "micro-batches begin later",
                     .source = {{along("OP_PIPELINE", x1), relu({0, 0})}},
                     .target = {{relu(x1), along("OP_PIPELINE", {0, 0})}},
                     .outputs = {{{1, 0}, {1, 0}}}};
    rule const undone{.name = "joined", .source = {{along("OP_PIPELINE", x1), along("OP_BATCH", {0, 0})}}, .target = {}, .outputs = {{{1, 0}, x1}}};
    rule const made_of{.name = "in micro-batches",
                       .source = {{relu(x1)}},
                       .target = {{along("OP_PIPELINE", x1), relu({0, 0}), along("OP_BATCH", {1, 0})}},
                       .outputs = {{{0, 0}, {2, 0}}},
                       .parameters = {"n"}};
    for (auto const* r : {&later, &undone, &made_of}) check(*r);
    parallel_graph g;
    auto const x = g.add_input("x", {{8, 4}});
    auto const rectified = g.add_operator("relu", made(ops::relu{}, {{{8, 4}}}), {x});
    g.set_results({{rectified, 0}});
    CHECK(matcher(g).why_not(undone) == "the graph has no OP_PIPELINE");
    std::mt19937_64 rng(4);
    auto const piped = substitute(g, made_of, matcher(g).find(made_of).at(0), {{"n", 4}});
    REQUIRE(piped);
    CHECK(support::same_value(g, *piped, rng));
    CHECK_FALSE(*piped == g);
    CHECK(substitute(g, made_of, matcher(g).find(made_of).at(0), {{"n", 3}})
              .why()
              .find("pipeline of axis 0 by 3 of f32[8,4]: the parts would not be equal") != std::string::npos);
    auto const found = matcher(*piped).find(later);
    REQUIRE(found.size() == 1);
    CHECK(found[0].variables == bindings{{"n", 4}});
    auto const moved = substitute(*piped, later, found[0]);
    REQUIRE(moved);
    CHECK(support::same_value(g, *moved, rng));
    auto const back = substitute(*moved, undone, matcher(*moved).find(undone).at(0));
    REQUIRE(back);
    CHECK(*back == g);
}

TEST_CASE("substitution: a cycle is refused") {
    // Two layers, the second of which reads the first: merged they would read themselves.
    parallel_graph g;
    auto const x = g.add_input("x", {{8, 4}}), v = g.add_weight("v", {{4, 4}});
    auto const square = made(ops::linear{.out = 4, .bias = false}, {{{8, 4}}});
    auto const first = g.add_operator("first", square, {x, v});
    auto const second = g.add_operator("second", square, {{first, 0}, v});
    g.set_results({{second, 0}});
    rule const r{.name = "merged of two inputs",
                 .source = {{linear(x1, x2), linear(x3, x2)}},
                 .target = {{joined({x1, x3}, 0), linear({0, 0}, x2), cut_in({1, 0}, 0, 2)}},
                 .outputs = {{{0, 0}, {2, 0}}, {{1, 0}, {2, 1}}}};
    check(r);
    auto const found = matcher(g).find(r);
    REQUIRE(found.size() == 2);
    for (auto const& m : found) CHECK(substitute(g, r, m).why() == "makes a cycle");
}

TEST_CASE("substitution: every application computes the same, forward and backward, on random graphs") {
    constexpr std::uint64_t seed = 4;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = right_rules();
    std::vector<int> applied(rules.size());
    int refused = 0;
    for (int n = 0; n < support::cases(3600); ++n) {
        auto g = random_layers(rng);
        auto const original = g;
        for (int step = 0; step < 10; ++step) {
            auto const i = uniform_index(rng, rules.size());
            auto const found = matcher(g).find(rules[i]);
            if (found.empty()) continue;
            auto const& m = found[uniform_index(rng, found.size())];
            auto after = substitute(g, rules[i], m, {{"degree", static_cast<std::int64_t>(2 + uniform_index(rng, 3))}});
            if (!after) {
                ++refused;
                continue;
            }
            INFO(rules[i].name);
            CHECK(support::same_value(g, *after, rng));
            CHECK(graph::read_graph(*after).graph.size() > 0);
            g = *std::move(after);
            ++applied[i];
        }
        CHECK(support::same_value(original, g, rng));
    }
    int all = 0;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        INFO(rules[i].name);
        CHECK(applied[i] > support::cases(8));
        all += applied[i];
    }
    CHECK(all >= support::cases(10'000));
    CHECK(refused > 0);
}

TEST_CASE("substitution: the comparison refutes a wrong rule") {
    std::mt19937_64 rng(5);
    parallel_graph g;
    auto const x = g.add_input("x", {{8, 4}}), y = g.add_input("y", {{8, 4}});
    auto const added = g.add_operator("add", made(ops::add{}, {{{8, 4}}, {{8, 4}}}), {x, y});
    g.set_results({{g.add_operator("relu", made(ops::relu{}, {{{8, 4}}}), {{added, 0}}), 0}});
    auto const wrong = relu_behind_sum_wrong();
    check(wrong);
    auto const after = *substitute(g, wrong, matcher(g).find(wrong).at(0));
    CHECK_FALSE(support::same_value(g, after, rng));
}
