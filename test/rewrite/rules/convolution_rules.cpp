#include <parsearch/rewrite/rules/convolution_rules.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/rewrite/rules/fold_weights.hpp>

#include "support/cases.hpp"
#include "support/grown_graph.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

graph_rule rule_named(purpose use, std::string_view name) {
    auto const rules = algebraic_rules(use);
    auto const at = std::ranges::find(rules, name, [](auto const& r) { return std::string_view(r.name()); });
    REQUIRE(at != rules.end());
    return *at;
}

/// `g` after every rule that `what` names, first application each.
parallel_graph applied(parallel_graph g, purpose use, std::vector<std::string> const& names) {
    for (auto const& name : names) {
        auto made = rule_named(use, name)(g);
        INFO(name);
        REQUIRE_FALSE(made.empty());
        g = std::move(made[0].graph);
    }
    return g;
}
std::vector<std::string> told(graph_rule const& rule, parallel_graph const& g) {
    std::vector<std::string> out;
    for (auto const& r : rule(g)) out.push_back(r.what);
    return out;
}
std::size_t operators_of(parallel_graph const& g, std::string_view kind) {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < g.bound(); ++i) n += g.contains(i) && g[i]->kind == node_kind::compute && g[i]->operation.kind == kind;
    return n;
}

/// Siblings of several kernels, layers, normalizations, functions.
parallel_graph random_graph(std::mt19937_64& rng) {
    support::grown_graph b;
    bool const images = bernoulli(rng, 0.8);
    b.tensors = {b.g.add_input("x", images ? ops::tensor{{2, 2, 4, 3}} : ops::tensor{{3, 4}})};
    auto const layer = [&](tensor_ref x) {
        bool const bias = bernoulli(rng, 0.5);
        auto const out = bernoulli(rng, 0.5) ? 2 : 4;
        auto const h = static_cast<std::int64_t>(uniform_index(rng, 2)), w = static_cast<std::int64_t>(uniform_index(rng, 2));
        return images ? b.add(ops::conv2d{.out = out, .kernel = {1 + 2 * h, 1 + 2 * w}, .padding = {h, w}, .bias = bias}, {x})[0]
                      : b.add(ops::linear{.out = out, .bias = bias}, {x})[0];
    };
    for (int n = 0; n < 3; ++n) {
        auto const x = b.tensors[uniform_index(rng, b.tensors.size())];
        for (auto copies = 1 + uniform_index(rng, 3); copies > 0; --copies) {
            auto y = layer(x);
            if (bernoulli(rng, 0.3)) y = b.add(ops::relu{}, {y})[0];
            else if (bernoulli(rng, 0.6)) y = b.add(ops::batch_norm{.relu = bernoulli(rng, 0.5)}, {y})[0];
        }
    }
    b.finish();
    return b.g;
}

} // namespace

TEST_CASE("convolution rules: every application computes the same, forward and backward, on random graphs") {
    constexpr std::uint64_t seed = 15;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    std::map<std::string, int> applied_to;
    int merged_after = 0;
    for (int n = 0; n < support::cases(320); ++n) {
        auto const use = bernoulli(rng, 0.5) ? purpose::inference : purpose::training;
        auto const rules = algebraic_rules(use);
        auto g = random_graph(rng);
        auto const original = g;
        for (int step = 0; step < 4; ++step) {
            std::vector<parallel_graph> next;
            for (auto const& r : rules) {
                if (r.name() != "enlarge" && r.name() != "fold_batch_norm" && r.name() != "merge" && r.name() != "fuse") continue;
                for (auto& made : r(g)) {
                    INFO(r.name(), ": ", made.what);
                    CHECK(support::same_value(g, made.graph, rng, use));
                    ++applied_to[r.name() + (use == purpose::inference ? " for inference" : " in training")];
                    merged_after += r.name() == "merge" && operators_of(g, "pad") > 0;
                    next.push_back(std::move(made.graph));
                }
            }
            if (next.empty()) break;
            g = std::move(next[uniform_index(rng, next.size())]);
        }
        CHECK(support::same_value(original, g, rng, use));
    }
    for (std::string const what :
         {"enlarge in training", "enlarge for inference", "fold_batch_norm for inference", "merge in training", "merge for inference"}) {
        INFO(what);
        CHECK(applied_to[what] > support::cases(120));
    }
    CHECK_FALSE(applied_to.contains("fold_batch_norm in training"));
    CHECK(merged_after > support::cases(60));
}

