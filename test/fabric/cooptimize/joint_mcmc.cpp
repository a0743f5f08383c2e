#include <parsearch/fabric/cooptimize/joint_mcmc.hpp>

#include <cstdint>
#include <random>
#include <stop_token>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/models/dlrm.hpp>

#include "support/cases.hpp"
#include "support/networks.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace std::chrono_literals;
using support::ten_gigabit;

namespace {

template <class Problem> fabric::fabric_plan data_parallel_on(Problem const& p, fabric::network n) {
    return {std::move(n), space::data_parallel(p.graph(), p.devices())};
}

} // namespace

TEST_CASE("joint_mcmc: what it answers is what it costs, never more than the start, the same again") {
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{40}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 draw(seed);
        std::uint32_t const servers = 5 + static_cast<std::uint32_t>(uniform_index(draw, 4));
        fabric::fabric_problem const problem(support::random_network(draw), servers,
                                             {.servers = support::slow_servers(1 + static_cast<std::uint32_t>(uniform_index(draw, 2)))});
        auto const start = data_parallel_on(problem, fabric::circulant(servers, {1, 2}, ten_gigabit));
        auto const run = [&](std::vector<std::size_t>& moves) {
            std::mt19937_64 rng(seed);
            return fabric::joint_mcmc(problem, start, rng, {.evaluations = 150, .link_share = 0.3, .reset_interval = 40},
                                      search::on<search::accepted>([&](auto const& e) { moves.push_back(e.move); }));
        };
        std::vector<std::size_t> moves, again;
        auto const found = run(moves);
        REQUIRE(found.stats.evaluations == 150);
        REQUIRE(found.reason == stop_reason::evaluation_budget);
        REQUIRE(found.cost <= problem.on(start.wired).problem.evaluator()(start.strategy));
        REQUIRE(problem.on(found.best.wired).problem.evaluator()(found.best.strategy) == found.cost);
        std::uint64_t wires = 0;
        for (auto const& l : found.best.wired.links) wires += l.wires;
        REQUIRE(wires == start.wired.links.size());
        auto const twin = run(again);
        REQUIRE(moves == again);
        REQUIRE(twin.cost == found.cost);
        REQUIRE(twin.best.wired == found.best.wired);
        REQUIRE(twin.stats.trajectory == found.stats.trajectory);
    }
}

TEST_CASE("joint_mcmc: it rewires where that pays") {
    fabric::fabric_problem const problem(
        models::dlrm(
            {.dense = 64, .bottom = {128, 64}, .tables = {40'000, 40'000, 40'000}, .features = 64, .bag = 4, .top = {256, 64}, .batch = 1024}),
        8, {.servers = support::slow_servers(1)});
    auto const start = data_parallel_on(problem, fabric::random_regular(8, 2, 3, ten_gigabit));
    std::vector<std::uint64_t> accepted(8, 0);
    std::mt19937_64 rng{5};
    auto const found = fabric::joint_mcmc(problem, start, rng, {.evaluations = 1500, .link_share = 0.2},
                                          search::on<search::accepted>([&](auto const& e) { ++accepted[e.move]; }));
    CHECK(accepted[0] > 0);
    CHECK(accepted[2] + accepted[3] + accepted[4] > 0);
    CHECK(!fabric::same_wiring(found.best.wired, start.wired));
    // The wiring has its part in it: the strategy found takes longer on the network of the start.
    CHECK(found.cost < problem.on(start.wired).problem.evaluator()(found.best.strategy));
}

TEST_CASE("joint_mcmc: budgets, patience, mistakes") {
    fabric::fabric_problem const problem(
        models::dlrm({.dense = 16, .bottom = {16}, .tables = {100}, .features = 16, .bag = 2, .top = {16}, .batch = 64}), 5,
        {.servers = support::slow_servers(1)});
    auto const start = data_parallel_on(problem, fabric::circulant(5, {1, 2}, ten_gigabit));
    auto const run = [&](fabric::joint_mcmc_options const& o) {
        std::mt19937_64 rng{5};
        return fabric::joint_mcmc(problem, start, rng, o);
    };
    CHECK(run({.min_evaluations = 200}).reason == stop_reason::no_improvement);
    CHECK(run({.time = 0ns}).reason == stop_reason::time_budget);
    std::stop_source stop;
    stop.request_stop();
    CHECK(run({.stop = stop.get_token()}).stats.evaluations == 1);
    auto const refused = [&](fabric::joint_mcmc_options const& o) { return support::refusal([&] { return run(o).stats.evaluations; }); };
    CHECK(refused({.link_share = 1.5}) == "joint_mcmc: option 'link_share' is 1.5: must be between 0 and 1");
    CHECK(refused({.evaluations = 0}) == "joint_mcmc: option 'evaluations' is 0: must be at least 1, the start is priced too");
    // Nothing can be rewired where all links go to a switch.
    std::mt19937_64 rng{5};
    auto const fixed = fabric::joint_mcmc(problem, data_parallel_on(problem, fabric::ideal_switch(5, ten_gigabit)), rng, {.link_share = 1});
    CHECK(fixed.reason == stop_reason::exhausted);
}
