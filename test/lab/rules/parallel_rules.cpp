#include <parsearch/lab/rules/parallel_rules.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/pool.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/ops/softmax.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>

#include "support/cases.hpp"
#include "support/grown_graph.hpp"
#include "support/refusal.hpp"
#include "support/run_in_parts.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

graph_rule const& rule_named(std::vector<graph_rule> const& rules, std::string_view name) {
    auto const at = std::ranges::find(rules, name, [](auto const& r) { return std::string_view(r.name()); });
    REQUIRE(at != rules.end());
    return *at;
}

/// What `rule` makes of `g` where its description is `what`.
parallel_graph applied(std::string_view rule, parallel_graph const& g, std::string_view what, parallel_rule_options const& options = {}) {
    auto all = rule_named(parallel_rules(options), rule)(g);
    std::string had;
    for (auto const& r : all) had += r.what + "; ";
    INFO(rule, ": ", what, " among ", had);
    auto const at = std::ranges::find(all, what, &rewritten::what);
    REQUIRE(at != all.end());
    return at->graph;
}

/// How often a graph reshards so.
std::map<resharding, int> reshardings(parallel_graph const& g) {
    std::map<resharding, int> out;
    for (std::uint32_t n = 0; n < g.bound(); ++n)
        if (g.contains(n) && g[n]->kind == node_kind::reshard) ++out[g[n]->how];
    return out;
}
std::uint32_t node_named(parallel_graph const& g, std::string_view name) {
    for (std::uint32_t n = 0; n < g.bound(); ++n)
        if (g.contains(n) && g[n]->name == name) return n;
    FAIL("no node is called ", name);
    return 0;
}

/// Values, gradients of results, and what a graph makes of them whole.
struct expectation {
    support::named_arrays values;
    std::vector<reference::array> seeds;
    support::graph_run whole;

    expectation(parallel_graph const& g, std::mt19937_64& rng) {
        for (std::uint32_t n = 0; n < g.bound(); ++n)
            if (g.contains(n) && g[n]->kind <= node_kind::weight) values[g[n]->name] = reference::random_array(g[n]->outputs[0].whole.extents, rng);
        for (auto const& t : g.results()) seeds.push_back(reference::random_array(g.tensor(t).whole.extents, rng));
        whole = support::run_in_parts(g, values, seeds, purpose::inference); // a batch normalization's statistics are given
        bool known = true;                                                   // to the reference as a whole, and as what it is in parts
        for (std::uint32_t n = 0; n < g.bound(); ++n)
            known = known && (!g.contains(n) || (g[n]->operation.work != ops::work_class::attention && g[n]->operation.kind != "scale"));
        if (!known) return;
        auto const reference = support::run(g, values, seeds, purpose::inference);
        CHECK(whole.results == reference.results);
        CHECK(whole.gradients == reference.gradients);
    }
    void check(parallel_graph const& g) const {
        auto const parts = support::run_in_parts(g, values, seeds, purpose::inference);
        CHECK(parts.results == whole.results);
        CHECK(parts.gradients == whole.gradients);
    }
};

