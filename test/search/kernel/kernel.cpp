#include <parsearch/search/kernel/kernel.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/additive_cost.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

#include "support/additive_toys.hpp"
#include "support/diary.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using ps::stop_reason;

namespace {

/// All searches, with options that do not depend on the budget.
template <class F> void for_all_searches(F const& f) {
    f(search::mcmc, search::mcmc_options{.reset_interval = 40, .random_starts = 2, .race_length = 50});
    f(search::mcmc, search::mcmc_options{.reset_interval = 40, .threads = 3});
    f(search::tempering, search::tempering_options{.replicas = 3, .exchange_interval = 7});
    f(search::greedy, search::greedy_options{});
    f(search::random_search, search::random_options{});
    f(search::exhaustive, search::exhaustive_options{});
    f(search::exact, search::exact_options{.walk = 50, .sweeps = 1});
    f(search::portfolio, search::portfolio_options{.slice = 10});
    f(search::portfolio, search::portfolio_options{.slice = 10, .concurrent = true});
}

/// Infeasible where the first operator has an odd choice, though the cost is finite.
struct even_only : ps::search_problem<toys::space, toys::table_cost<double>> {
    using ps::search_problem<toys::space, toys::table_cost<double>>::search_problem;
    [[nodiscard]] bool feasible(toys::strategy const& s) const { return s[0] % 2 == 0; }
};

} // namespace

TEST_CASE("a search of one's own on the kernel") {
    std::vector<int> told;
    auto observer = search::on<search::improved>([&](auto const& e) { told.push_back(e.cost); });
    search::kernel<int, int, decltype(observer)> run("mine", {.time = {}, .evaluations = 5, .stop = {}}, {}, observer);
    CHECK_FALSE(run.has_best());
    CHECK(run.evaluations_left() == 5);
    int const costs[] = {9, 7, 8, 3, 3, 1};
    for (int n = 0; !run.due(); ++n) {
        run.count_evaluation();
        CHECK(run.offer(n, costs[n]) == (n == 0 || n == 1 || n == 3));
    }
    run.raise_bound(1);
    auto const found = run.finish(*run.due());
    CHECK(found.best == 3);
    CHECK(found.cost == 3);
    CHECK(found.lower_bound == 1);
    CHECK(found.stats.evaluations == 5);
    CHECK(found.stats.improved == 2);
    CHECK(found.reason == stop_reason::evaluation_budget);
    CHECK(told == std::vector{7, 3});
}

TEST_CASE("what is due stays due, and a problem has a say in what is feasible") {
    search::kernel<int, int> run("mine", {.time = std::chrono::microseconds{50}, .evaluations = {}, .stop = {}}, {});
    run.count_evaluation();
    run.begin(3, 3);
    while (!run.due()) {
    }
    for (int n = 0; n < 1000; ++n) CHECK(run.due() == stop_reason::time_budget);
    struct odd_only {
        [[nodiscard]] bool feasible(int n) const { return n % 2 == 1; }
    };
    auto copy = run;
    CHECK(copy.finish(*copy.due(), odd_only{}).reason == stop_reason::time_budget);
    run.begin(4, 2);
    auto const found = run.finish(*run.due(), odd_only{});
    CHECK(found.reason == stop_reason::nothing_feasible);
    CHECK(found.ended == stop_reason::time_budget);
}

