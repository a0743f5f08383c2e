#include <parsearch/sim/report.hpp>

#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/problem/problem.hpp>

#include "support/hand_network.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

TEST_CASE("report: two devices and a message by hand") {
    // a on device 0 [0, 100), 400 bytes on the link [100, 500), b on device 1 [500, 600).
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    g.add("b", ops::relu{}, a);
    auto const p = make_problem(g, support::mesh(2), [](ops::shard_work const&, std::uint32_t) { return picoseconds{100}; },
                                {.simulation = {.training = false}});
    auto s = support::all_on_first(p.graph());
    s[2].start = 1;
    auto simulator = p.simulator();
    auto const r = sim::make_report(simulator, s);
    CHECK(r.makespan.count() == 600);
    CHECK(r.tasks.size() == 3);
    CHECK(r.critical_path == std::vector<std::uint32_t>{0, 1, 2});
    REQUIRE(r.utilisation.size() == 2 + 2 + 1);
    CHECK(r.utilisation[0] == doctest::Approx(1.0 / 6));
    CHECK(r.utilisation[1] == doctest::Approx(1.0 / 6));
    CHECK(r.utilisation[2 + support::mesh_link(2, 0, 1)] == doctest::Approx(4.0 / 6));
    CHECK(r.utilisation[2 + support::mesh_link(2, 1, 0)] == 0);
    CHECK(r.bytes_moved() == 400);
    CHECK(r.peak_memory() == 8 * 100 * 4 + (8 + 100) * 4); // device 0: weights, input and output of a
}

TEST_CASE("report: the critical path has no gap, in any discipline") {
    for (auto const order : {sim::discipline::fifo, sim::discipline::in_order})
        for (std::uint64_t seed = 0; seed < 300; ++seed) {
            INFO("seed ", seed, ' ', name_of(order));
            std::mt19937_64 rng(seed);
            auto const oracle = [](ops::shard_work const& w, std::uint32_t) { return picoseconds{static_cast<std::int64_t>(w.bytes) % 5 * 40}; };
            auto const p = make_problem(support::random_network(rng), support::shared_medium(4), oracle, {.simulation = {.discipline = order}});
            auto simulator = p.simulator();
            auto const r = sim::make_report(simulator, support::random_strategy(rng, p));
            REQUIRE_FALSE(r.critical_path.empty());
            std::int64_t at = 0;
            for (auto const t : r.critical_path) {
                REQUIRE(r.schedule.start[t] == at);
                at = r.schedule.end[t];
            }
            REQUIRE(at == r.makespan.count());
            for (auto const u : r.utilisation) REQUIRE((u >= 0 && u <= 1));
        }
}

TEST_CASE("report: the critical path under every transfer model") {
    for (auto const model : {sim::transfer_model::store_and_forward, sim::transfer_model::cut_through, sim::transfer_model::fair_sharing})
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            INFO("seed ", seed, ' ', name_of(model));
            std::mt19937_64 rng(seed);
            auto options = support::random_options(rng);
            options.transfers = model;
            options.segment = 500;
            auto const p = support::random_workload(rng, options, {.devices = 5, .operators = 8}, {});
            auto simulator = p.simulator();
            auto const r = sim::make_report(simulator, support::random_strategy(rng, p));
            if (r.critical_path.empty()) continue;
            std::int64_t at = 0;
            for (std::size_t i = 0; i < r.critical_path.size(); ++i) {
                auto const t = r.critical_path[i];
                auto const tie = r.tasks.ties.empty() ? sim::task_tie{} : r.tasks.ties[t];
                bool const flows = model == sim::transfer_model::fair_sharing && tie.task != sim::task_tie::none;
                REQUIRE(r.schedule.start[t] - (flows ? tie.latency : 0) <= at);
                if (flows) REQUIRE(r.schedule.ready[t] == at);
                at = r.schedule.end[t];
                auto const next = i + 1 < r.critical_path.size() ? r.critical_path[i + 1] : t;
                if (model == sim::transfer_model::cut_through && next != t && r.tasks.ties[next].task == t && r.schedule.start[next] < at)
                    at = r.schedule.start[next];
            }
            REQUIRE(at == r.makespan.count());
            for (auto const u : r.utilisation) REQUIRE((u >= 0 && u <= 1.000001));
        }
}

TEST_CASE("report: no tasks") {
    sim::task_graph g;
    g.clear(2);
    CHECK(sim::critical_path_of(g, {}).empty());
    CHECK(sim::utilisation_of(g, {}) == std::vector<double>{0, 0});
}
