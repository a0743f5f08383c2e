#include <parsearch/sim/task/assemble.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/problem/problem.hpp>

#include "support/cases.hpp"
#include "support/naive_iteration.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {

/// Times that tell works apart. Devices of even and odd numbers are of different kinds. Collectives take their bytes.
struct telling_oracle {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t device) const {
        double const mixed = w.flops * 3 + w.bytes * 7 + static_cast<double>(w.op->kind.size()) * 13 + static_cast<double>(w.pass) * 17;
        return picoseconds{1 + static_cast<std::int64_t>(mixed) % 997 + 1000 * (device % 2)};
    }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const&) const {
        return picoseconds{bytes + (kind == collective_kind::all_reduce ? 0 : 1'000'000)};
    }
};

support::plain_topology two_kinds(std::uint32_t devices) {
    auto t = support::mesh(devices);
    for (std::uint32_t d = 1; d < devices; d += 2) t.device[d].kind = "other";
    return t;
}

// Answers how many messages carry gradients of several operators.
std::size_t compare_with_naive(std::uint64_t seeds, bool training, sim::optimizer optimizer, support::update_rule rule) {
    std::size_t shared = 0;
    for (std::uint64_t seed = 0; seed < support::cases(seeds); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const network = support::random_network(rng);
        auto const devices = static_cast<std::uint32_t>(2 + uniform_index(rng, 5));
        auto const in_f32 = make_problem(network, two_kinds(devices), telling_oracle{},
                                         {.simulation = {.movement = sim::movement::pairwise, .training = training, .optimizer = optimizer}});
        std::mt19937_64 types(seed);
        auto const p = with_graph(in_f32, support::with_weight_types(types, in_f32.graph()));
        auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.25), 0.3);
        auto simulator = p.simulator();
        (void)simulator.simulate(s);
        std::map<support::computation, std::int64_t> read, at_hand;
        auto const expected = support::naive_iteration(
            p.graph(), s, [](auto const& work, auto device) { return telling_oracle{}.shard_time(work, device); }, training, rule, read, at_hand);
        auto const found = support::observed_iteration(simulator.tasks(), devices);
        REQUIRE(support::difference(expected, found) == "");
        for (auto const& m : expected.sent) shared += std::get<0>(m).size() > 1;
        // What a shard reads was either made on its device or sent to it.
        for (auto const& [who, bytes] : read) {
            std::int64_t received = at_hand[who];
            for (auto const& m : found.steps.at(who).received) received += std::get<3>(m);
            REQUIRE(received == bytes);
        }
    }
    return shared;
}

} // namespace

TEST_CASE("assemble: training iterations of random networks consist of what element sets say") {
    CHECK(compare_with_naive(2500, true, sim::optimizer::sgd, {.flops = 2, .states = 0}) > support::cases<std::size_t>(300));
}
TEST_CASE("assemble: with Adam") { CHECK(compare_with_naive(300, true, sim::optimizer::adam, {.flops = 14, .states = 2}) > 0); }
TEST_CASE("assemble: inference") { CHECK(compare_with_naive(700, false, sim::optimizer::sgd, {}) == 0); }
