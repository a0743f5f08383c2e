#include <parsearch/io/display/timeline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/hand_network.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

template <class P, class S> nlohmann::json timeline_of(P const& p, topology::cluster const& c, S const& s, sim::report const& r) {
    std::ostringstream out;
    io::write_timeline(out, p, c, s, r);
    return nlohmann::json::parse(out.str());
}

struct row {
    std::string name;
    int process = 0, sort_index = -1;
    std::vector<std::pair<std::int64_t, std::int64_t>> spans; ///< picoseconds
};

std::int64_t picoseconds_of(nlohmann::json const& microseconds) { return std::llround(microseconds.get<double>() * 1e6); }

std::map<int, row> rows_of(nlohmann::json const& timeline) {
    std::map<int, row> rows;
    for (auto const& e : timeline.at("traceEvents")) {
        if (!e.contains("tid")) continue;
        auto& r = rows[e.at("tid").get<int>()];
        if (r.process) REQUIRE(r.process == e.at("pid").get<int>());
        r.process = e.at("pid").get<int>();
        if (e.at("ph") == "X") r.spans.emplace_back(picoseconds_of(e.at("ts")), picoseconds_of(e.at("ts")) + picoseconds_of(e.at("dur")));
        else if (e.at("name") == "thread_name") r.name = e.at("args").at("name").get<std::string>();
        else if (e.at("name") == "thread_sort_index") r.sort_index = e.at("args").at("sort_index").get<int>();
    }
    return rows;
}

graph::operator_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.add("fc \"1\"\n</script>", ops::linear{.out = 64}, g.input("x", {{32, 16}}));
    g.add("fc2\xff", ops::linear{.out = 8, .bias = false}, x);
    return g;
}

} // namespace

TEST_CASE("timeline: rows, times and names by hand") {
    auto const cluster = topology::p100_cluster(1);
    auto const p = make_problem(two_layers(), cluster, [](ops::shard_work const&, std::uint32_t) { return picoseconds{1'234'567}; });
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "s", {0, 1, 2, 3});
    auto const r = simulate(p, s);
    auto const timeline = timeline_of(p, cluster, s, r);
    auto const rows = rows_of(timeline);
    REQUIRE(rows.size() == 4 + cluster.links().size());
    for (auto const& [tid, row] : rows) {
        INFO(row.name);
        CHECK(row.process == (row.sort_index < 4 ? 1 : 2));
        CHECK(tid == row.sort_index + 3);
    }
    CHECK(rows.at(3).name == "device 0 (p100_sxm, node 0)");
    CHECK(rows.at(7).name == cluster.name_of_link(0));
    CHECK(rows.at(3).spans.front() == std::pair<std::int64_t, std::int64_t>{0, 1'234'567});

    std::multiset<std::string> names;
    std::set<std::string> args;
    for (auto const& e : timeline.at("traceEvents"))
        if (e.at("ph") == "X") {
            names.insert(e.at("name").get<std::string>());
            args.insert(e.at("args").dump());
        }
    std::string const fc1 = "fc \"1\"\n</script>", fc2 = "fc2\xef\xbf\xbd";
    CHECK(names.count(fc1 + " forward") == 4);
    CHECK(names.count(fc1 + " backward") == 4);
    CHECK(names.count(fc1 + " update") == 4);
    CHECK(names.count(fc2 + " forward") == 1);
    CHECK(names.count(fc1 + " weight gradients, all-reduce") > 0);
    CHECK(names.count(fc1 + " -> " + fc2 + " activations") == 3);
    CHECK(names.count(fc2 + " -> " + fc1 + " gradients") == 3);
    CHECK(args.count(nlohmann::json{{"operator", fc1}, {"kind", "linear"}, {"configuration", "s4 @{0,1,2,3}"}, {"shard", 3}}.dump()) == 1);
    CHECK(args.count(
              nlohmann::json{{"operator", fc2}, {"kind", "linear"}, {"traffic", "activation"}, {"bytes", 8 * 64 * 4}, {"message", 2}}.dump()) == 1);
    CHECK(args.count(nlohmann::json{{"operator", fc1},
                                    {"kind", "linear"},
                                    {"traffic", "weight_gradient"},
                                    {"bytes", (16 * 64 + 64) * 4},
                                    {"collective", "all_reduce"},
                                    {"devices", 4},
                                    {"group", 0}}
                         .dump()) == 1);
}

