#include <parsearch/fabric/cooptimize/phased_simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/cooptimize/phased_wiring.hpp>
#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/graph/ring_attention.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/attention.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/networks.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using support::ten_gigabit;

namespace {

std::vector<std::uint32_t> random_numbers(std::mt19937_64& rng, std::size_t count, std::size_t below) {
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(static_cast<std::uint32_t>(uniform_index(rng, below)));
    return out;
}

std::vector<std::uint32_t> all_of(fabric::phased_simulator const& s) {
    std::vector<std::uint32_t> out(s.movements());
    std::iota(out.begin(), out.end(), 0U);
    return out;
}

/// Every way in which tasks are simulated.
sim::simulation_options random_options(std::mt19937_64& rng) {
    return {.movement = static_cast<sim::movement>(uniform_index(rng, 3)),
            .discipline = static_cast<sim::discipline>(uniform_index(rng, 2)),
            .training = !bernoulli(rng, 0.2),
            .synchronisation = static_cast<sim::synchronisation>(uniform_index(rng, 2)),
            .overlap = !bernoulli(rng, 0.3),
            .transfers = static_cast<sim::transfer_model>(uniform_index(rng, 4)),
            .segment = 100};
}

} // namespace

TEST_CASE("phased_simulator: one phase costs what the problem says, and a rewiring keeps phases apart") {
    std::size_t rewired = 0;
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{300}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const servers = static_cast<std::uint32_t>(3 + uniform_index(rng, 4));
        fabric::fabric_problem const problem(support::random_network(rng), servers,
                                             {.servers = support::slow_servers(1 + static_cast<std::uint32_t>(uniform_index(rng, 2))),
                                              .problem = {.simulation = random_options(rng)}});
        std::vector<fabric::network> const networks{fabric::with_rings(fabric::random_links(servers, 3, seed, ten_gigabit)),
                                                    fabric::fully_connected(servers, ten_gigabit), fabric::ideal_switch(servers, ten_gigabit)};
        auto const strategy = support::random_strategy(rng, problem.on(networks[0]).problem, 0.3);
        fabric::phased_simulator simulator(problem, strategy);
        for (std::uint32_t w = 0; w < networks.size(); ++w) REQUIRE(simulator.add(networks[w]) == w);
        CHECK(simulator.add(networks[1]) == 1);
        for (std::uint32_t w = 0; w < networks.size(); ++w) REQUIRE(simulator.alike(w));
        auto const count = simulator.movements();
        for (std::uint32_t w = 0; w < networks.size(); ++w) {
            auto const cost = problem.on(networks[w]).problem.evaluator()(strategy);
            CHECK(simulator.cost_on(w) == cost);
            auto const alone = simulator.run(std::vector<std::uint32_t>(count, 0), std::vector{w}, picoseconds{1'000'000});
            REQUIRE(alone.cost == cost);
            REQUIRE(alone.phases.size() == 1);
            CHECK(alone.phases[0] == fabric::time_span{picoseconds{0}, simulator.arrival_on(w)});
            auto const all = simulator.traffic(all_of(simulator));
            CHECK(simulator.bytes_on(w) == all.point_to_point_bytes() + all.all_reduce_bytes());
        }
        // Any phases at all.
        auto const phases = 2 + uniform_index(rng, 3);
        auto const phase_of = random_numbers(rng, count, phases), wiring_of = random_numbers(rng, phases, networks.size());
        picoseconds const delay{static_cast<std::int64_t>(uniform_index(rng, 2) * 5'000'000)};
        auto const when = simulator.run(phase_of, wiring_of, delay);
        REQUIRE(when.phases.size() == phases);
        auto const rewiring = [&](std::size_t p) {
            return same_wiring(networks[wiring_of[p]], networks[wiring_of[(p + 1) % phases]]) ? picoseconds{0} : delay;
        };
        for (std::size_t p = 0; p < phases; ++p) {
            CHECK(when.phases[p].end >= when.phases[p].begin);
            if (p > 0) CHECK(when.phases[p].begin == when.phases[p - 1].end + rewiring(p - 1));
        }
        CHECK(when.cost >= when.phases.back().end + rewiring(phases - 1));
        for (std::size_t m = 0; m < count; ++m) {
            INFO("movement ", m);
            // Of its phase, or of a later one that it waits for.
            auto const p = when.phase_of[m];
            CHECK(p >= phase_of[m]);
            CHECK(when.movements[m].begin >= when.phases[p].begin);
            CHECK(when.movements[m].end <= when.phases[p].end);
        }
        rewired += count > 1;
        CHECK(simulator.run(phase_of, wiring_of, delay).movements == when.movements);
    }
    CHECK(rewired > support::cases(std::size_t{300}) / 2);
}

