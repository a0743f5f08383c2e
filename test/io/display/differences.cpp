#include <parsearch/io/display/differences.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using io::difference_line;

namespace {
graph::dense_graph layers() {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("x", {{64, 32}});
    for (int i = 1; i <= 3; ++i) x = g.add(text("fc", i), ops::linear{.out = 32}, x);
    return graph::read_graph(g).graph;
}
} // namespace

TEST_CASE("differences: of two plans by hand") {
    auto const g = layers();
    pipeline::pipeline_plan const a{.how = pipeline::unpipelined(g), .strategy = space::data_parallel(g, 4)};
    CHECK(io::differences({a, g}, {a, g}).empty());
    auto b = a;
    b.strategy[1] = b.strategy[2] = space::whole(g.operations[1]);
    CHECK(io::differences({a, g}, {b, g}) == std::vector<difference_line>{{"fc{1,2}", 2, "linear", "s4 @0+1", "whole @0"}});

    auto const half = pipeline::micro_batch(g, 2);
    b = {.how = {.stage = {0, 0, 1, 1}, .stages = 2, .micro_batches = 2, .recompute = {false, true}, .sharded = pipeline::sharded_states::optimizer},
         .strategy = space::data_parallel(half, 4)};
    CHECK(io::differences({a, g}, {b, half}) == std::vector<difference_line>{{"stages", 0, "", "1", "2"},
                                                                             {"micro-batches", 0, "", "1", "2"},
                                                                             {"order of launches", 0, "", "-", "1f1b"},
                                                                             {"shared by replicas", 0, "", "nothing", "optimizer"},
                                                                             {"computed again", 0, "", "nothing", "1 of 2 stages"},
                                                                             {"fc1", 1, "linear", "s4 @0+1", "stage 0: s4 @0+1"},
                                                                             {"fc{2,3}", 2, "linear", "s4 @0+1", "stage 1: s4 @0+1"}});
    auto c = b;
    c.how.offloaded = {false, true, false, false};
    c.how.segment = {0, 0, 0, 1};
    CHECK(io::differences({b, half}, {c, half}) == std::vector<difference_line>{{"activations on hosts", 0, "", "none", "of 1 of 3 segments"}});
    c = b;
    for (auto const& [states, said] : {std::pair{pipeline::sharded_states::gradients, "optimizer, gradients"},
                                       {pipeline::sharded_states::parameters, "optimizer, gradients, parameters"},
                                       {pipeline::sharded_states::parameters_within_nodes, "optimizer, gradients, parameters within nodes"}}) {
        c.how.sharded = states;
        CHECK(io::differences({b, half}, {c, half}) == std::vector<difference_line>{{"shared by replicas", 0, "", "optimizer", said}});
    }
}

TEST_CASE("differences: operators that only one plan has") {
    auto const g = layers();
    auto other = g;
    other.names[2] = "fc2+relu";
    pipeline::pipeline_plan const a{.how = pipeline::unpipelined(g), .strategy = space::data_parallel(g, 4)};
    CHECK(io::differences({a, g}, {a, other}) ==
          std::vector<difference_line>{{"fc2", 1, "linear", "s4 @0+1", "-"}, {"fc2+relu", 1, "linear", "-", "s4 @0+1"}});
    auto short_one = a;
    short_one.strategy.pop_back();
    CHECK(support::refusal([&] {
              return io::differences({a, g}, {short_one, g}).size();
          }) == "a plan of 3 configurations: the graph has 4 operators, must be one each");
}

TEST_CASE("differences: each operator that differs is counted once") {
    auto const g = graph::read_graph(models::gpt({.layers = 4})).graph;
    space::strategy_space const space(g, 4);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        pipeline::pipeline_plan const a{.how = pipeline::unpipelined(g), .strategy = space::data_parallel(g, 4)};
        auto b = a;
        std::size_t changed = 0, counted = 0;
        for (std::size_t op = 0; op < g.size(); ++op) {
            if (g.operations[op].work == ops::work_class::source || !bernoulli(rng, 0.3)) continue;
            b.strategy[op] = support::random_configuration(rng, g.operations[op], space[op], 4, false);
            changed += space::to_string(b.strategy[op], g.operations[op]) != space::to_string(a.strategy[op], g.operations[op]);
        }
        for (auto const& line : io::differences({a, g}, {b, g})) {
            CHECK(line.first != line.second);
            counted += line.operators;
        }
        CHECK(counted == changed);
    }
}