/// A few operators of one family: on sequences, images, matrices or indices.
parallel_graph random_graph(std::mt19937_64& rng) {
    support::grown_graph b;
    auto const any = [&] { return b.tensors[uniform_index(rng, b.tensors.size())]; };
    auto const shape = [&](tensor_ref t) { return b.g.tensor(t).whole.extents; };
    auto const family = uniform_index(rng, 4);
    bool const images = family == 1;
    auto const base = family == 0 ? ops::tensor{{2, 2, 4}} : images ? ops::tensor{{2, 2, 4, 2}} : ops::tensor{{2, 4}};
    if (family == 3) {
        bool const bag = bernoulli(rng, 0.5);
        auto const indices = b.g.add_input("indices", {bag ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{2}, ops::dtype::i64});
        bag ? b.add(ops::embedding_bag{.entries = 6, .features = 4}, {indices}) : b.add(ops::embedding{.entries = 6, .features = 4}, {indices});
    } else {
        b.tensors = {b.g.add_input("x", base)};
    }
    auto const wanted = 3 + uniform_index(rng, 3);
    for (std::size_t n = 0; n < wanted; ++n) {
        auto const x = bernoulli(rng, 0.6) ? b.tensors.back() : any();
        auto const e = shape(x);
        try {
            switch (uniform_index(rng, 11)) {
            case 0:
            case 1:
                if (images) {
                    if (e[2] == 4)
                        b.add(ops::conv2d{.out = 2, .kernel = {bernoulli(rng, 0.5) ? 3 : 1, 1}, .padding = {0, 0}, .bias = bernoulli(rng, 0.5)}, {x});
                } else b.add(ops::linear{.out = 4, .bias = bernoulli(rng, 0.5)}, {x});
                break;
            case 2: b.add(ops::relu{}, {x}); break;
            case 3: b.add(ops::unary{ops::function::scale}, {x}); break;
            case 4: {
                auto const y = any();
                if (shape(y) == e) bernoulli(rng, 0.7) ? b.add(ops::add{}, {x, y}) : b.add(ops::multiply{}, {x, y});
                break;
            }
            case 5: {
                auto const y = any();
                if (shape(y) == e && e[0] <= 2) b.add(ops::concat{.axis = bernoulli(rng, 0.5) ? 0 : 1}, {x, y});
                break;
            }
            case 6: images ? b.add(ops::batch_norm{}, {x}) : b.add(ops::layer_norm{}, {x}); break;
            case 7:
                if (images && e[2] == 4)
                    b.add(
                        ops::pool2d{.mode = bernoulli(rng, 0.5) ? ops::pool_mode::max : ops::pool_mode::average, .kernel = {2, 1}, .stride = {2, 1}},
                        {x});
                else if (images) b.add(ops::global_pool{}, {x});
                break;
            case 8: b.add(ops::softmax{}, {x}); break;
            case 9:
                if (family != 0 || e[2] % 2) break;
                if (bernoulli(rng, 0.5)) b.add(ops::multi_head_attention{.heads = 2, .bias = bernoulli(rng, 0.5)}, {x, x, x});
                else b.add(ops::attention{.heads = 2}, {x, any(), x});
                break;
            default:
                if (e[1] == 4) b.add(ops::split{.axis = 1, .sizes = {2, 2}}, {x});
                else if (e.size() == 2) b.add(ops::transpose{.permutation = {1, 0}}, {x});
            }
        } catch (invalid_input const&) { // the tensors drawn do not go together
        }
    }
    b.finish();
    return b.g;
}

} // namespace

