#include <parsearch/fabric/servers/network_report.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>

#include "support/hand_network.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
constexpr link_description each{{1e12}, picoseconds{10}};
auto const oracle = [](ops::shard_work const&, std::uint32_t) { return picoseconds{1000}; };
server_options servers_of(std::uint32_t gpus) {
    return {.gpus_per_server = gpus, .device = topology::a100_sxm, .inside = inside_server::direct, .inside_link = each, .host_link = each};
}
/// fc1 (8 x 4 -> 6), then fc2 (6 -> 2).
graph::operator_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 6, .bias = false}, g.input("x", {{8, 4}}));
    g.add("fc2", ops::linear{.out = 2, .bias = false}, x);
    return g;
}
} // namespace

TEST_CASE("network report: a message over two hops and back, by hand, in every transfer model") {
    auto const n = circulant(6, {1}, each);
    auto const c = server_cluster(n, routing_options{}, servers_of(2));
    for (auto const model : {sim::transfer_model::streaming, sim::transfer_model::store_and_forward, sim::transfer_model::cut_through,
                             sim::transfer_model::fair_sharing}) {
        auto const p = make_problem(two_layers(), c, oracle, {.simulation = {.transfers = model, .segment = 50}});
        auto s = support::all_on_first(p.graph());
        s[2].start = 5; // GPU 1 of server 2
        auto simulator = p.simulator();
        auto const r = sim::make_report(simulator, s);
        auto const report = report_of(n, c, r);
        double const bytes = 8 * 6 * 4;
        CHECK(report.makespan == r.makespan);
        CHECK(report.demanded == 2 * bytes);
        CHECK(report.carried == 4 * bytes);
        CHECK(report.bandwidth_tax() == 2);
        CHECK(report.mean_message_hops == 2);
        CHECK(report.max_message_hops == 2);
        CHECK(report.mean_pair_hops == doctest::Approx((1 + 1 + 2 + 2 + 3) / 5.0));
        CHECK(report.max_pair_hops == 3);
        for (auto const l : path_table(n).path(0, 2, flow_between(0, 5))) {
            CHECK(report.bytes(l) == bytes);
            CHECK(report.utilisation[l] == r.utilisation[c.size() + l]);
            CHECK(report.utilisation[l] > 0);
        }
        auto one_server = support::all_on_first(p.graph());
        one_server[2].start = 1;
        auto const inside = report_of(n, c, sim::make_report(simulator, one_server));
        CHECK(inside.demanded == 0);
        CHECK(inside.bandwidth_tax() == 1);
        CHECK(inside.mean_message_hops == 0);
    }
}

TEST_CASE("network report: copies to hosts pass no link of the network") {
    auto const n = circulant(6, {1}, each);
    auto const c = server_cluster(n, routing_options{}, servers_of(2));
    auto const p = make_problem(two_layers(), c, oracle);
    pipeline::pipeline_plan plan{.how = pipeline::unpipelined(p.graph()), .strategy = support::all_on_first(p.graph())};
    plan.strategy[2].start = 5;
    plan.how.segment = {0, 0, 1};
    auto const here = report_of(n, c, simulate(p, plan));
    plan.how.offloaded = {false, true, true};
    auto const r = simulate(p, plan);
    CHECK(r.tasks.resources == c.size() + c.links().size() + 2 * c.size() + 1);
    auto const offloaded = report_of(n, c, r);
    CHECK(offloaded.demanded == here.demanded);
    CHECK(offloaded.carried == here.carried);
    CHECK(offloaded.message_bytes == here.message_bytes);
}

