#include <parsearch/fabric/cooptimize/phased_wiring.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <stop_token>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/ops/elementwise.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/networks.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using support::ten_gigabit;

namespace {

/// Shards take 100 ps.
struct short_shards {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const&, std::uint32_t) const { return picoseconds{100}; }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& l) const {
        return picoseconds{static_cast<std::int64_t>(static_cast<double>(bytes) / l.rate.bytes_per_second * 1e12)};
    }
};

/// Four servers with three interfaces of 1 byte per picosecond each: two join a with b and c with d, the others a with d and b with c.
fabric::network pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    link_description const one{{1e12}, {}}, two{{2e12}, {}};
    return {.name = "pairs", .servers = 4, .links = {{a, b, two}, {c, d, two}, {b, c, one}, {d, a, one}}};
}

/// Three operators in four parts of 4,000 bytes: servers 0 and 1, 2 and 3 exchange theirs, then 0 and 2, 1 and 3.
struct two_exchanges {
    static graph::operator_graph make() {
        graph::operator_graph g;
        graph::tensor_ref x = g.input("x", {{4, 1000}});
        for (auto const* const name : {"a", "b", "c"}) x = g.add(name, ops::relu{}, x);
        return g;
    }
    fabric::fabric_problem problem{make(),
                                   4,
                                   {.servers = {.device = topology::v100_sxm, .host_link = {{1e15}, {}}, .interface = {{1e12}, {}}},
                                    .problem = {.simulation = {.movement = sim::movement::pairwise}}},
                                   [](topology::cluster const&) { return short_shards{}; }};
    space::flat_strategy strategy = [&] {
        auto const& ops = problem.graph().operations;
        auto const dim = ops.back().dims.front().name;
        return space::flat_strategy{space::whole(ops[0]), support::split(ops[1], dim, {0, 1, 2, 3}), support::split(ops[2], dim, {1, 0, 3, 2}),
                                    support::split(ops[3], dim, {3, 2, 1, 0})};
    }();
    fabric::network first = pairs(0, 1, 2, 3), second = pairs(0, 2, 1, 3);

    [[nodiscard]] fabric::phased_wiring with(picoseconds delay, std::uint32_t phases = 4) const {
        return fabric::rewire_within_iteration(problem, strategy,
                                               [&](fabric::demand const&) {
                                                   return std::vector{second, first};
                                               },
                                               {.reconfiguration_time = delay, .phases = phases});
    }
};

} // namespace