TEST_CASE("timeline: random problems: each row holds the tasks of its resource, in order, without overlap") {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::v100_sxm});
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const sync = seed % 3 == 0 ? sim::synchronisation::parameter_server : sim::synchronisation::all_reduce;
        auto const p = make_problem(support::random_network(rng), cluster, cost::roofline{cluster}, {.simulation = {.synchronisation = sync}});
        auto const s = support::random_strategy(rng, p, 0.2);
        auto const r = simulate(p, s);
        auto const rows = rows_of(timeline_of(p, cluster, s, r));
        std::vector<std::int64_t> busy(r.tasks.resources), count(r.tasks.resources);
        for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
            if (r.tasks.duration[t] > 0) busy[r.tasks.resource[t]] += r.tasks.duration[t], ++count[r.tasks.resource[t]];
        std::int64_t last = 0;
        for (auto const& [tid, row] : rows) {
            auto const resource = static_cast<std::size_t>(row.sort_index);
            REQUIRE(static_cast<std::int64_t>(row.spans.size()) == count[resource]);
            std::int64_t sum = 0, free_at = 0;
            for (auto const& [begin, end] : row.spans) {
                REQUIRE(begin >= free_at);
                free_at = end;
                sum += end - begin;
            }
            REQUIRE(sum == busy[resource]);
            last = std::max(last, free_at);
        }
        REQUIRE(last == r.makespan.count());
    }
}

TEST_CASE("timeline: weights that come back from a server are named so") {
    auto const cluster = topology::p100_cluster(1);
    auto const p =
        make_problem(two_layers(), cluster, cost::roofline{cluster}, {.simulation = {.synchronisation = sim::synchronisation::parameter_server}});
    auto const s = data_parallel(p);
    std::map<std::string, int> names;
    auto const timeline = timeline_of(p, cluster, s, simulate(p, s));
    for (auto const& e : timeline.at("traceEvents")) ++names[e.at("name").get<std::string>()];
    CHECK(names["fc2\xef\xbf\xbd weight gradients"] == 3);
    CHECK(names["fc2\xef\xbf\xbd weights"] == 3);
}

TEST_CASE("timeline: what does not belong together is refused") {
    auto const cluster = topology::p100_cluster(1), other = topology::p100_cluster(2);
    auto const p = make_problem(two_layers(), cluster, cost::roofline{cluster});
    auto const s = data_parallel(p);
    auto r = simulate(p, s);
    std::ostringstream out;
    CHECK(support::refusal([&] { return io::write_timeline(out, p, other, s, r), 0; }).find("must be the same cluster") != std::string::npos);
    r.carried.clear();
    CHECK(support::refusal([&] { return io::write_timeline(out, p, cluster, s, r), 0; }).find("must be one each") != std::string::npos);
    std::ostringstream failed;
    failed.setstate(std::ios::badbit);
    CHECK(support::refusal([&] { return io::write_timeline(failed, p, cluster, s, simulate(p, s)), 0; }).find("the stream has failed") !=
          std::string::npos);
}

