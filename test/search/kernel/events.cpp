#include <parsearch/search/kernel/events.hpp>

#include <string>

#include <doctest/doctest.h>

#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;

namespace {
struct recorder { // an object with several operators, some of the events
    std::vector<std::string> log;
    template <class C> void operator()(search::accepted<C> const& e) { add("accepted ", e); }
    template <class C> void operator()(search::improved<C> const& e) { add("improved ", e); }
    template <class E> void add(char const* what, E const& e) { log.push_back(ps::text(what, e.evaluation, ' ', e.cost)); }
};
template <class C> void check_counts() {
    auto const problem = toys::table_problem<C>(toys::make_space(6, 4), 3, true);
    toys::splitmix rng{1};
    std::uint64_t proposed = 0, accepted = 0, improved = 0, restarted = 0, reports = 0, all = 0;
    auto last = problem.evaluator()(toys::strategy(6, 0));
    auto const result = search::mcmc(
        problem, toys::strategy(6, 0), rng, {.evaluations = 1000, .relative_temperature = 0.2, .reset_interval = 50, .progress_interval = 100},
        search::on<search::proposed>([&](auto const&) { ++proposed; }),
        [&](search::accepted<C> const& e) {
            ++accepted;
            last = e.cost;
        },
        [&](search::improved<C> const& e) {
            ++improved;
            CHECK(e.cost < e.before);
            CHECK(e.cost == last);
        },
        [&](search::restarted<C> const& e) {
            ++restarted;
            CHECK(e.cost == last);
            CHECK(e.best <= e.cost);
        },
        [&](search::progress<C> const& e) {
            ++reports;
            CHECK(e.stats.evaluations == 100 * reports);
            CHECK(e.stats.seconds >= 0);
            CHECK(e.best <= e.cost);
        },
        [&](auto const&) { ++all; });
    CHECK(proposed == result.stats.proposals);
    CHECK(accepted == result.stats.accepted);
    CHECK(improved == result.stats.improved);
    CHECK(restarted > 0);
    CHECK(restarted <= result.stats.proposals / 50);
    CHECK(reports == 10);
    CHECK(all == proposed + accepted + improved + restarted + reports + 1);
    CHECK(result.reason == ps::stop_reason::evaluation_budget); // the one event more
}
} // namespace

TEST_CASE("events agree with the counts") {
    check_counts<double>();
    check_counts<int>();
}

TEST_CASE("observers do not influence a search, and an lvalue observer is not copied") {
    auto const problem = toys::table_problem<int>(toys::make_space(5, 4), 9, true);
    toys::splitmix a{5}, b{5};
    recorder seen;
    auto const watched = search::mcmc(problem, toys::strategy(5, 0), a, {.evaluations = 300}, seen);
    auto const alone = search::mcmc(problem, toys::strategy(5, 0), b, {.evaluations = 300});
    CHECK(toys::same_run(watched, alone));
    CHECK(seen.log.size() == watched.stats.accepted + watched.stats.improved);
    REQUIRE(seen.log.size() >= 2);
    CHECK(seen.log[0].starts_with("accepted "));
    CHECK(seen.log[1] == "improved " + seen.log[0].substr(9)); // the first step down
}

TEST_CASE("greedy tells the same events") {
    auto const problem = toys::table_problem<int>(toys::make_space(5, 4), 9, true);
    toys::splitmix rng{5};
    search::move_counts counts;
    auto const result = search::greedy(problem, toys::strategy(5, 0), rng, {}, counts);
    REQUIRE(counts.of_move.size() == 1);
    CHECK(counts.of_move[0] == search::move_counts::counts{result.stats.proposals, result.stats.accepted, result.stats.improved});
    CHECK(result.stats.accepted == result.stats.improved);
}

static_assert(search::Observer<recorder, search::accepted<int>>);
static_assert(!search::Observer<recorder, search::progress<int>, search::restarted<int>>);
