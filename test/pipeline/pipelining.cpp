#include <parsearch/pipeline/pipelining.hpp>

#include <algorithm>

#include <doctest/doctest.h>

#include <parsearch/models/mlp.hpp>

#include "support/refusal.hpp"

namespace pipeline = parsearch::pipeline;

TEST_CASE("pipelining: what is wrong is named") {
    auto const g = parsearch::graph::read_graph(parsearch::models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 4})).graph;
    auto const refused = [&](auto const& change) {
        auto p = pipeline::unpipelined(g);
        p.stages = 2;
        change(p);
        return support::refusal([&] {
            pipeline::validate(p, g);
            return 0;
        });
    };
    CHECK(refused([](auto&) {}) == "");
    CHECK(refused([](auto& p) { p.stages = 0; }) == "pipeline: 0 stages: must be at least 1");
    CHECK(refused([](auto& p) { p.stages = 4'000'000'000; }) ==
          parsearch::text("pipeline: 4000000000 stages: the graph has ", g.size(), " operators, must be at most as many"));
    CHECK(refused([](auto& p) { p.micro_batches = 0; }) == "pipeline: 0 micro-batches: must be at least 1");
    CHECK(refused([](auto& p) { p.order = static_cast<pipeline::launch_order>(7); }) == "pipeline: order is number 7: must be one of those declared");
    CHECK(refused([](auto& p) {
              p.order = pipeline::launch_order::zb_h1;
              p.sharded = pipeline::sharded_states::gradients;
          }) == "pipeline: order zb-h1 with sharded gradients: gradients of weights are reduced block by block, right behind a whole backward pass; "
                "must be gpipe, 1f1b or eager-1f1b");
    CHECK(refused([](auto& p) { p.stage.pop_back(); }) ==
          parsearch::text("pipeline: stages of ", g.size() - 1, " operators: the graph has ", g.size(), ", must be one each"));
    CHECK(refused([](auto& p) { p.recompute = {true}; }) == "pipeline: 'recompute' has the size 1, stages are 2: must be as many, or empty");
    CHECK(refused([](auto& p) { p.kept = {true}; }) == "pipeline: 'kept' has the size 1: the graph has 6 operators, must be as many, or empty");
    auto const between =
        std::ranges::find_if(g.edges, [&](auto const& e) { return g.operations[e.producer].work != parsearch::ops::work_class::source; });
    REQUIRE(between != g.edges.end());
    auto const first = between->producer, second = between->consumer;
    CHECK(refused([&](auto& p) { p.stage[first] = 2; }) ==
          parsearch::text("pipeline: operator '", g.names[first], "' is in stage 2: there are 2, counted from 0"));
    CHECK(refused([&](auto& p) { p.stage[first] = 1; }) == parsearch::text("pipeline: operator '", g.names[second], "' of stage 0 reads '",
                                                                           g.names[first], "' of stage 1: data may not go back to an earlier stage"));
    CHECK(refused([](auto& p) { p.segment = {1}; }) ==
          parsearch::text("pipeline: segments of 1 operators: the graph has ", g.size(), ", must be one each, or empty"));
    CHECK(refused([&](auto& p) {
              p.segment.assign(g.size(), 0);
              p.segment[first] = 3;
          }) == parsearch::text("pipeline: operator '", g.names[second], "' of segment 0 reads '", g.names[first],
                                "' of segment 3: data may not go back to an earlier segment"));
    CHECK(refused([&](auto& p) { p.stage[g.order.front()] = 9; }) == ""); // a graph input
}