TEST_CASE("phased_simulator: a chain of operators on a server each takes the sum of its parts") {
    constexpr std::uint32_t servers = 5;
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{60}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        graph::operator_graph g;
        graph::tensor_ref x = g.input("x", {{10, 100}});
        for (auto length = 2 + uniform_index(rng, 6); length > 0; --length) x = g.add(text("relu", length), ops::relu{}, x);
        fabric::fabric_problem const problem(g, servers, {.servers = support::slow_servers(1)});
        space::flat_strategy strategy;
        for (auto const& op : problem.graph().operations)
            strategy.push_back(space::whole(op, static_cast<std::int32_t>(uniform_index(rng, servers))));
        fabric::phased_simulator simulator(problem, strategy);
        std::vector<sim::task_graph> tasks;
        for (auto n : {fabric::circulant(servers, {1}, ten_gigabit), fabric::circulant(servers, {2}, ten_gigabit)}) {
            for (auto& l : n.links) l.each.rate = {static_cast<double>(1 + uniform_index(rng, 9)) * 1e9};
            (void)simulator.add(n);
            tasks.push_back(problem.on(n).problem.simulator().assemble(strategy));
        }
        constexpr std::size_t phases = 3;
        auto const phase_of = random_numbers(rng, simulator.movements(), phases), wiring_of = random_numbers(rng, phases, tasks.size());
        picoseconds const delay{static_cast<std::int64_t>(uniform_index(rng, 2'000'000))};

        std::int64_t now = 0, arrived = 0, set = 0; // of the chain; of the last message; of the links
        std::size_t phase = 0, message = 0;
        auto const rewire = [&] {
            auto const next = phase + 1 < phases ? phase + 1 : 0;
            set = std::max(set, arrived) + (wiring_of[phase] == wiring_of[next] ? 0 : delay.count());
            ++phase;
        };
        for (std::size_t op = 1, last = 0; op < strategy.size(); last = op++) {
            if (strategy[op].device(0) != strategy[last].device(0) && last > 0) {
                while (phase < phase_of[message]) rewire();
                ++message;
                std::int64_t longest = 0;
                auto const& on = tasks[wiring_of[phase]];
                for (std::uint32_t t = 0; t < on.size(); ++t)
                    if (on.kind[t] == sim::task_kind::transfer && on.label[t].op == op) longest = std::max(longest, on.duration[t]);
                arrived = now = std::max(now, set) + longest;
            }
            for (std::uint32_t t = 0; t < tasks[0].size(); ++t)
                if (tasks[0].kind[t] == sim::task_kind::forward && tasks[0].label[t].op == op) now += tasks[0].duration[t];
        }
        REQUIRE(message == simulator.movements());
        while (phase < phases) rewire();
        CHECK(simulator.run(phase_of, wiring_of, delay).cost == picoseconds{std::max(now, set)});
    }
}

TEST_CASE("phased_simulator: the traffic of all movements is that of the strategy") {
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{60}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = random_options(rng);
        bool const messages = bernoulli(rng, 0.5);
        if (messages) options.movement = sim::movement::pairwise;
        std::uint32_t const servers = 4;
        fabric::fabric_problem const problem(support::random_network(rng), servers,
                                             {.servers = support::slow_servers(2), .problem = {.simulation = options}});
        auto const n = fabric::fully_connected(servers, ten_gigabit);
        auto const strategy = support::random_strategy(rng, problem.on(n).problem, 0.3);
        fabric::phased_simulator simulator(problem, strategy);
        (void)simulator.add(n);
        auto const all = simulator.traffic(all_of(simulator)), wanted = problem.traffic(strategy);
        if (messages) { // gathers are left to compare
            for (std::uint32_t a = 0; a < servers; ++a)
                for (std::uint32_t b = 0; b < servers; ++b) CHECK(all.between(a, b) == wanted.between(a, b));
            CHECK(all.all_reduce_bytes() == wanted.all_reduce_bytes());
        }
        CHECK((all.point_to_point_bytes() + all.all_reduce_bytes() > 0) == (simulator.movements() > 0));
        // The parts add up.
        fabric::demand sum(servers);
        byte_count reduced = 0;
        for (auto const m : all_of(simulator)) {
            auto const one = simulator.traffic(std::vector{m});
            CHECK(one.point_to_point_bytes() + one.all_reduce_bytes() > 0);
            reduced += one.all_reduce_bytes();
            for (std::uint32_t a = 0; a < servers; ++a)
                for (std::uint32_t b = 0; b < servers; ++b)
                    if (a != b) sum.add(a, b, one.between(a, b));
        }
        CHECK(sum.point_to_point_bytes() == all.point_to_point_bytes());
        CHECK(reduced == all.all_reduce_bytes());
    }
}