TEST_CASE("enlarge: siblings of 1x1 and 3x3, and of 1x3 and 3x1, become one convolution") {
    for (auto const& [first, second] : {std::pair{std::array<std::int64_t, 2>{1, 1}, std::array<std::int64_t, 2>{3, 3}}, {{1, 3}, {3, 1}}}) {
        support::grown_graph b;
        auto const x = b.g.add_input("x", {{2, 3, 5, 4}});
        for (auto const& k : {first, second}) b.add(ops::conv2d{.out = 2, .kernel = k, .padding = {k[0] / 2, k[1] / 2}}, {x});
        b.finish();
        CHECK(told(rule_named(purpose::training, "merge"), b.g).empty());
        auto const one = applied(b.g, purpose::training, {"enlarge", "merge"});
        CHECK(operators_of(one, "conv2d") == 1);
        CHECK(operators_of(one, "pad") == (first[0] == first[1] ? 1 : 2));
        CHECK(told(rule_named(purpose::training, "enlarge"), one).empty());
        std::mt19937_64 rng(3);
        CHECK(support::same_value(b.g, one, rng));
        // While training the border stays zero since it is made anew; for inference it is held.
        CHECK(operators_of(fold_weights(one), "pad") == operators_of(one, "pad"));
        auto const folded = fold_weights(one, purpose::inference);
        CHECK(operators_of(folded, "pad") == 0);
        CHECK(operators_of(folded, "concat") == 0);
        auto const layer = graph::read_graph(folded).graph.operations[1];
        CHECK(layer == ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}.infer(std::vector{ops::tensor{{2, 3, 5, 4}}}));
    }
}

TEST_CASE("enlarge: siblings stay in their order, as what is behind them asks, and keep their names") {
    support::grown_graph b;
    auto const x = b.g.add_input("x", {{2, 3, 5, 4}});
    auto const small = b.add(ops::conv2d{.out = 2}, {x}), large = b.add(ops::conv2d{.out = 2, .kernel = {3, 3}, .padding = {1, 1}}, {x});
    b.add(ops::concat{.axis = 1}, {small[0], large[0]});
    b.finish();
    auto const one = applied(b.g, purpose::inference, {"enlarge", "merge", "cancel"});
    CHECK(operators_of(one, "split") == 0);
    auto const read = graph::read_graph(fold_weights(one, purpose::inference)).graph;
    CHECK(read.names == std::vector<std::string>{"x", "conv2d|conv2d~2"});
}

TEST_CASE("enlarge: where siblings would not merge it does nothing, and equal changes come once") {
    auto const changes = [](std::vector<ops::conv2d> const& siblings) {
        support::grown_graph b;
        auto const x = b.g.add_input("x", {{2, 2, 6, 6}});
        for (auto const& s : siblings) b.add(s, {x});
        b.finish();
        return told(rule_named(purpose::training, "enlarge"), b.g);
    };
    ops::conv2d const small{.out = 2}, large{.out = 4, .kernel = {3, 3}, .padding = {1, 1}};
    CHECK(changes({small, large}) == std::vector<std::string>{"conv2d to 3x3"});
    CHECK(changes({small, large, large}) == std::vector<std::string>{"conv2d to 3x3"});
    CHECK(changes({large, large}).empty());
    CHECK(changes({small, {.out = 2, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}}).empty());
    CHECK(changes({small, {.out = 2, .kernel = {3, 3}}}).empty());                                           // not of one padding, once enlarged
    CHECK(changes({small, {.out = 2, .kernel = {2, 2}, .padding = {1, 1}, .padding_end = {0, 0}}}).empty()); // by an odd number
    CHECK(changes({small, {.out = 4, .kernel = {3, 3}, .padding = {1, 1}, .bias = false}}).empty());
}

TEST_CASE("fold_batch_norm: a convolution and what normalises it are one operator for inference, whose weights are held") {
    for (bool const bias : {false, true}) {
        support::grown_graph b;
        auto const x = b.g.add_input("x", {{2, 3, 5, 4}});
        b.add(ops::batch_norm{.relu = true}, b.add(ops::conv2d{.out = 2, .kernel = {3, 3}, .bias = bias}, {x}));
        b.finish();
        auto const one = applied(b.g, purpose::inference, {"fold_batch_norm"});
        std::mt19937_64 rng(4);
        CHECK(support::same_value(b.g, one, rng, purpose::inference));
        CHECK_FALSE(support::same_value(b.g, one, rng, purpose::training)); // statistics of the batch
        auto const read = graph::read_graph(fold_weights(one, purpose::inference)).graph;
        REQUIRE(read.size() == 2);
        CHECK(read.names[1] == "conv2d");
        CHECK(read.operations[1].kind == "conv2d+relu");
        CHECK(read.operations[1].weights.size() == 2);
    }
    auto const training = algebraic_rules(), inference = algebraic_rules(purpose::inference);
    CHECK(std::ranges::none_of(training, [](auto const& r) { return r.name() == "fold_batch_norm"; }));
    CHECK(inference.size() == training.size() + 1);
}

TEST_CASE("convolution rules: Inception-v3 has a place for both") {
    auto g = lift(graph::read_graph(models::inception_v3()).graph).graph;
    auto const enlarged = told(rule_named(purpose::training, "enlarge"), g);
    CHECK(enlarged.size() == 4);
    CHECK(enlarged.at(0) == "e1.3x3.fork.row.1.conv to 3x3, e1.3x3.fork.column.1.conv to 3x3");
    auto const fold = rule_named(purpose::inference, "fold_batch_norm");
    auto const norms = operators_of(g, "batch_norm");
    CHECK(norms == 94);
    CHECK(fold(g).size() == norms);
}
