#include <parsearch/io/display/pipeline_timeline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

TEST_CASE("timeline of a pipeline: every task of every micro-batch, with its number") {
    auto const cluster = topology::p100_cluster(1); // 4 devices
    graph::operator_graph g;
    g.add("fc2", ops::linear{.out = 8}, g.add("fc1", ops::linear{.out = 64}, g.input("x", {{32, 16}})));
    auto const problem = make_problem(g, cluster, [](ops::shard_work const&, std::uint32_t) { return picoseconds{1'234'567}; });
    // Each stage is data parallel on two devices; the first computes again.
    pipeline::pipeline_plan plan{.how = {.stage = {0, 0, 1}, .stages = 2, .micro_batches = 4, .recompute = {true, false}}, .strategy = {}};
    plan.strategy = space::data_parallel(pipeline::micro_batch(problem.graph(), 4), 2);
    plan.strategy[2].start = 2;

    pipeline::pipeline_simulator simulator(problem);
    std::ostringstream out;
    io::write_pipeline_timeline(out, simulator, cluster, plan);
    auto const timeline = nlohmann::json::parse(out.str());
    std::map<std::string, int> names;
    double end = 0;
    for (auto const& e : timeline.at("traceEvents")) {
        if (e.at("ph") != "X") continue;
        auto const name = e.at("name").get<std::string>();
        ++names[name];
        end = std::max(end, e.at("ts").get<double>() + e.at("dur").get<double>());
        auto const at = name.find(", micro-batch ");
        REQUIRE((at != name.npos) == e.at("args").contains("micro_batch"));
        if (at != name.npos) CHECK(name.substr(at + 14) == text(e.at("args").at("micro_batch").get<int>()));
    }
    CHECK(std::llround(end * 1e6) == simulator.simulate(plan.how, plan.strategy).count());
    for (int m = 0; m < 4; ++m) {
        INFO("micro-batch ", m);
        CHECK(names[text("fc1 forward, micro-batch ", m)] == 2);
        CHECK(names[text("fc1 forward again, micro-batch ", m)] == 2);
        CHECK(names[text("fc1 backward, micro-batch ", m)] == 2);
        CHECK(names[text("fc2 forward, micro-batch ", m)] == 2);
        CHECK(names[text("fc2 forward again, micro-batch ", m)] == 0);
        CHECK(names[text("fc1 -> fc2 activations, micro-batch ", m)] > 0);
        CHECK(names[text("fc2 -> fc1 gradients, micro-batch ", m)] > 0);
    }
    CHECK(names["fc1 update"] == 2);
    CHECK(names["fc2 update"] == 2);
    CHECK(names["fc1 weight gradients, all-reduce"] > 0);
    CHECK(names.count("fc1 forward") == 0);

    // Sharded parameters: on two links each, gathered for every pass but where one ends and the next begins in the same block.
    plan.how.sharded_optimizer = plan.how.sharded_parameters = true;
    std::ostringstream sharded;
    io::write_pipeline_timeline(sharded, simulator, cluster, plan);
    names.clear();
    auto const of_sharded = nlohmann::json::parse(sharded.str());
    for (auto const& e : of_sharded.at("traceEvents"))
        if (e.at("ph") == "X") ++names[e.at("name").get<std::string>()];
    CHECK(names["fc1 weights, all-gather of its block, micro-batch 0"] > 0);
    for (int m = 0; m < 4; ++m) CHECK(names[text("fc1 weight gradients, reduce-scatter of its block, micro-batch ", m)] > 0);
    CHECK(names["fc1 weight gradients, all-reduce"] == 0);
    CHECK(names["fc1 update"] == 2);
    plan.how.sharded_optimizer = plan.how.sharded_parameters = false;

    auto const other = topology::p100_cluster(2);
    CHECK(support::refusal([&] {
              io::write_pipeline_timeline(out, simulator, other, plan);
              return 0;
          }).find("must be the same cluster") != std::string::npos);
    plan.how.micro_batches = 3;
    CHECK(support::refusal([&] {
              io::write_pipeline_timeline(out, simulator, cluster, plan);
              return 0;
          }) == "micro-batches: operator 'fc1' (linear) has 32 samples: 3 micro-batches must divide them");
}
