#include <parsearch/search/random_search.hpp>

#include <chrono>
#include <cstdint>
#include <random>

#include <doctest/doctest.h>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using ps::stop_reason;
using namespace std::chrono_literals;

static_assert(ps::Searcher<search::random_fn, decltype(toys::table_problem<double>({}, 0, true)), toys::strategy, std::mt19937>);

TEST_CASE("random search ends by itself, with the best of what it drew") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed}, again{seed};
        auto const problem = toys::table_problem<double>(toys::make_space(4, 2, 3), seed, true);
        toys::asked counts;
        auto const stepwise = toys::incremental(problem, counts);
        auto const found = search::random_search(problem, toys::strategy(4, 0), rng);
        auto const same = search::random_search(stepwise, toys::strategy(4, 0), again);
        CHECK(found.reason == stop_reason::no_improvement);
        CHECK(found.cost == toys::brute_force(problem)); // 1400 draws from 48
        CHECK(found.stats.evaluations >= 1400);
        CHECK(toys::same_run(found, same));
        CHECK(!found.lower_bound);
    }
}

TEST_CASE("every strategy is as likely as every other") {
    std::vector<int> drawn(6, 0);
    ps::search_problem const problem{toys::space{{0, 1, 2}, {0, 1}}, [&drawn](toys::strategy const& s) {
                                         ++drawn[static_cast<std::size_t>(s[0] * 2 + s[1])];
                                         return 1;
                                     }};
    toys::splitmix rng{11};
    search::random_search(problem, toys::strategy{0, 0}, rng, {.evaluations = 6001});
    for (int const n : drawn) CHECK((n > 880 && n < 1120)); // four standard deviations
}

TEST_CASE("random search ends by its budget, where there is nothing to draw, and where its bound is met") {
    toys::splitmix rng{2};
    auto const problem = toys::table_problem<double>(toys::make_space(6, 4), 2, true);
    toys::strategy const start(6, 0);
    auto const cut = search::random_search(problem, start, rng, {.evaluations = 50});
    CHECK(cut.reason == stop_reason::evaluation_budget);
    CHECK(cut.stats.evaluations == 50);
    CHECK(search::random_search(problem, start, rng, {.time = 1ms}).reason == stop_reason::time_budget);
    CHECK(search::random_search(toys::table_problem<double>(toys::make_space(6, 1), 2, true), start, rng).reason == stop_reason::exhausted);
    toys::additive_problem<std::int64_t> const separable{{{0, 1}, {0, 1, 2}},
                                                         toys::additive<std::int64_t>{.own = {{3, 1}, {4, 2, 9}}, .pairs = {}, .terms = {}}};
    auto const met = search::random_search(separable, toys::strategy{0, 0}, rng);
    CHECK(met.reason == stop_reason::proved_optimal);
    CHECK(met.cost == 3);
    CHECK(met.lower_bound == 3);
    CHECK(search::random_search(separable, toys::strategy{0, 0}, rng, {.bound = false}).reason == stop_reason::no_improvement);
}

TEST_CASE("bad options of random search are refused") {
    toys::splitmix rng{2};
    auto const problem = toys::table_problem<double>(toys::make_space(2, 2), 2, true);
    CHECK_THROWS_WITH_AS(search::random_search(problem, toys::strategy(2, 0), rng, {.patience = 0.0}),
                         "random: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search",
                         ps::invalid_input);
    CHECK_THROWS_AS(search::random_search(problem, toys::strategy(2, 0), rng, {.patience = 1.5}), ps::invalid_input);
}