TEST_CASE("phased_simulator: inputs that are passed on may move otherwise on other wirings, which are not combined") {
    graph::operator_graph g;
    auto const x = g.input("x", {{1, 64, 32}});
    ops::linear const projection{.out = 32, .bias = false};
    g.add("attention", ops::attention{.heads = 4}, g.add("q", projection, x), g.add("k", projection, x), g.add("v", projection, x));
    std::uint32_t const servers = 4;
    auto options = support::slow_servers(1);
    options.host_link = {{1e15}, {}};
    fabric::fabric_problem const problem(graph::with_ring_attention(g), servers,
                                         {.servers = options, .problem = {.simulation = {.training = false}}});
    space::flat_strategy strategy;
    for (auto const& op : problem.graph().operations)
        strategy.push_back(op.work == ops::work_class::source
                               ? space::whole(op)
                               : support::split(op, op.work == ops::work_class::attention ? "lq" : op.dims[1].name, {0, 1, 2, 3}));
    // Where the links are slow, keys come no earlier than values would have computed.
    auto const slow = fabric::circulant(servers, {1}, {{1e6}, {}}), fast = fabric::circulant(servers, {1}, {{1e15}, {}});
    fabric::phased_simulator simulator(problem, strategy);
    (void)simulator.add(slow);
    CHECK(simulator.alike(0));
    (void)simulator.add(fast);
    CHECK_FALSE(simulator.alike(1));
    CHECK(simulator.cost_on(1) == problem.on(fast).problem.evaluator()(strategy));
    std::vector<std::uint32_t> const at_once(simulator.movements(), 0);
    CHECK(support::refusal([&] { return simulator.run(at_once, std::vector{1U}, {}); }) ==
          "phased_simulator: a phase of wiring 1, which has other movements than the first: must be alike");
    // The others are combined all the same.
    CHECK(simulator.run(at_once, std::vector{0U}, {}).cost == simulator.cost_on(0));
    (void)simulator.add(fabric::circulant(servers, {1}, {{1e5}, {}}));
    CHECK(simulator.alike(2));
    CHECK(simulator.run(at_once, std::vector{2U, 0U}, {}).cost == simulator.cost_on(2));
    auto const kept = fabric::rewire_within_iteration(problem, strategy, [&](fabric::demand const&) { return std::vector{slow, fast}; }, {});
    CHECK(kept.cost == simulator.cost_on(1));
    CHECK(same_wiring(kept.one_wiring, fast));
    REQUIRE(kept.phases.size() == 1);
    CHECK(kept.phases[0].time == fabric::time_span{picoseconds{0}, simulator.arrival_on(1)});
    CHECK(simulator.arrival_on(1) > picoseconds{0});
    CHECK(simulator.arrival_on(1) <= simulator.cost_on(1));
    CHECK(kept.phases[0].bytes == simulator.bytes_on(1));
    CHECK(kept.phases[0].bytes == simulator.bytes_on(0)); // these pass on as much
}

TEST_CASE("phased_simulator: mistakes are named") {
    graph::operator_graph g;
    g.add("relu", ops::relu{}, g.add("first", ops::relu{}, g.input("x", {{4, 4}})));
    fabric::fabric_problem const problem(g, 4, {.servers = support::slow_servers(1)});
    space::flat_strategy strategy;
    for (auto const& op : problem.graph().operations) strategy.push_back(space::whole(op, static_cast<std::int32_t>(strategy.size())));
    fabric::phased_simulator simulator(problem, strategy);
    CHECK(simulator.movements() == 0);
    (void)simulator.add(fabric::circulant(4, {1}, ten_gigabit));
    (void)simulator.add(fabric::fully_connected(4, ten_gigabit));
    REQUIRE(simulator.movements() == 1);
    using numbers = std::vector<std::uint32_t>;
    auto const refused = [&](numbers const& phase_of, numbers const& wiring_of, std::int64_t delay) {
        return support::refusal([&] { return simulator.run(phase_of, wiring_of, picoseconds{delay}); });
    };
    CHECK(refused({0}, {0, 1}, 5).empty());
    CHECK(refused({0}, {}, 5) == "phased_simulator: 0 phases: must be at least one");
    CHECK(refused({0}, {0, 2}, 5) == "phased_simulator: a phase of wiring 2 of 2: must be one of them");
    CHECK(refused({0, 0}, {0}, 5) == "phased_simulator: phases of 2 movements: there are 1, must be one each");
    CHECK(refused({1}, {0}, 5) == "phased_simulator: a movement of phase 1 of 1: must be one of them");
    CHECK(refused({0}, {0, 1}, -5) == "phased_simulator: a rewiring of -5 ps: must not be negative");
    CHECK(refused({0}, {}, -5) == "phased_simulator: a rewiring of -5 ps: must not be negative");
    CHECK(support::refusal([&] { return simulator.add(fabric::fully_connected(5, ten_gigabit)); }) ==
          "network 'fully connected' of 5 servers: the problem has 4");
}
