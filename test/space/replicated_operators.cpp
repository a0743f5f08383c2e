#include <parsearch/space/replicated_operators.hpp>

#include <random>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/softmax.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/hand_network.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {
ops::operation const& named(graph::dense_graph const& g, std::string_view name) { return g.operations[support::op_named(g, name)]; }
} // namespace

TEST_CASE("replicas: partial sums where they may come, copies everywhere") {
    graph::operator_graph net;
    auto const x = net.input("x", {{8, 6}});
    auto const y = net.add("fc1", ops::linear{.out = 6, .bias = false}, x);
    auto const z = net.add("scale", ops::unary{ops::function::scale}, y);
    auto const sum = net.add("sum", ops::add{}, z, x);
    auto const soft = net.add("softmax", ops::softmax{}, sum);
    net.add("fc2", ops::linear{.out = 6, .bias = false}, soft);
    net.add("product", ops::multiply{}, soft, y);
    net.add("negate", ops::unary{ops::function::negate}, net.add("max", ops::reduce{.mode = ops::reduction_mode::max, .axes = {1}, .keep = true}, x));
    net.add("with max", ops::add{}, net.add("all", ops::reduce{.axes = {1}, .keep = true}, y),
            net.add("largest", ops::reduce{.mode = ops::reduction_mode::max, .axes = {1}, .keep = true}, y));
    auto const g = space::with_replicas(graph::read_graph(net).graph, {.copies = 4, .sums = 2});
    for (std::size_t i = 0; i < g.size(); ++i) {
        CAPTURE(g.names[i]);
        ops::validate(g.operations[i], g.names[i]);
        CHECK(ops::replica_dim(g.operations[i], ops::dim_kind::copies).has_value() == (g.names[i] != "x"));
    }
    auto const sums = [&](std::string_view name) { return ops::replica_dim(named(g, name), ops::dim_kind::sums).has_value(); };
    CHECK_FALSE(sums("fc1")); // of a graph input
    CHECK(sums("scale"));
    CHECK(sums("sum"));
    CHECK_FALSE(sums("softmax")); // not linear
    CHECK_FALSE(sums("fc2"));     // of what is never in partial sums
    CHECK(sums("product"));
    CHECK_FALSE(sums("negate"));   // of partial maxima
    CHECK_FALSE(sums("with max")); // one of the terms may come in partial maxima
    CHECK(named(g, "sum").inputs[0].summed);
    CHECK(named(g, "sum").inputs[1].summed);
    CHECK_FALSE(named(g, "product").inputs[0].summed);
    CHECK(named(g, "product").inputs[1].summed);
    auto const again = space::with_replicas(g, {.copies = 8, .sums = 8});
    CHECK(again.operations == g.operations);
    CHECK(support::refusal([&] { return space::with_replicas(g, {.copies = 0}); }) == "space option copies is 0: must be from 1 to 1048576");
    CHECK(support::refusal([&] { return space::with_replicas(g, {.sums = -1}); }) == "space option sums is -1: must be from 1 to 1048576");
}

TEST_CASE("replicas: strategies without them cost what they did") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const plain = make_problem(support::random_network(rng, 8, 0), support::mesh(4, 2, 3), support::mixed_oracle{},
                                        {.simulation = support::random_options(rng)});
        auto const p = with_graph(plain, space::with_replicas(plain.graph(), {.copies = 4, .sums = 4}));
        auto before = plain.evaluator();
        auto after = p.evaluator();
        for (int n = 0; n < 5; ++n) {
            auto const s = support::random_strategy(rng, plain, 0.3);
            auto same = s;
            for (std::size_t i = 0; i < s.size(); ++i)
                for (auto& c = same[i]; c.rank < p.graph().operations[i].dims.size(); ++c.rank) c.degree[c.rank] = 1;
            REQUIRE(before(s) == after(same));
        }
    }
}

TEST_CASE("replicas: a search finds that a cheap operator is better done twice than sent") {
    // relu of what everybody has, read whole by everybody: in copies nothing moves.
    graph::operator_graph net;
    auto const y = net.add("table", ops::softmax{}, net.input("x", {{1, 64}}));
    auto const z = net.add("relu", ops::relu{}, y);
    net.add("fc", ops::linear{.out = 64, .bias = false}, z);
    auto const plain = make_problem(net, support::mesh(2, 100, 50), support::mixed_oracle{}, {.simulation = {.training = false}});
    auto const repeated =
        make_problem(net, support::mesh(2, 100, 50), support::mixed_oracle{}, {.space = {.copies = 2}, .simulation = {.training = false}});
    CHECK(with_graph(repeated, plain.graph()).graph().operations == repeated.graph().operations); // as the options of the problem say
    std::mt19937_64 rng(1);
    auto const without = search::exhaustive(plain, data_parallel(plain), rng), with = search::exhaustive(repeated, data_parallel(repeated), rng);
    CHECK(with.cost < without.cost);
    bool copied = false;
    for (std::size_t i = 0; i < repeated.size(); ++i)
        if (auto const d = ops::replica_dim(repeated.graph().operations[i], ops::dim_kind::copies)) copied = copied || with.best[i].degree[*d] == 2;
    CHECK(copied);
    CHECK(search::mcmc(repeated, data_parallel(repeated), rng, {.evaluations = 2000}).cost == with.cost);
}

TEST_CASE("replicas: in a language model residual sums may take partial sums") {
    auto const g = space::with_replicas(graph::read_graph(models::llama({.layers = 2})).graph, {.copies = 8, .sums = 8});
    std::size_t sums = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
        ops::validate(g.operations[i], g.names[i]);
        bool const may = ops::replica_dim(g.operations[i], ops::dim_kind::sums).has_value();
        if (g.operations[i].kind == "add") CHECK(may);
        if (g.operations[i].work == ops::work_class::normalization || g.operations[i].work == ops::work_class::softmax) CHECK_FALSE(may);
        sums += may;
    }
    CHECK(sums >= 4);
}