TEST_CASE("threads: an observer that grants more gets the search that as much would have been from the beginning") {
    auto const problem = toys::table_problem<double>(toys::make_space(7, 4), 3, true);
    auto const run_all = [&](auto const& run) {
        for_all_searches([&](auto const& algorithm, auto options) {
            if constexpr (!ps::traits_of<std::remove_cvref_t<decltype(algorithm)>>.bounds) run(problem, algorithm, options);
        });
        toys::splitmix draw{8};
        run(toys::random_additive<double>(draw, 7, 4), search::exact, search::exact_options{.walk = 50, .sweeps = 1});
    };
    int resumed = 0;
    run_all([&](auto const& p, auto const& algorithm, auto options) {
        for (std::uint64_t const first : {1u, 2u, 30u, 41u, 150u}) {
            CAPTURE(first);
            auto once = options, part = options;
            once.evaluations = 300;
            part.evaluations = first;
            std::mt19937_64 a{4}, b{4};
            toys::diary<double> said, resaid;
            auto const whole = algorithm(p, toys::strategy(7, 0), a, once, said);
            std::uint64_t granted = first;
            auto const grant = search::on<search::budget_spent>([&](auto const& e) -> std::optional<search::extension> {
                CHECK(e.budget == stop_reason::evaluation_budget);
                CHECK(e.stats.evaluations <= granted);
                if (granted == 300) return {};
                auto const more = granted < 100 ? 20 : 300 - granted;
                granted += more;
                return search::extension{.time = {}, .evaluations = more};
            });
            auto const again = algorithm(p, toys::strategy(7, 0), b, part, grant, resaid);
            resumed += granted > first;
            CHECK(toys::same_run(whole, again));
            CHECK(again.reason == whole.reason);
            CHECK(said.lines == resaid.lines);
            CHECK(a == b);
        }
    });
    CHECK(resumed > 30);
}

TEST_CASE("an observer may end any search, before its next proposal") {
    auto const problem = toys::table_problem<double>(toys::make_space(7, 4), 3, true);
    for_all_searches([&](auto const& algorithm, auto options) {
        if constexpr (!ps::traits_of<std::remove_cvref_t<decltype(algorithm)>>.bounds) {
            std::mt19937_64 rng{4};
            std::uint64_t proposals = 0;
            auto const found = algorithm(problem, toys::strategy(7, 0), rng, options, search::on<search::proposed>([&](auto const&) {
                                             return ++proposals == 17 ? search::verdict::end : search::verdict::go_on;
                                         }),
                                         search::on<search::member_turn>([&](auto const& e) {
                                             return e.evaluation > 1 && proposals == 0 ? search::verdict::end : search::verdict::go_on;
                                         }));
            CHECK(found.reason == stop_reason::observer);
            CHECK(found.ended == stop_reason::observer);
            bool at_once = false;
            if constexpr (requires { options.concurrent; }) at_once = options.concurrent;
            CHECK(proposals == (at_once ? 0 : 17)); // none is told of members that run at once
            CHECK(problem.evaluator()(found.best) == found.cost);
        }
    });
    toys::splitmix draw{8};
    auto const additive = toys::random_additive<double>(draw, 7, 4);
    auto const ended = [&](auto const& algorithm, auto options) {
        std::mt19937_64 rng{4};
        auto const found =
            algorithm(additive, toys::strategy(7, 0), rng, options, search::on<search::proposed>([](auto const&) { return search::verdict::end; }));
        CHECK((found.reason == stop_reason::observer || found.lower_bound == found.cost)); // it may have had the proof then
        CHECK(found.stats.proposals == 1);
    };
    ended(search::exact, search::exact_options{});
    ended(search::dominator_dp, search::dominator_dp_options{});
}

TEST_CASE("grants of time, and grants that are of no use") {
    auto const problem = toys::table_problem<double>(toys::make_space(7, 4), 3, true);
    std::mt19937_64 rng{4};
    int asked = 0;
    auto const found =
        search::mcmc(problem, toys::strategy(7, 0), rng, {.time = std::chrono::nanoseconds{0}}, search::on<search::budget_spent>([&](auto const& e) {
                         CHECK(e.budget == stop_reason::time_budget);
                         return ++asked < 3 ? std::optional(search::extension{.time = std::chrono::milliseconds{2}}) : std::nullopt;
                     }));
    CHECK(asked == 3);
    CHECK(found.reason == stop_reason::time_budget);
    CHECK(found.stats.evaluations > 1);
    for (auto const useless : {search::extension{}, search::extension{.time = std::chrono::hours{1}}, search::extension{.evaluations = 0}}) {
        asked = 0;
        auto const ended = search::mcmc(problem, toys::strategy(7, 0), rng, {.evaluations = 20}, [&](search::budget_spent<double> const&) {
            ++asked;
            return useless;
        });
        CHECK(asked == 1);
        CHECK(ended.stats.evaluations == 20);
    }
}

