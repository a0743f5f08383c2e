#include <parsearch/problem/on_devices.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

TEST_CASE("on_devices: the problem that is made without the other devices") {
    for (std::uint64_t seed = 1; seed <= support::cases(100u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 5, .kinds = bernoulli(rng, 0.5)});
        auto const network = support::random_network(rng, 5);
        auto const all = make_problem(network, topology, support::mixed_oracle{});
        constraints_of<graph::operator_graph, support::plain_topology> without;
        std::vector<std::size_t> left;
        for (std::uint32_t d = 0; d < 5; ++d)
            if (d > 0 && bernoulli(rng, 0.4)) without.leave_out(d);
            else left.push_back(d);
        auto const part = on_devices(all, left);
        auto const made = make_problem(network, topology, support::mixed_oracle{}, {}, without);
        REQUIRE(part.topology().size() == made.topology().size());
        auto a = part.simulator(), b = made.simulator();
        for (int n = 0; n < 5; ++n) {
            auto const s = support::random_strategy(rng, made, 0.3);
            REQUIRE(a(s) == b(s));
        }
        for (std::size_t d = 0; d < left.size(); ++d) REQUIRE(part.device(d) == made.device(d));
        // On its places among all it is the same plan: devices of one kind are alike.
        auto const s = support::random_strategy(rng, made, 0.3);
        for (std::size_t op = 0; op < part.size(); ++op)
            for (std::int64_t shard = 0; shard < s[op].shards(); ++shard)
                REQUIRE(all.device(static_cast<std::size_t>(with_devices(s, left)[op].device(shard))) ==
                        part.device(static_cast<std::size_t>(s[op].device(shard))));
        REQUIRE(part.handle(part.size() - 1) == made.handle(part.size() - 1));
    }
    graph::operator_graph network;
    (void)network.add("fc0", ops::linear{.out = 32}, network.input("in", {{16, 32}}));
    auto const p = make_problem(network, support::mesh(3), support::mixed_oracle{});
    auto const on = [&](std::vector<std::size_t> which) { return refusal([&] { return on_devices(p, which).size(); }); };
    CHECK(on({}) == "on_devices: no devices: there must be one at least");
    CHECK(on({0, 3}) == "on_devices: device number 3: the problem has 3");
    CHECK(on({1, 0}) == "on_devices: device number 0 behind 1: must be ascending");
    constraints_of<graph::operator_graph, support::plain_topology> pinned;
    pinned.pin(p.handle(1), "whole @2");
    auto const fixed = make_problem(network, support::mesh(3), support::mixed_oracle{}, {}, pinned);
    // Constraints of devices go with these.
    auto const kept = on_devices(fixed, std::vector<std::size_t>{1, 2});
    CHECK(kept.space()[1].size() == 1);
    CHECK(kept.space()[1][0].device(0) == 1);
    CHECK(refusal([&] { return on_devices(fixed, std::vector<std::size_t>{0}).size(); }).find("'fc0'") != std::string::npos);
    CHECK(!on_devices_if_allowed(fixed, std::vector<std::size_t>{0}));
    CHECK(on_devices(fixed.anywhere(), std::vector<std::size_t>{0}).topology().size() == 1);
    CHECK(!kept.keeps_constraints(data_parallel(p))); // of devices that are not there
    space::flat_strategy const too_far{{.rank = 1, .degree = {2}, .stride = {1}}};
    CHECK(refusal([&] { return with_devices(too_far, std::vector<std::size_t>{0}).size(); }) ==
          "with_devices: operator number 0 has shard 1 on device 1: there are 1");
}