TEST_CASE("timeline: a plan has every task of every micro-batch, with its number") {
    auto const cluster = topology::p100_cluster(1); // 4 devices
    graph::operator_graph g;
    g.add("fc2", ops::linear{.out = 8}, g.add("fc1", ops::linear{.out = 64}, g.input("x", {{32, 16}})));
    auto const problem = make_problem(g, cluster, [](ops::shard_work const&, std::uint32_t) { return picoseconds{1'234'567}; });
    // Each stage is data parallel on two devices; the first computes again.
    pipeline::pipeline_plan plan{.how = {.stage = {0, 0, 1}, .stages = 2, .micro_batches = 4, .recompute = {true, false}}, .strategy = {}};
    plan.strategy = space::data_parallel(pipeline::micro_batch(problem.graph(), 4), 2);
    plan.strategy[2].start = 2;
    auto const part = pipeline::micro_batch_problem(problem, 4);

    auto r = simulate(problem, plan);
    auto const timeline = timeline_of(part, cluster, plan.strategy, r);
    std::map<std::string, int> names;
    std::int64_t end = 0;
    std::size_t tasks = 0;
    for (auto const& e : timeline.at("traceEvents")) {
        if (e.at("ph") != "X") continue;
        ++tasks;
        auto const name = e.at("name").get<std::string>();
        ++names[name];
        end = std::max(end, picoseconds_of(e.at("ts")) + picoseconds_of(e.at("dur")));
        auto const at = name.find(", micro-batch ");
        REQUIRE((at != name.npos) == e.at("args").contains("micro_batch"));
        if (at != name.npos) CHECK(name.substr(at + 14) == text(e.at("args").at("micro_batch").get<int>()));
    }
    CHECK(end == r.makespan.count());
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

    // What is offloaded has rows of its own.
    auto offloading = plan;
    offloading.how.offloaded = {false, true, false};
    r = simulate(problem, offloading);
    auto const to_host = timeline_of(part, cluster, plan.strategy, r);
    names.clear();
    for (auto const& e : to_host.at("traceEvents"))
        if (e.at("ph") == "X") {
            ++names[e.at("name").get<std::string>()];
            if (e.at("name") == "fc1 activations to host, micro-batch 0") CHECK(e.at("args").at("bytes") == 4 * 16 * 4); // of fc1's input
        }
    for (int m = 0; m < 4; ++m) CHECK(names[text("fc1 activations to host, micro-batch ", m)] == 2);
    for (int m = 0; m < 4; ++m) CHECK(names[text("fc1 activations from host, micro-batch ", m)] == 2);
    for (auto const* const name : {"device 0 -> host", "host -> device 1"})
        CHECK(std::ranges::any_of(rows_of(to_host), [&](auto const& at) { return at.second.name == name && !at.second.spans.empty(); }));
    r = simulate(problem, plan);

    // Where it would be too long, devices that do the same have one row.
    auto const all = rows_of(timeline).size();
    std::ostringstream folded;
    auto const left_out = io::write_timeline(folded, part, cluster, plan.strategy, r, tasks - 1);
    auto const rows = rows_of(nlohmann::json::parse(folded.str()));
    CHECK(left_out > 0);
    CHECK(rows.size() == all - left_out);
    CHECK(std::ranges::any_of(rows, [](auto const& at) { return at.second.name.find("device 0 (p100_sxm, node 0) and 1 alike") == 0; }));
    CHECK(std::ranges::all_of(rows, [&](auto const& at) { return at.second.spans.size() > 0 || at.second.process == 2; }));

    // Sharded parameters: on two links each, gathered for every pass but where one ends and the next begins in the same block.
    plan.how.sharded = pipeline::sharded_states::parameters;
    r = simulate(problem, plan);
    names.clear();
    auto const of_sharded = timeline_of(part, cluster, plan.strategy, r);
    for (auto const& e : of_sharded.at("traceEvents"))
        if (e.at("ph") == "X") ++names[e.at("name").get<std::string>()];
    CHECK(names["fc1 weights, all-gather of its block, micro-batch 0"] > 0);
    for (int m = 0; m < 4; ++m) CHECK(names[text("fc1 weight gradients, reduce-scatter of its block, micro-batch ", m)] > 0);
    CHECK(names["fc1 weight gradients, all-reduce"] == 0);
    CHECK(names["fc1 update"] == 2);
    plan.how.sharded = pipeline::sharded_states::gradients;
    r = simulate(problem, plan);
    names.clear();
    auto const of_gradients = timeline_of(part, cluster, plan.strategy, r);
    for (auto const& e : of_gradients.at("traceEvents"))
        if (e.at("ph") == "X") ++names[e.at("name").get<std::string>()];
    for (int m = 0; m < 4; ++m) CHECK(names[text("fc1 weight gradients, reduce-scatter of its block, micro-batch ", m)] > 0);
    CHECK(names["fc1 weights, all-gather of its block"] > 0);

    r.runs.pop_back();
    CHECK(support::refusal([&] { return timeline_of(part, cluster, plan.strategy, r); }).find("must be one each, or none") != std::string::npos);
}