TEST_CASE("where nothing feasible is found, that is the reason, whatever ended the search") {
    auto const table = toys::table_problem<double>(toys::make_space(3, 3), 3, true);
    even_only const some(table.space(), table.evaluator());
    toys::space only_odd = table.space();
    only_odd[0] = {1};
    even_only const none(only_odd, table.evaluator());
    auto const run = [](auto const& problem, auto const& algorithm, auto options, toys::strategy start) {
        options.evaluations = 100;
        std::mt19937_64 rng{1};
        return algorithm(problem, std::move(start), rng, options);
    };
    for_all_searches([&](auto const& algorithm, auto options) {
        if constexpr (!ps::traits_of<std::remove_cvref_t<decltype(algorithm)>>.bounds) {
            auto const found = run(none, algorithm, options, {1, 0, 0});
            CHECK(found.reason == stop_reason::nothing_feasible);
            CHECK(found.ended != stop_reason::nothing_feasible);
            CHECK(found.cost < std::numeric_limits<double>::infinity());
            auto const other = run(some, algorithm, options, {0, 0, 0});
            CHECK((other.reason == stop_reason::nothing_feasible) == !some.feasible(other.best));
            if (some.feasible(other.best)) CHECK(other.reason == other.ended);
        }
    });
    CHECK(run(search::with_moves(none, search::uniform_move{}), search::mcmc, search::mcmc_options{}, {1, 0, 0}).reason ==
          stop_reason::nothing_feasible);
}

TEST_CASE("searches say what they need") {
    static_assert(ps::traits_of<search::exact_fn>.bounds && ps::traits_of<search::dominator_dp_fn>.additive_costs);
    static_assert(!ps::traits_of<search::dominator_dp_fn>.start_matters && ps::traits_of<search::mcmc_fn>.start_matters);
    auto const mine = [](auto const& problem, auto const& start, auto& rng) { return search::mcmc(problem, start, rng); };
    static_assert(!ps::traits_of<decltype(mine)>.bounds && ps::traits_of<decltype(mine)>.start_matters); // what says nothing needs nothing
    using table = decltype(toys::table_problem<double>({}, 0, true));
    static_assert(search::runs_on<search::mcmc_fn, table, toys::strategy> && !search::runs_on<search::exact_fn, table, toys::strategy>);
    static_assert(search::runs_on<search::exact_fn, toys::additive_problem<double>, toys::strategy>);
}

TEST_CASE("a listener tells several observers, and answers for them") {
    int first = 0, second = 0;
    auto one = search::on<search::improved>([&](auto const&) { ++first; });
    auto two = [&](search::improved<int> const& e) {
        ++second;
        return e.cost == 0 ? search::verdict::end : search::verdict::go_on;
    };
    auto three = [](search::budget_spent<int> const&) { return std::optional(search::extension{.time = {}, .evaluations = 5}); };
    search::listener<search::improved<int>, search::budget_spent<int>, search::progress<int>> const all(one, two, three);
    CHECK(all(search::improved<int>{1, 3, 4}) == search::verdict::go_on);
    CHECK(all(search::improved<int>{1, 0, 3}) == search::verdict::end);
    CHECK(first == 2);
    CHECK(second == 2);
    CHECK(all(search::budget_spent<int>{stop_reason::evaluation_budget, {}, 0, {}})->evaluations == 5);
    // An extension will do where an optional one is asked for.
    auto plain = [](search::budget_spent<int> const&) { return search::extension{.time = {}, .evaluations = 7}; };
    CHECK(search::notify(search::budget_spent<int>{stop_reason::evaluation_budget, {}, 0, {}}, plain)->evaluations == 7);
    CHECK(all(search::progress<int>{{}, 0, 0}) == search::verdict::go_on); // nobody handles it
    static_assert(!std::is_invocable_v<decltype(all) const&, search::accepted<int> const&>);
}
