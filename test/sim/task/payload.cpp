#include <parsearch/sim/task/payload.hpp>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <tuple>

#include <doctest/doctest.h>

#include <parsearch/problem/problem.hpp>

#include "support/hand_network.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {

auto const ten = [](ops::shard_work const&, std::uint32_t) { return picoseconds{10}; };

/// fc1 (8 x 4 -> 6, with bias), then fc2 (6 -> 2).
graph::operator_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 6}, g.input("x", {{8, 4}}));
    g.add("fc2", ops::linear{.out = 2, .bias = false}, x);
    return g;
}

/// The task of that kind on a link that moves `traffic`, the first of them.
std::uint32_t first_of(sim::task_graph const& t, sim::task_kind kind, sim::traffic_kind traffic) {
    for (std::uint32_t i = 0; i < t.size(); ++i)
        if (t.kind[i] == kind && t.label[i].traffic == traffic) return i;
    FAIL("no such task");
    return 0;
}

} // namespace

TEST_CASE("payload: a message forward and its gradient backward, by hand") {
    auto const p = make_problem(two_layers(), support::mesh(2), ten);
    auto s = support::all_on_first(p.graph());
    s[2].start = 1;
    auto const r = simulate(p, s);
    auto const there = first_of(r.tasks, sim::task_kind::transfer, sim::traffic_kind::activation);
    auto const back = first_of(r.tasks, sim::task_kind::transfer, sim::traffic_kind::gradient);
    auto const edge = p.graph().first_in[2];
    for (auto const t : {there, back}) {
        CHECK(r.tasks.label[t].edge == edge);
        CHECK(r.tasks.label[t].number == 0);
        CHECK(r.carried[t].bytes == 8 * 6 * 4);
        CHECK(r.carried[t].devices == 2);
    }
    CHECK(r.tasks.label[there].op == 2);
    CHECK(r.tasks.label[back].op == 1);
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
        if (r.tasks.kind[t] <= sim::task_kind::update) {
            CHECK(r.tasks.label[t].edge == sim::task_label::no_edge);
            CHECK(r.carried[t].bytes == 0);
            CHECK(r.carried[t].devices == 0);
        }
}

TEST_CASE("payload: collectives of an edge and of gradients, by hand") {
    // fc1 by samples, fc2 by outputs: each of its shards reads all that fc1 made.
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 6}, g.input("x", {{8, 4}}));
    g.add("fc2", ops::linear{.out = 8, .bias = false}, x);
    auto const p = make_problem(g, support::mesh(4), ten);
    std::vector<space::configuration> s{space::whole(p.graph().operations[0]), support::split(p.graph().operations[1], "s", {0, 1, 2, 3}),
                                        support::split(p.graph().operations[2], "o", {0, 1, 2, 3})};
    auto const r = simulate(p, s);
    auto const gather = first_of(r.tasks, sim::task_kind::collective, sim::traffic_kind::activation);
    CHECK(r.tasks.label[gather].edge == p.graph().first_in[2]);
    CHECK(r.carried[gather].collective == collective_kind::all_gather);
    CHECK(r.carried[gather].bytes == 8 * 6 * 4);
    CHECK(r.carried[gather].devices == 4);
    auto const scatter = first_of(r.tasks, sim::task_kind::collective, sim::traffic_kind::gradient);
    CHECK(r.carried[scatter].collective == collective_kind::reduce_scatter);
    auto const sum = first_of(r.tasks, sim::task_kind::collective, sim::traffic_kind::weight_gradient);
    CHECK(r.tasks.label[sum].edge == sim::task_label::no_edge);
    CHECK(r.tasks.label[sum].op == 1);
    CHECK(r.tasks.label[sum].number == 0);
    CHECK(r.carried[sum].collective == collective_kind::all_reduce);
    CHECK(r.carried[sum].bytes == (4 * 6 + 6) * 4);
    CHECK(r.carried[sum].devices == 4);
}

TEST_CASE("payload: sums that nobody reads have no edge") {
    auto const p = make_problem(two_layers(), support::mesh(3), ten, {.simulation = {.training = false}});
    auto s = support::all_on_first(p.graph());
    s[2] = support::split(p.graph().operations[2], "k", {0, 1, 2});
    auto const r = simulate(p, s);
    bool found = false;
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t) {
        if (r.tasks.kind[t] != sim::task_kind::collective || r.tasks.label[t].edge != sim::task_label::no_edge) continue;
        found = true;
        CHECK(r.tasks.label[t].traffic == sim::traffic_kind::partial_sum);
        CHECK(r.tasks.label[t].op == 2);
        CHECK(r.carried[t].bytes == 8 * 2 * 4);
        CHECK(r.carried[t].devices == 3);
        CHECK(r.carried[t].collective == collective_kind::all_reduce);
    }
    CHECK(found);
}

TEST_CASE("payload: all of them together are the traffic, kind by kind") {
    for (auto const how : {sim::movement::collective, sim::movement::pairwise, sim::movement::grouped})
        for (auto const sync : {sim::synchronisation::all_reduce, sim::synchronisation::parameter_server})
            for (std::uint64_t seed = 0; seed < 200; ++seed) {
                auto const transfers = static_cast<sim::transfer_model>(seed % 4); // segments of 24 bytes have all bytes of their messages
                INFO("seed ", seed, ' ', name_of(how), ' ', name_of(sync), ' ', name_of(transfers));
                std::mt19937_64 rng(seed);
                auto types = rng;
                auto const p = make_problem(
                    support::with_weight_types(types, graph::read_graph(support::random_network(rng)).graph), support::mesh(4), ten,
                    {.simulation = {.movement = how, .training = seed % 3 != 0, .synchronisation = sync, .transfers = transfers, .segment = 24}});
                auto const r = simulate(p, support::random_strategy(rng, p, 0.25));
                std::array<double, sim::traffic_kinds> sum{};
                std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, sim::traffic_kind>> counted; // a collective has a task per link
                REQUIRE(r.carried.size() == r.tasks.size());
                for (std::uint32_t t = 0; t < r.tasks.size(); ++t) {
                    auto const& who = r.tasks.label[t];
                    auto const& what = r.carried[t];
                    auto const bytes = static_cast<double>(what.bytes);
                    auto& of_kind = sum[static_cast<std::size_t>(who.traffic)];
                    if (r.tasks.kind[t] == sim::task_kind::transfer) of_kind += bytes; // one link each on a mesh
                    if (r.tasks.kind[t] == sim::task_kind::collective && counted.insert({who.op, who.number, who.edge, who.traffic}).second)
                        of_kind += sim::collective_volume(what.collective, bytes, what.devices);
                }
                for (std::size_t k = 0; k < sim::traffic_kinds; ++k) REQUIRE(sum[k] == doctest::Approx(r.traffic[k]));
            }
}
