#include <parsearch/search/exact.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using ps::stop_reason;
using namespace std::chrono_literals;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

static_assert(ps::Searcher<search::exact_fn, toys::additive_problem<double>, toys::strategy, std::mt19937>);

TEST_CASE("exact proves what brute force finds, for all kinds of costs") {
    auto const check = [](auto kind) {
        using cost = decltype(kind);
        std::uint64_t nodes = 0;
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            CAPTURE(seed);
            toys::splitmix rng{seed};
            auto const problem = toys::random_additive<cost>(rng, 2 + seed % 5, 4);
            for (auto const open : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 16}) {
                auto const found = search::exact(problem, toys::strategy(problem.space().size(), 0), rng,
                                                 {.walk = seed % 2 ? 0 : 20, .sweeps = seed % 3, .open = open});
                CHECK(found.reason == stop_reason::proved_optimal);
                CHECK(found.cost == toys::brute_force(problem));
                CHECK(found.lower_bound == found.cost);
                CHECK(found.cost == problem.evaluator()(found.best));
                nodes += found.stats.nodes;
            }
        }
        CHECK(nodes > 0);
    };
    check(double{});
    check(std::int64_t{});
    check(picoseconds{});
}

TEST_CASE("bounds are never above the least cost, whatever ran and wherever it stopped") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        auto const problem = toys::random_additive<std::int64_t>(rng, 5, 4);
        auto const least = toys::brute_force(problem);
        toys::strategy const start(5, 0);
        auto const watch = search::on<search::bound_raised>([&](auto const& e) {
            CHECK(e.bound <= least);
            CHECK((!e.before || *e.before < e.bound));
        });
        CHECK(*search::root_bound<toys::strategy>(problem) <= least);
        for (std::uint64_t evaluations = 1; evaluations < 60; evaluations += 7) {
            auto const found = search::exact(problem, start, rng, {.evaluations = evaluations, .walk = 3, .open = 1 + seed}, watch);
            REQUIRE(found.lower_bound);
            CHECK(*found.lower_bound <= least);
            CHECK(found.cost >= least);
            CHECK(found.stats.evaluations <= evaluations);
            if (found.reason != stop_reason::proved_optimal) CHECK(found.reason == stop_reason::evaluation_budget);
            else CHECK(found.cost == least);
        }
    }
}

TEST_CASE("exact runs alike with plain and incremental evaluators") {
    toys::splitmix rng{5}, again{5};
    auto const plain = toys::random_additive<double>(rng, 6, 4);
    (void)toys::random_additive<double>(again, 6, 4);
    toys::asked counts;
    auto const stepwise = toys::incremental_additive(plain, counts);
    auto const a = search::exact(plain, toys::strategy(6, 0), rng);
    auto const b = search::exact(stepwise, toys::strategy(6, 0), again);
    CHECK(toys::same_run(a, b));
    CHECK(counts.proposals > 0);
    CHECK(counts.proposals == counts.commits + counts.roll_backs);
}

TEST_CASE("a start outside the space may be the best, and an infeasible space is proved so") {
    toys::splitmix rng{5};
    toys::additive_problem<double> const far{{{1, 2}, {1, 2}}, toys::additive<double>{.own = {{0, 5, 6}, {0, 5, 6}}, .pairs = {}, .terms = {}}};
    auto const found = search::exact(far, toys::strategy{0, 0}, rng);
    CHECK(found.cost == 0);
    CHECK(found.lower_bound == 0);
    CHECK(found.reason == stop_reason::proved_optimal);
    auto const never = std::numeric_limits<double>::infinity();
    toys::additive_problem<double> const infeasible{{{0, 1}, {0}},
                                                    toys::additive<double>{.own = {{1, never}, {1}}, .pairs = {{0, 1}}, .terms = {{{never}, {2}}}}};
    auto const none = search::exact(infeasible, toys::strategy{0, 0}, rng);
    CHECK(none.cost == never);
    CHECK(none.ended == stop_reason::proved_optimal);
    CHECK(none.reason == stop_reason::nothing_feasible);
}

TEST_CASE("an exact search ends by its budget and tells its progress") {
    toys::splitmix rng{9};
    auto const problem = toys::random_additive<std::int64_t>(rng, 12, 4);
    toys::strategy const start(12, 0);
    CHECK(search::exact(problem, start, rng, {.time = 0ns}).reason == stop_reason::time_budget);
    std::stop_source stop;
    stop.request_stop();
    CHECK(search::exact(problem, start, rng, {.stop = stop.get_token()}).reason == stop_reason::stop_requested);
    std::uint64_t told = 0;
    auto const found = search::exact(problem, start, rng, {.progress_interval = 10}, search::on<search::progress>([&](auto const& e) {
                                         CHECK(e.stats.nodes % 10 == 0);
                                         ++told;
                                     }));
    CHECK(told == found.stats.nodes / 10);
    CHECK_THROWS_WITH_AS(search::exact(problem, start, rng, {.open = 0}), "exact: option 'open' is 0: must be at least 1, the empty strategy is kept",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(search::exact(problem, start, rng, {.time = -1ns}), "exact: option 'time' is -1 ns: must not be negative",
                         ps::invalid_input);
}
