#include <parsearch/search/exhaustive.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using ps::stop_reason;
using namespace std::chrono_literals;

static_assert(ps::Searcher<search::exhaustive_fn, decltype(toys::table_problem<double>({}, 0, true)), toys::strategy, std::mt19937>);

TEST_CASE("the Gray code meets every number once, one digit at a time") {
    for (auto const& radix : std::vector<std::vector<std::uint64_t>>{{}, {2}, {5}, {2, 3}, {3, 2, 4}, {2, 2, 2, 2}, {5, 3, 2, 3}}) {
        std::uint64_t size = 1;
        for (auto const r : radix) size *= r;
        search::gray_code code(radix);
        std::vector<std::uint64_t> now(radix.size(), 0);
        std::set<std::vector<std::uint64_t>> met{now};
        while (auto const n = code.next()) {
            for (std::size_t k = 0; k < radix.size(); ++k)
                if (k == *n) CHECK((code.digit(k) == now[k] + 1 || code.digit(k) + 1 == now[k]));
                else CHECK(code.digit(k) == now[k]);
            now[*n] = code.digit(*n);
            CHECK(met.insert(now).second);
        }
        CHECK(met.size() == size);
    }
}

TEST_CASE("exhaustive prices every strategy once and proves the optimum") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        auto const x = toys::make_space(5, 1 + seed % 3, 3);
        std::uint64_t size = 1;
        for (auto const& range : x) size *= range.size();
        auto const problem = toys::table_problem<std::int64_t>(x, seed, true);
        toys::asked counts;
        auto const stepwise = toys::incremental(problem, counts);
        toys::strategy const start(5, 0);
        auto const found = search::exhaustive(problem, start, rng);
        auto const same = search::exhaustive(stepwise, start, rng);
        CHECK(found.reason == stop_reason::proved_optimal);
        CHECK(found.cost == toys::brute_force(problem));
        CHECK(found.lower_bound == found.cost);
        CHECK(found.cost == problem.evaluator()(found.best));
        CHECK(found.stats.evaluations == size + 1); // the start is priced, and met again
        CHECK(toys::same_run(found, same));
        CHECK(counts.proposals == counts.commits + counts.roll_backs);
    }
}

TEST_CASE("exhaustive ends by its budget in a space of any size, with a bound where one is known") {
    toys::splitmix rng{3};
    auto const huge = toys::table_problem<double>(toys::make_space(60, 5), 3, true);
    toys::strategy const start(60, 0);
    auto const cut = search::exhaustive(huge, start, rng, {.evaluations = 5000});
    CHECK(cut.reason == stop_reason::evaluation_budget);
    CHECK(cut.stats.evaluations == 5000);
    CHECK(!cut.lower_bound);
    CHECK(search::exhaustive(huge, start, rng, {.time = 2ms}).reason == stop_reason::time_budget);
    auto const bounded = toys::random_additive<std::int64_t>(rng, 8, 5);
    auto const least = search::exhaustive(bounded, toys::strategy(8, 0), rng).cost;
    auto const some = search::exhaustive(bounded, toys::strategy(8, 0), rng, {.evaluations = 10});
    REQUIRE(some.lower_bound);
    CHECK(*some.lower_bound <= least);
    CHECK(!search::exhaustive(bounded, toys::strategy(8, 0), rng, {.evaluations = 10, .bound = false}).lower_bound);
}

TEST_CASE("a space of one strategy, and none, are priced") {
    toys::splitmix rng{3};
    auto const one = toys::table_problem<double>(toys::make_space(3, 1), 3, true);
    auto const found = search::exhaustive(one, toys::strategy(3, 0), rng);
    CHECK(found.reason == stop_reason::proved_optimal);
    CHECK(found.stats.evaluations == 2);
    CHECK(search::exhaustive(toys::table_problem<double>({}, 3, true), toys::strategy{}, rng).cost == 1);
    CHECK_THROWS_WITH_AS(search::exhaustive(one, toys::strategy(3, 0), rng, {.evaluations = 0}),
                         "exhaustive: option 'evaluations' is 0: must be at least 1, the start is priced too", ps::invalid_input);
}