TEST_CASE("network report: an all-reduce over the rings of the network, by hand") {
    auto const n = circulant(5, {1, 2}, each); // four directed rings
    for (std::uint32_t const gpus : {1u, 2u}) {
        auto const c = server_cluster(n, routing_options{}, servers_of(gpus));
        graph::operator_graph g;
        g.add("fc", ops::linear{.out = 500, .bias = false}, g.input("x", {{10, 400}}));
        auto const p = make_problem(g, c, oracle);
        auto s = support::all_on_first(p.graph());
        std::vector<std::int32_t> all;
        for (std::int32_t d = 0; d < static_cast<std::int32_t>(c.size()); ++d) all.push_back(d);
        s[1] = support::split(p.graph().operations[1], "s", all);
        auto simulator = p.simulator();
        auto const report = report_of(n, c, sim::make_report(simulator, s));
        double const weights = 500 * 400 * 4, members = 5 * gpus;
        double const hop = 2 * (members - 1) / members * weights / 4; // of each ring
        for (auto const bytes : report.collective_bytes) CHECK(bytes == doctest::Approx(hop).epsilon(1e-6));
        CHECK(report.demanded == doctest::Approx(4 * 5 * hop).epsilon(1e-6));
        CHECK(report.bandwidth_tax() == doctest::Approx(1).epsilon(1e-6));
        CHECK(report.max_message_hops == 0);
    }
}

TEST_CASE("network report: messages sent together carry what they do one by one") {
    int several = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const n = circulant(4, {1}, {{1e9}, picoseconds{10'000}}); // slow enough that times tell single bytes
        auto const c = server_cluster(n, routing_options{}, servers_of(2));
        auto const g = support::random_network(rng);
        auto const apart = make_problem(g, c, oracle, {.simulation = {.movement = sim::movement::pairwise}});
        auto const together = make_problem(g, c, oracle, {.simulation = {.movement = sim::movement::grouped}});
        auto const s = support::random_strategy(rng, apart);
        auto one = apart.simulator();
        auto all = together.simulator();
        auto const r = sim::make_report(all, s);
        bool only_messages = true;
        for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
            if (r.tasks.kind[t] == sim::task_kind::collective && r.tasks.label[t].traffic != sim::traffic_kind::weight_gradient) {
                only_messages = only_messages && r.carried[t].collective == collective_kind::all_to_all_v;
                ++several;
            }
        if (!only_messages) continue;
        auto const expected = report_of(n, c, sim::make_report(one, s)), found = report_of(n, c, r);
        CHECK(found.demanded == doctest::Approx(expected.demanded).epsilon(1e-3));
        for (link_direction l = 0; l < 2 * n.links.size(); ++l) CHECK(found.bytes(l) == doctest::Approx(expected.bytes(l)).epsilon(1e-2).scale(10));
    }
    CHECK(several > 100);
}

TEST_CASE("network report: what links carry is what the network's vertices pass on, for random strategies") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const n = seed % 2 == 0 ? random_regular(4, 2 + seed % 3 % 2, seed, each) : fat_tree(4, each, 4);
        auto const c = server_cluster(n, {routing::ecmp, 1, seed}, servers_of(2));
        auto const p = make_problem(support::random_network(rng), c, oracle);
        auto simulator = p.simulator();
        auto const r = sim::make_report(simulator, support::random_strategy(rng, p));
        auto const report = report_of(n, c, r);
        // What comes into a switch leaves it.
        std::vector<double> flow(n.vertices(), 0);
        for (link_direction l = 0; l < report.utilisation.size(); ++l) {
            auto const& link = n.links[l / 2];
            flow[l % 2 == 0 ? link.a : link.b] -= report.bytes(l);
            flow[l % 2 == 0 ? link.b : link.a] += report.bytes(l);
        }
        for (auto v = n.servers; v < n.vertices(); ++v) CHECK(flow[v] == doctest::Approx(0).epsilon(1e-3 * (report.carried + 1)));
        CHECK(report.demanded <= r.bytes_moved() * (1 + 1e-9));
        if (report.demanded > 0) {
            CHECK(report.bandwidth_tax() >= (n.switches > 0 ? 2 : 1) - 1e-3);
            CHECK(report.bandwidth_tax() <= report.max_pair_hops + 1e-3);
        }
    }
}

TEST_CASE("network report: mistakes") {
    auto const n = circulant(5, {1}, each);
    auto const c = server_cluster(n, routing_options{}, servers_of(1));
    CHECK_THROWS_WITH_AS((void)report_of(n, c, sim::report{}), doctest::Contains("a simulation with 0 resources on a cluster of 5 devices"),
                         invalid_input);
}