TEST_CASE("parallel rules: every application computes the same in its parts, forward and backward, on random graphs") {
    constexpr std::uint64_t seed = 11;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    std::map<std::string, int> of_rule, of_kind;
    int all = 0;
    for (int n = 0; n < support::cases(700); ++n) {
        auto g = random_graph(rng);
        if (g.results().empty()) continue;
        auto const rules =
            parallel_rules({.degrees = bernoulli(rng, 0.5) ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{2}, .largest_degree = 4});
        expectation const expected(g, rng);
        for (int step = 0; step < 7; ++step) {
            std::vector<std::pair<std::size_t, std::vector<rewritten>>> found;
            for (std::size_t r = 0; r < rules.size(); ++r)
                if (auto made = rules[r](g); !made.empty()) found.emplace_back(r, std::move(made));
            if (found.empty()) break;
            for (auto const& [r, made] : found)
                for (std::size_t k = 0; k < 2 && k < made.size(); ++k) { // not all that a split could be
                    auto const& one = made[(uniform_index(rng, made.size()) + k) % made.size()];
                    INFO(rules[r].name(), ": ", one.what);
                    expected.check(one.graph);
                    ++of_rule[rules[r].name()];
                    if (rules[r].name() != "simplify") ++of_kind[rules[r].name() + ' ' + one.what.substr(0, one.what.find_first_of("~ "))];
                    ++all;
                }
            // Any rule, then any of its graphs: those that split are many.
            auto& [r, made] = found[uniform_index(rng, found.size())];
            g = std::move(made[uniform_index(rng, made.size())].graph);
        }
    }
    CHECK(all >= support::cases(10'000));
    auto const often = [&](std::map<std::string, int> const& counts, std::string const& what, int least) {
        INFO(what);
        CHECK((counts.contains(what) ? counts.at(what) : 0) >= support::cases(least));
    };
    for (auto const& r : parallel_rules()) often(of_rule, r.name(), 50);
    if (!support::nightly()) return; // fewer graphs do not have all kinds everywhere
    for (std::string const kind :
         {"linear", "conv2d", "attention", "multi_head_attention", "embedding", "embedding_bag", "relu", "add", "multiply", "scale", "softmax",
          "layer_norm", "batch_norm", "max_pool2d", "average_pool2d", "average_global_pool", "concat", "split"}) {
        often(of_kind, "split " + kind, 40);
        often(of_kind, "unsplit " + kind, 20);
        often(of_kind, "partition_before " + kind, 4);
    }
    for (std::string const kind : {"linear", "add", "scale", "concat", "split", "multiply"}) often(of_kind, "reduce_behind " + kind, 8);
}

TEST_CASE("parallel rules: equal graphs come once, and in the same order each time, on random graphs") {
    constexpr std::uint64_t seed = 12;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = parallel_rules();
    for (int n = 0; n < support::cases(60); ++n) {
        auto g = random_graph(rng);
        for (int step = 0; step < 3; ++step) {
            std::vector<rewritten> all;
            for (auto const& r : rules) {
                auto const made = r(g), again = r(g);
                REQUIRE(made.size() == again.size());
                for (std::size_t i = 0; i < made.size(); ++i) {
                    CHECK(made[i].what == again[i].what);
                    CHECK(made[i].graph == again[i].graph);
                    CHECK_FALSE(made[i].graph == g);
                    for (std::size_t k = 0; k < i; ++k) CHECK_FALSE(made[i].graph == made[k].graph);
                }
                std::ranges::copy(made, std::back_inserter(all));
            }
            if (all.empty()) break;
            g = all[uniform_index(rng, all.size())].graph;
        }
    }
}

TEST_CASE("parallel rules: what was split comes back, along every dim, on random graphs") {
    constexpr std::uint64_t seed = 13;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = parallel_rules();
    int back = 0;
    for (int n = 0; n < support::cases(60); ++n) {
        auto const g = random_graph(rng);
        for (auto const& split : rule_named(rules, "split")(g)) {
            auto const undone = rule_named(rules, "unsplit")(split.graph);
            INFO(split.what);
            CHECK(std::ranges::any_of(undone, [&](auto const& r) { return r.graph == g; }));
            ++back;
        }
    }
    CHECK(back > support::cases(500));
}

TEST_CASE("parallel rules: a multilayer perceptron becomes Megatron's in three steps") {
    support::grown_graph b;
    auto x = b.g.add_input("x", {{4, 8}});
    x = b.add(ops::linear{.out = 16}, {x})[0];
    x = b.add(ops::relu{}, {x})[0];
    b.add(ops::linear{.out = 8}, {x});
    b.finish();
    std::mt19937_64 rng(1);
    expectation const expected(b.g, rng);
    auto const columns = applied("split", b.g, "linear along o by 2"); // of the weight of the first layer
    CHECK(reshardings(columns) == std::map<resharding, int>{{resharding::partition, 2}, {resharding::combine, 1}, {resharding::replicate, 1}});
    auto const hidden = applied("combine_behind", columns, "relu along c by 2");
    auto const both = applied("combine_behind", hidden, "linear~2 along k by 2"); // rows of the second
    // x is copied, weights are cut, the bias of the second goes along, and what it makes is reduced: nothing else.
    CHECK(reshardings(both) == std::map<resharding, int>{{resharding::partition, 3}, {resharding::replicate, 2}, {resharding::reduce, 1}});
    CHECK(both[both.results()[0].producer]->how == resharding::reduce);
    expected.check(columns);
    expected.check(hidden);
    expected.check(both);
    // And back.
    CHECK(applied("unsplit", applied("unsplit", applied("unsplit", both, "linear~2 whole along k"), "relu whole along c"), "linear whole along o") ==
          b.g);
}

TEST_CASE("parallel rules: partial sums pass a scale, a layer and a sum, and are added up once") {
    support::grown_graph b;
    auto const x = b.g.add_input("x", {{4, 8}}), y = b.g.add_input("y", {{4, 8}});
    auto const u = b.add(ops::linear{.out = 6, .bias = false}, {x}), v = b.add(ops::linear{.out = 6, .bias = false}, {y});
    auto const scaled = b.add(ops::unary{ops::function::scale}, u);
    auto const sum = b.add(ops::add{}, {scaled[0], v[0]});
    b.add(ops::relu{}, b.add(ops::linear{.out = 4, .bias = false}, sum));
    b.finish();
    std::mt19937_64 rng(2);
    expectation const expected(b.g, rng);
    auto g = b.g;
    auto const names = [&](std::string_view rule) {
        std::vector<std::string> out;
        for (auto const& r : rule_named(parallel_rules(), rule)(g)) out.push_back(r.what);
        return out;
    };
    g = applied("split", g, "linear along k by 4");
    g = applied("reduce_behind", g, "scale on 4 times the partial sums");
    CHECK(names("reduce_behind").empty()); // the other term is whole
    g = applied("split", g, "linear~2 along k by 4");
    g = applied("reduce_behind", g, "add on 4 times the partial sums");
    CHECK(reshardings(g)[resharding::reduce] == 1);
    g = applied("reduce_behind", g, "linear~3 on 4 times the partial sums");
    CHECK(reshardings(g)[resharding::reduce] == 1);
    CHECK(to_string(g.tensor(g[g[g.results()[0].producer].inputs[0].producer].inputs[0])) == "f32[4,4] 4 sums");
    CHECK(names("reduce_behind").empty()); // a relu is not linear
    expected.check(g);
    auto const before = applied("reduce_before", g, "linear~3 on whole sums");
    expected.check(before);
    CHECK(before[node_named(before, "linear~3")]->split == unsplit(before[node_named(before, "linear~3")]->operation));
}

TEST_CASE("parallel rules: partial maxima pass through nothing") {
    support::grown_graph b;
    auto const x = b.g.add_input("x", {{4, 8}});
    b.add(ops::unary{ops::function::scale}, b.add(ops::reduce{.mode = ops::reduction_mode::max, .axes = {1}}, {x}));
    b.finish();
    auto const g = applied("split", b.g, "reduce_max along c by 2");
    CHECK(g.tensor({node_named(g, "reduce_max"), 0}).sums == 2);
    CHECK(rule_named(parallel_rules(), "reduce_behind")(g).empty());
    for (auto const mode : {ops::reduction_mode::sum, ops::reduction_mode::mean}) {
        support::grown_graph sums;
        auto const y = sums.g.add_input("x", {{4, 8}});
        auto const made = sums.add(ops::reduce{.mode = mode, .axes = {1}}, {y});
        sums.add(ops::unary{ops::function::scale}, made);
        sums.finish();
        auto const name = sums.g[made[0].producer]->name;
        CHECK(rule_named(parallel_rules(), "reduce_behind")(applied("split", sums.g, name + " along c by 2")).size() == 1);
    }
}

TEST_CASE("parallel rules: an operator runs in copies where its results are copied") {
    support::grown_graph b;
    auto const x = b.g.add_input("x", {{4, 8}});
    auto const y = b.add(ops::relu{}, {x});
    b.add(ops::linear{.out = 6, .bias = false}, y);
    b.finish();
    auto const split = applied("split", b.g, "linear along o by 3");
    auto const copied = applied("replicate_before", split, "relu in 3 times the copies");
    CHECK(copied[node_named(copied, "relu")]->split.copies == 3);
    CHECK(copied[copied[node_named(copied, "relu")].inputs[0].producer]->how == resharding::replicate);
    CHECK(applied("replicate_behind", copied, "relu once") == split);
    // Not where somebody reads it once: copies are not dropped.
    b.add(ops::softmax{}, y);
    b.finish();
    CHECK(rule_named(parallel_rules(), "replicate_before")(applied("split", b.g, "linear along o by 3")).empty());
}

TEST_CASE("parallel rules: what lies between two operators becomes less") {
    support::grown_graph b;
    auto const x = b.g.add_input("x", {{4, 8}});
    b.add(ops::relu{}, b.add(ops::softmax{}, {x}));
    b.finish();
    auto const one = applied("split", b.g, "softmax along s by 4"), two = applied("split", one, "relu along s by 2");
    auto const simple = applied("simplify", two, "from softmax as f32[4/2,8]");
    CHECK(simple.size() + 1 == two.size()); // a combine by 4 and a partition by 2 have become a combine by 2
    CHECK(rule_named(parallel_rules(), "simplify")(simple).empty());
    auto const none = applied("simplify", applied("split", one, "relu along s by 4"), "from softmax as f32[4/4,8]");
    CHECK(reshardings(none) == std::map<resharding, int>{{resharding::partition, 1}, {resharding::combine, 1}});
    CHECK(none == applied("combine_behind", one, "relu along s by 4"));
    CHECK(none == applied("partition_before", applied("split", b.g, "relu along s by 4"), "softmax along s by 4"));
    // One resharding into micro-batches is the fewest there are; two are one.
    auto const micro = [](bool twice) {
        parallel_graph g;
        auto t = g.reshard(g.add_input("x", {{8, 8}}), resharding::pipeline, 0, 2);
        if (twice) t = g.reshard(t, resharding::pipeline, 0, 2);
        auto const relu = g.add_operator("relu", ops::relu{}.infer(std::vector<ops::tensor>{{{8, 8}}}), {t});
        g.set_results({{relu, 0}});
        return g;
    };
    CHECK(rule_named(parallel_rules(), "simplify")(micro(false)).empty());
    auto const joined = rule_named(parallel_rules(), "simplify")(micro(true));
    REQUIRE(joined.size() == 1);
    CHECK(joined[0].graph.size() + 1 == micro(true).size());
}

TEST_CASE("parallel rules: the degrees are those that are asked for") {
    support::grown_graph b;
    b.add(ops::relu{}, {b.g.add_input("x", {{12, 5}})});
    b.finish();
    auto const made = [&](parallel_rule_options const& options) {
        std::vector<std::string> out;
        for (auto const& r : rule_named(parallel_rules(options), "split")(b.g)) out.push_back(r.what);
        return out;
    };
    CHECK(made({}) ==
          std::vector<std::string>{"relu along s by 2", "relu along s by 3", "relu along s by 4", "relu along s by 6", "relu along c by 5"});
    CHECK(made({.largest_degree = 3}) == std::vector<std::string>{"relu along s by 2", "relu along s by 3"});
    CHECK(made({.degrees = {4, 8, 12}}) == std::vector<std::string>{"relu along s by 4", "relu along s by 12"});
    CHECK(support::refusal([] { return parallel_rules({.largest_degree = 1}); }) ==
          "parallel_rules: option 'largest_degree' is 1: must be at least 2");
    CHECK(support::refusal([] { return parallel_rules({.degrees = {1}}); }) ==
          "parallel_rules: option 'degrees' has 1 as number 0: each must be at least 2 and larger than the one before");
    CHECK(support::refusal([] {
              return parallel_rules({.degrees = {4, 4}});
          }) == "parallel_rules: option 'degrees' has 4 as number 1: each must be at least 2 and larger than the one before");
}

TEST_CASE("parallel rules: they apply to networks of the zoo") {
    std::mt19937_64 rng(14);
    auto const rules = parallel_rules({.degrees = {2}});
    std::set<std::string> applied_rules;
    auto const walk = [&](auto const& model) {
        auto g = lift(graph::read_graph(model).graph).graph;
        for (int step = 0; step < 6; ++step) {
            std::vector<rewritten> next;
            while (next.empty()) {
                auto const& r = rules[step == 0 ? 0 : uniform_index(rng, rules.size())];
                next = r(g);
                if (!next.empty()) applied_rules.insert(r.name());
            }
            for (auto const& one : next) REQUIRE_FALSE(one.graph.order().empty());
            g = next[uniform_index(rng, next.size())].graph;
        }
    };
    walk(models::bert({.layers = 2}));
    walk(models::dlrm());
    walk(models::moe());
    walk(models::inception_v3());
    CHECK(applied_rules.size() >= 4);
}