TEST_CASE("rewire_within_iteration: a wiring for each of two exchanges, by hand") {
    two_exchanges const two;
    // Three shards in a row, and two exchanges of 4,000 bytes: at two interfaces each takes 2,000 ps, at one 4,000.
    auto const free = two.with(picoseconds{0});
    CHECK(free.one_wiring_cost == picoseconds{100 + 4000 + 100 + 2000 + 100});
    CHECK(same_wiring(free.one_wiring, two.second));
    CHECK(free.cost == picoseconds{100 + 2000 + 100 + 2000 + 100});
    CHECK(free.rewirings == 2);
    REQUIRE(free.phases.size() == 2);
    CHECK(free.phases[0].wired == two.first);
    CHECK(free.phases[1].wired == two.second);
    CHECK(free.phases[0].time == fabric::time_span{picoseconds{0}, picoseconds{2100}});
    CHECK(free.phases[1].time == fabric::time_span{picoseconds{2100}, picoseconds{4200}});
    CHECK(free.phases[0].bytes == 16'000);
    CHECK(free.phases[1].bytes == 16'000);
    // While the switch is set the next shards compute, at the end the last ones.
    CHECK(two.with(picoseconds{100}).cost == free.cost);
    CHECK(two.with(picoseconds{500}).cost == picoseconds{2100 + 500 + 2000 + 500});
    CHECK(two.with(picoseconds{1099}).cost == picoseconds{6298});
    // From here on one wiring is as fast.
    for (auto const delay : {picoseconds{1100}, picoseconds{10'000}, picoseconds::max()}) {
        auto const kept = two.with(delay);
        CHECK(kept.cost == free.one_wiring_cost);
        CHECK(kept.phases.size() == 1);
        CHECK(kept.phases[0].bytes == 32'000);
        CHECK(kept.rewirings == 0);
    }
    CHECK(two.with(picoseconds{0}, 1).cost == free.one_wiring_cost);
    CHECK(two.with(picoseconds{0}, 2).cost == free.cost);
    // Asked to stop it answers what it has.
    std::stop_source source;
    source.request_stop();
    auto const finder = [&](fabric::demand const&) { return std::vector{two.second, two.first}; };
    auto const stopped = fabric::rewire_within_iteration(two.problem, two.strategy, finder, {.stop = source.get_token()});
    CHECK(stopped.cost == free.one_wiring_cost);
    CHECK(stopped.wirings == 1);
    REQUIRE(stopped.phases.size() == 1);
    CHECK(stopped.phases[0].time == fabric::time_span{picoseconds{0}, picoseconds{100 + 4000 + 100 + 2000}});
    auto const given = fabric::rewire_within_iteration(two.problem, two.strategy, finder, {.wirings = {two.first}, .stop = source.get_token()});
    CHECK(given.wirings == 1);
    CHECK(given.one_wiring == two.first);
}

TEST_CASE("rewire_within_iteration: where memory ends the answer is the best so far") {
    two_exchanges const two;
    for (std::size_t enough = 0; enough < 3; ++enough) {
        INFO("networks of ", enough, " demands");
        std::size_t asked = 0;
        auto const finder = [&](fabric::demand const&) {
            if (asked++ == enough) throw std::bad_alloc();
            return std::vector{two.second};
        };
        auto const found = fabric::rewire_within_iteration(two.problem, two.strategy, finder, {.wirings = {two.first}});
        CHECK(found.wirings == (enough == 0 ? 1 : 2));
        CHECK(found.cost == found.one_wiring_cost);
        CHECK(found.phases.size() == 1);
    }
    auto const none = [](fabric::demand const&) -> std::vector<fabric::network> { throw std::bad_alloc(); };
    CHECK_THROWS_AS((void)fabric::rewire_within_iteration(two.problem, two.strategy, none, {}), std::bad_alloc);
}

TEST_CASE("rewire_within_iteration: never worse than one wiring, and what it says is what is simulated") {
    std::size_t gained = 0;
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{60}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        std::uint32_t const servers = 4 + static_cast<std::uint32_t>(uniform_index(rng, 4)),
                            degree = 2 + static_cast<std::uint32_t>(uniform_index(rng, 2));
        fabric::fabric_problem const problem(support::random_network(rng), servers,
                                             {.servers = support::slow_servers(1 + static_cast<std::uint32_t>(uniform_index(rng, 2))),
                                              .problem = {.simulation = {.movement = static_cast<sim::movement>(uniform_index(rng, 3)),
                                                                         .transfers = static_cast<sim::transfer_model>(uniform_index(rng, 4))}}});
        auto const known = fabric::circulant(servers, {1}, ten_gigabit);
        auto const strategy = support::random_strategy(rng, problem.on(known).problem);
        picoseconds const delay{static_cast<std::int64_t>(uniform_index(rng, 3) * 1'000'000)};
        auto const run = [&] {
            return fabric::rewire_within_iteration(problem, strategy, fabric::wirings{.degree = degree, .link = ten_gigabit},
                                                   {.reconfiguration_time = delay,
                                                    .phases = 1 + static_cast<std::uint32_t>(seed % 4),
                                                    .cuts = 1 + static_cast<std::uint32_t>(seed % 9),
                                                    .wirings = {known}});
        };
        auto const found = run();
        REQUIRE(found.cost <= found.one_wiring_cost);
        REQUIRE(found.one_wiring_cost <= problem.on(known).problem.evaluator()(strategy));
        REQUIRE(found.one_wiring_cost == problem.on(found.one_wiring).problem.evaluator()(strategy));
        REQUIRE(found.phases.size() <= 1 + seed % 4);
        REQUIRE((found.cost < found.one_wiring_cost) == (found.phases.size() > 1));
        REQUIRE(found.rewirings != 1);
        REQUIRE(found.cost >= static_cast<std::int64_t>(found.rewirings) * delay);
        for (std::size_t p = 1; p < found.phases.size(); ++p) REQUIRE(found.phases[p].time.begin >= found.phases[p - 1].time.end);
        byte_count bytes = 0;
        for (auto const& p : found.phases) {
            REQUIRE((p.bytes == 0) == (p.time.begin == p.time.end));
            bytes += p.bytes;
        }
        fabric::phased_simulator alone(problem, strategy);
        REQUIRE(bytes == alone.bytes_on(alone.add(known)));
        gained += found.phases.size() > 1;
        auto const again = run();
        REQUIRE(again.cost == found.cost);
        REQUIRE(again.simulations == found.simulations);
    }
    CHECK(gained > 0);
}

TEST_CASE("rewire_within_iteration: mistakes are named") {
    two_exchanges const two;
    auto const refused = [&](fabric::phase_options const& o, std::vector<fabric::network> const& made) {
        return support::refusal([&] {
            return fabric::rewire_within_iteration(
                two.problem, two.strategy, [&](fabric::demand const&) { return made; }, o);
        });
    };
    std::vector const some{two.first};
    CHECK(refused({.reconfiguration_time = picoseconds{-1}}, some) ==
          "rewire_within_iteration: option 'reconfiguration_time' is -1 ps: must not be negative");
    CHECK(refused({.phases = 0}, some) == "rewire_within_iteration: option 'phases' is 0: must be at least 1");
    CHECK(refused({.cuts = 0}, some) == "rewire_within_iteration: option 'cuts' is 0: must be at least 1");
    CHECK(refused({}, {}) == "rewire_within_iteration: the finder made no network: must be at least one");
    CHECK(refused({.wirings = {fabric::fully_connected(5, ten_gigabit)}}, some) == "network 'fully connected' of 5 servers: the problem has 4");
}
