#include <parsearch/io/display/task_names.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/hand_network.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {
auto const ten = [](ops::shard_work const&, std::uint32_t) { return picoseconds{10}; };
} // namespace

TEST_CASE("task names: each kind of task by hand") {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 8}, g.input("x", {{8, 8}}));
    g.add("fc3", ops::linear{.out = 8}, g.add("fc2", ops::linear{.out = 8}, x));
    auto const cluster = topology::p100_cluster(1);
    auto const p = make_problem(g, cluster, ten);
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "s", {0, 1, 2, 3});
    s[2] = support::split(p.graph().operations[2], "o", {0, 1, 2, 3});
    s[3] = support::split(p.graph().operations[3], "k", {0, 1, 2, 3});
    auto const r = simulate(p, s);
    std::map<std::string, std::string> names; // what its number counts
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
        if (r.tasks.kind[t] != sim::task_kind::barrier) names[io::name_of_task(p.graph(), r, t)] = io::counted_by(r.tasks.kind[t], r.tasks.label[t]);
    std::map<std::string, std::string> const expected{{"fc1 forward", "shard"},
                                                      {"fc1 backward", "shard"},
                                                      {"fc1 update", "holder"},
                                                      {"fc1 weight gradients, all-reduce", "group"},
                                                      {"fc1 -> fc2 activations, all-gather", "collective"},
                                                      {"fc2 forward", "shard"},
                                                      {"fc2 backward", "shard"},
                                                      {"fc2 update", "holder"},
                                                      {"fc2 -> fc1 gradients, reduce-scatter", "collective"},
                                                      {"fc3 forward", "shard"},
                                                      {"fc3 backward", "shard"},
                                                      {"fc3 update", "holder"},
                                                      {"fc3 weight gradients, all-reduce", "group"},
                                                      {"fc3 partial sums, all-reduce", "collective"}};
    CHECK(names == expected);
}

TEST_CASE("task names: devices and links") {
    auto const cluster = topology::p100_cluster(1);
    CHECK(io::name_of_resource(cluster, 3) == "device 3");
    CHECK(io::name_of_resource(cluster, 4) == cluster.name_of_link(0));
}

TEST_CASE("task names: a task on a resource is told from every other by name and number") {
    auto const cluster = topology::p100_cluster(2);
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = make_problem(support::random_network(rng), cluster, ten);
        auto const r = simulate(p, support::random_strategy(rng, p));
        std::set<std::pair<std::string, std::pair<std::uint32_t, std::uint32_t>>> seen;
        std::size_t links_shared = 0;
        for (auto const t : io::tasks_to_show(r, false).tasks) {
            auto const& who = r.tasks.label[t];
            auto name = io::name_of_task(p.graph(), r, t);
            // Two inputs of one operator may come from one producer.
            if (who.edge != sim::task_label::no_edge) name += std::to_string(who.edge);
            links_shared += !seen.insert({name, {r.tasks.resource[t], who.number}}).second;
        }
        REQUIRE(links_shared == 0);
    }
}

TEST_CASE("task names: rows of devices that do the same are one, and none is lost") {
    auto const cluster = topology::p100_cluster(2);
    std::size_t folded = 0, left_out = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = make_problem(support::random_network(rng), cluster, ten);
        auto const r = simulate(p, seed % 2 ? data_parallel(p) : support::random_strategy(rng, p));
        auto const whole = io::tasks_to_show(r, false), once = io::tasks_to_show(r, true);
        REQUIRE(whole.missing() == 0);
        REQUIRE(whole.rows() + 1 == r.tasks.resources);
        REQUIRE(once.row_of.size() == whole.rows());
        folded += whole.rows() - once.rows();
        for (std::uint32_t i = 0; i < whole.rows(); ++i) {
            auto const n = once.row_of[i];
            REQUIRE(whole.row_of[i] == i);
            REQUIRE(n < once.rows());
            auto const tasks = whole.first[i + 1] - whole.first[i];
            REQUIRE(once.first[n + 1] - once.first[n] == tasks);
            for (std::size_t k = 0; k < tasks; ++k) {
                auto const t = whole.tasks[whole.first[i] + k], same = once.tasks[once.first[n] + k];
                REQUIRE(r.tasks.resource[t] == i);
                REQUIRE(r.schedule.start[same] == r.schedule.start[t]);
                REQUIRE(r.schedule.end[same] == r.schedule.end[t]);
                REQUIRE(io::name_of_task(p.graph(), r, same) == io::name_of_task(p.graph(), r, t));
            }
        }
        // As many rows as there is room for.
        auto const most = whole.tasks.size() / 2;
        auto const some = io::tasks_to_show(r, false, most);
        REQUIRE(some.tasks.size() <= most);
        REQUIRE(some.rows() + some.missing() == whole.rows());
        left_out += some.missing();
    }
    CHECK(folded > 100);
    CHECK(left_out > 50);
}
