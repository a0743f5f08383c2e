#include <parsearch/search/mcmc.hpp>

#include <array>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using namespace std::chrono_literals;
using ps::stop_reason;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

namespace {
using search_type = decltype(toys::table_problem<double>({}, 0, true));
static_assert(ps::Searcher<search::mcmc_fn, search_type, toys::strategy, std::mt19937>);
static_assert(ps::Searcher<search::mcmc_fn, search_type, toys::strategy, std::mt19937_64>);

// The shares of accepted steps among all proposals that cost `step` more than the current strategy.
template <class C> double accepted_share(C step, double temperature) {
    ps::search_problem const problem{toys::make_space(1, 2), [step](toys::strategy const& s) { return s[0] ? C{C{} + step} : C{}; }};
    toys::splitmix rng{77};
    int up = 0, taken = 0;
    auto const above = [](auto const& e) { return e.cost && *e.cost > e.best; };
    search::mcmc(problem, toys::strategy{0}, rng, {.evaluations = 100'000, .temperature = temperature, .reset_interval = 0},
                 [&, at = C{}](auto const& e) mutable {
                     // From the low state only the high one is priced; above the bound there is no cost.
                     if constexpr (requires { e.cost.has_value(); }) {
                         if (at == C{} && (!e.cost || above(e))) ++up;
                     } else if constexpr (requires {
                                              e.move;
                                              e.best;
                                          }) {
                         if (at == C{}) ++taken;
                         at = e.cost;
                     }
                 });
    CHECK(up > 10'000);
    return static_cast<double>(taken) / up;
}
void check_share(double got, double expected) { CHECK(std::abs(got - expected) < 5 * std::sqrt(expected * (1 - expected) / 10'000)); }
} // namespace

TEST_CASE("mcmc finds the optimum of small problems, for costs of each kind") {
    auto const check = [](auto kind, bool coupled) {
        using cost = decltype(kind);
        auto const problem = toys::table_problem<cost>(toys::make_space(7, 3, 3), 21, coupled);
        std::mt19937_64 rng{42};
        auto const [best, least, bound, stats, why, ended] = search::mcmc(problem, toys::strategy(7, 0), rng, {.relative_temperature = 0.03});
        CHECK(least == toys::brute_force(problem));
        CHECK(least == problem.evaluator()(best));
        CHECK(!bound);
        CHECK(why == stop_reason::no_improvement);
        CHECK(ended == why);
        CHECK(stats.evaluations >= 1000);
        CHECK(stats.evaluations <= stats.proposals + 1);
    };
    for (bool const coupled : {false, true}) {
        check(double{}, coupled);
        check(float{}, coupled);
        check(int{}, coupled);
        check(picoseconds{}, coupled);
    }
}

TEST_CASE("the same seed gives the same run, another seed another") {
    auto const problem = toys::table_problem<double>(toys::make_space(10, 4), 1, true);
    auto const run = [&](auto rng) { return search::mcmc(problem, toys::strategy(10, 0), rng, {.evaluations = 2000}); };
    CHECK(toys::same_run(run(std::mt19937{7}), run(std::mt19937{7})));
    CHECK(toys::same_run(run(std::mt19937_64{7}), run(std::mt19937_64{7})));
    CHECK(run(std::mt19937_64{7}).stats.trajectory != run(std::mt19937_64{8}).stats.trajectory);
    CHECK(run(std::mt19937{7}).stats.trajectory != run(std::mt19937_64{7}).stats.trajectory);
}

TEST_CASE("golden trajectories") {
    auto const x = toys::make_space(12, 3, 4);
    auto const run = [&](auto kind, auto rng) {
        auto const problem = toys::table_problem<decltype(kind)>(x, 5, true);
        return search::mcmc(problem, toys::strategy(12, 0), rng,
                            {.evaluations = 5000, .relative_temperature = 0.02, .target_acceptance = std::nullopt, .reheat_interval = 0});
    };
    auto const a = run(double{}, std::mt19937_64{42});
    CHECK(a.stats.trajectory == 0xe79fb1f35794941c);
    CHECK(a.cost == 511);
    CHECK(a.stats.accepted == 385);
    auto const b = run(picoseconds{}, std::mt19937{42});
    CHECK(b.stats.trajectory == 0x9f47569276ab30d1);
    CHECK(b.cost == picoseconds{511});
    CHECK(b.stats.accepted == 452);
    auto const c = run(int{}, toys::splitmix{42});
    CHECK(c.stats.trajectory == 0x98903f074535791e);
    CHECK(c.cost == 511);
    CHECK(c.stats.accepted == 488);
}

TEST_CASE("a chain that is stuck is heated until it leaves") {
    // All 0 costs 100, all 1 costs 50, and everything between 110: no step of a cold chain leads out.
    ps::search_problem const problem{toys::make_space(4, 2), [](toys::strategy const& s) {
                                         auto const ones = std::count(s.begin(), s.end(), 1);
                                         return ones == 0 ? 100.0 : ones == 4 ? 50.0 : 110.0;
                                     }};
    auto const run = [&](std::uint64_t reheat_interval) {
        std::mt19937_64 rng{3};
        return search::mcmc(problem, toys::strategy(4, 0), rng,
                            {.evaluations = 5000, .target_acceptance = std::nullopt, .reheat_interval = reheat_interval})
            .cost;
    };
    CHECK(run(0) == 100);
    CHECK(run(search::mcmc_options{}.reheat_interval) == 50);
}

TEST_CASE("a step is accepted with Metropolis' probability") {
    check_share(accepted_share(1.0, 1.5), std::exp(-1.0 / 1.5));
    check_share(accepted_share(3, 1.5), std::exp(-2.0));
    check_share(accepted_share(picoseconds{250}, 100.0), std::exp(-2.5));
    CHECK(accepted_share(1.0, 0.0) == 0);
}

TEST_CASE("the chain visits strategies as Boltzmann's law says") {
    std::array<double, 4> const cost{0.0, 0.7, 1.1, 2.5};
    double const temperature = 0.9;
    ps::search_problem const problem{toys::make_space(1, 4), [&](toys::strategy const& s) { return cost[static_cast<std::size_t>(s[0])]; }};
    std::array<double, 4> visits{};
    std::size_t at = 3;
    toys::splitmix rng{5};
    auto const result = search::mcmc(
        problem, toys::strategy{3}, rng, {.evaluations = 300'000, .temperature = temperature, .reset_interval = 0},
        [&](search::proposed<double> const&) { ++visits[at]; },
        [&](search::accepted<double> const& e) {
            at = 0;
            while (cost[at] != e.cost) ++at;
        });
    double sum = 0;
    for (double const c : cost) sum += std::exp(-c / temperature);
    for (std::size_t n = 0; n < cost.size(); ++n)
        CHECK(visits[n] / static_cast<double>(result.stats.proposals) == doctest::Approx(std::exp(-cost[n] / temperature) / sum).epsilon(0.02));
}

TEST_CASE("incremental and plain evaluators give the same chain") {
    auto const problem = toys::table_problem<double>(toys::make_space(9, 4), 8, true);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        toys::asked counts;
        toys::splitmix a{seed}, b{seed};
        search::mcmc_options const options{.evaluations = 3000, .relative_temperature = 0.03, .reset_interval = 100};
        std::vector<std::optional<double>> plain_costs, stepped_costs;
        auto const plain =
            search::mcmc(problem, toys::strategy(9, 0), a, options, [&](search::proposed<double> const& e) { plain_costs.push_back(e.cost); });
        auto const stepped = search::mcmc(toys::incremental(problem, counts), toys::strategy(9, 0), b, options,
                                          [&](search::proposed<double> const& e) { stepped_costs.push_back(e.cost); });
        CHECK(toys::same_run(plain, stepped));
        CHECK(plain_costs == stepped_costs);
        CHECK(a() == b());
        CHECK(counts.above_bound > 100);
        CHECK(counts.whole == 0);
        CHECK(counts.resets > 1); // going back to the best
        CHECK(counts.proposals == 2999);
        CHECK(counts.commits + counts.roll_backs == 2999);
        CHECK(static_cast<std::uint64_t>(counts.commits) == stepped.stats.accepted);
    }
}

TEST_CASE("reasons to stop") {
    auto const problem = toys::table_problem<double>(toys::make_space(6, 4), 3, true);
    toys::strategy const start(6, 0);
    toys::splitmix rng{1};

    SUBCASE("evaluations") {
        for (std::uint64_t const n : {1u, 2u, 500u}) {
            auto const r = search::mcmc(problem, start, rng, {.evaluations = n});
            CHECK(r.reason == stop_reason::evaluation_budget);
            CHECK(r.stats.evaluations == n);
        }
    }
    SUBCASE("time") {
        auto const r = search::mcmc(problem, start, rng, {.time = 20ms});
        CHECK(r.reason == stop_reason::time_budget);
        CHECK(r.stats.seconds >= 0.02);
        CHECK(search::mcmc(problem, start, rng, {.time = 0s}).stats.evaluations == 1);
    }
    SUBCASE("time, with an evaluator that is slow") {
        ps::search_problem const slow{problem.space(), [](toys::strategy const& s) {
                                          std::this_thread::sleep_for(2ms);
                                          return s[0];
                                      }};
        auto const r = search::mcmc(slow, start, rng, {.time = 20ms});
        CHECK(r.reason == stop_reason::time_budget);
        CHECK(r.stats.evaluations <= 11);
    }
    SUBCASE("token") {
        std::stop_source source;
        auto const r = search::mcmc(problem, start, rng, {.stop = source.get_token()}, [&](search::proposed<double> const& e) {
            if (e.evaluation == 50) source.request_stop();
        });
        CHECK(r.reason == stop_reason::stop_requested);
        CHECK(r.stats.evaluations == 50);
    }
    SUBCASE("patience, on its own where there is no budget") {
        ps::search_problem const flat{problem.space(), [](toys::strategy const&) { return 1; }};
        auto const r = search::mcmc(flat, start, rng);
        CHECK(r.reason == stop_reason::no_improvement);
        CHECK(r.stats.evaluations == 1000 + 6 * 100);
        CHECK(search::mcmc(flat, start, rng, {.evaluations = 5000}).reason == stop_reason::evaluation_budget);
        auto const both = search::mcmc(flat, start, rng, {.evaluations = 5000, .patience = 0.5, .min_evaluations = 10});
        CHECK(both.reason == stop_reason::no_improvement);
        CHECK(both.stats.evaluations == 10);
    }
    SUBCASE("patience in time") {
        ps::search_problem const flat{problem.space(), [](toys::strategy const&) { return 1; }};
        auto const r = search::mcmc(flat, start, rng, {.evaluations = 100'000'000, .time_patience = 0.5, .min_evaluations = 10});
        CHECK(r.reason == stop_reason::no_improvement);
    }
}

TEST_CASE("options out of range are refused") {
    auto const problem = toys::table_problem<double>(toys::make_space(3, 3), 3, true);
    double const nan = std::numeric_limits<double>::quiet_NaN();
    toys::splitmix rng{1};
    auto const run = [&](search::mcmc_options const& options) { return search::mcmc(problem, toys::strategy(3, 0), rng, options); };
    CHECK_THROWS_WITH_AS(run({.time = -1s}), "mcmc: option 'time' is -1000000000 ns: must not be negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.evaluations = 0}), "mcmc: option 'evaluations' is 0: must be at least 1, the start is priced too", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.temperature = -2}), "mcmc: option 'temperature' is -2: must be finite and not negative", ps::invalid_input);
    CHECK_THROWS_AS(run({.temperature = nan}), ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.relative_temperature = 0}),
                         "mcmc: option 'relative_temperature' is 0 where 'target_acceptance' is 0.02: must be positive, since it is adapted by "
                         "factors; 'temperature' 0 accepts nothing worse",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.relative_temperature = std::numeric_limits<double>::infinity()}),
                         "mcmc: option 'relative_temperature' is inf: must be finite and not negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.patience = 1.5}), "mcmc: option 'patience' is 1.5: must be between 0 and 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.time_patience = -0.5}), "mcmc: option 'time_patience' is -0.5: must be between 0 and 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.patience = 0}),
                         "mcmc: option 'patience' is 0, and neither 'time', 'evaluations', 'stop' nor 'time_patience' is set: one of them "
                         "must end the search",
                         ps::invalid_input);
    CHECK(run({.evaluations = 5, .patience = 0}).reason == stop_reason::evaluation_budget);
    CHECK(rng.state != 1);
}

TEST_CASE("the interval of going back to the best") {
    auto const problem = toys::table_problem<double>(toys::make_space(8, 4), 3, true);
    auto const restarts_at = [&](search::mcmc_options options) {
        toys::splitmix rng{1};
        std::vector<std::uint64_t> at;
        std::uint64_t proposals = 0;
        options.temperature = 1e6;
        search::mcmc(problem, toys::strategy(8, 0), rng, options, search::on<search::proposed>([&](auto const&) { ++proposals; }),
                     search::on<search::restarted>([&](auto const&) { at.push_back(proposals); }));
        return at;
    };
    auto const check = [&](search::mcmc_options const& options, std::uint64_t interval) {
        auto const at = restarts_at(options);
        CHECK(!at.empty());
        for (auto const n : at) CHECK(n % interval == 0);
        CHECK(at.size() >= 2);
        CHECK(at[1] - at[0] == interval);
    };
    check({.evaluations = 50}, 1);         // a budget below 100
    check({.evaluations = 2000}, 20);      // a hundredth
    check({.evaluations = 200'000}, 1000); // at most 1000
    check({.evaluations = 2000, .reset_interval = 37}, 37);
    check({.patience = 0.9, .min_evaluations = 9000}, 100); // no budget of evaluations
    CHECK(restarts_at({.evaluations = 2000, .reset_interval = 0}).empty());
}

TEST_CASE("infeasible costs") {
    // Feasible only where all operators agree on 1 or 2; 2 is better.
    auto const feasibility = [](auto kind) {
        using cost = decltype(kind);
        return ps::search_problem{toys::make_space(3, 3), [](toys::strategy const& s) {
                                      bool const feasible = s[0] == s[1] && s[1] == s[2] && s[0] > 0;
                                      return feasible ? toys::cost_of<cost>(10 - s[0]) : ps::cost_traits<cost>::infinity();
                                  }};
    };
    auto const check = [&](auto kind) {
        using cost = decltype(kind);
        auto const problem = feasibility(kind);
        toys::splitmix rng{4};
        auto const r = search::mcmc(problem, toys::strategy{0, 1, 2}, rng, {.evaluations = 2000});
        CHECK(r.cost < ps::cost_traits<cost>::infinity());

        // No temperature makes a feasible chain infeasible.
        bool was_feasible = false, left = false;
        search::mcmc(problem, toys::strategy{0, 1, 2}, rng, {.evaluations = 2000, .temperature = 1e300}, [&](search::accepted<cost> const& e) {
            bool const feasible = e.cost < ps::cost_traits<cost>::infinity();
            left = left || (was_feasible && !feasible);
            was_feasible = feasible;
        });
        CHECK(was_feasible);
        CHECK(!left);
    };
    check(double{});
    check(int{});
    check(picoseconds{});

    ps::search_problem const never{toys::make_space(3, 3), [](toys::strategy const&) { return std::numeric_limits<double>::infinity(); }};
    toys::splitmix rng{4};
    auto const r = search::mcmc(never, toys::strategy{0, 1, 2}, rng);
    CHECK(r.ended == stop_reason::no_improvement);
    CHECK(r.reason == stop_reason::nothing_feasible);
    CHECK(r.cost == std::numeric_limits<double>::infinity());
    CHECK(r.best == toys::strategy{0, 1, 2});
}

TEST_CASE("negative costs have a relative temperature too") {
    ps::search_problem const problem{toys::make_space(4, 5), [](toys::strategy const& s) { return -100.0 - s[0] + s[1] - s[2] + s[3]; }};
    toys::splitmix rng{4};
    auto const r = search::mcmc(problem, toys::strategy(4, 2), rng, {.evaluations = 2000});
    CHECK(r.cost == -108.0);
    CHECK(r.stats.accepted > r.stats.improved); // some steps up
}

TEST_CASE("nothing to choose") {
    toys::splitmix rng{4};
    ps::search_problem const empty{toys::space{}, [](toys::strategy const&) { return 3; }};
    auto const none = search::mcmc(empty, toys::strategy{}, rng);
    CHECK(none.reason == stop_reason::exhausted);
    CHECK(none.cost == 3);
    CHECK(none.stats.evaluations == 1);

    auto const fixed = toys::table_problem<int>(toys::make_space(5, 1), 1, true);
    auto const single = search::mcmc(fixed, toys::strategy(5, 0), rng, {.evaluations = 100});
    CHECK(single.reason == stop_reason::exhausted);
    CHECK(single.stats.proposals == 0);

    ps::search_problem const hole{toys::space{{0, 1}, {}}, [](toys::strategy const&) { return 3; }};
    CHECK_THROWS_WITH_AS(search::mcmc(hole, toys::strategy{0, 0}, rng), "mcmc: operator number 1 has 0 configurations: each needs at least one",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(search::mcmc(empty, toys::strategy{0, 0}, rng), "mcmc: the start has 2 configurations: the space has 0 operators",
                         ps::invalid_input);
}

TEST_CASE("proposals that change nothing are counted, not priced") {
    auto const problem = toys::table_problem<int>(toys::make_space(4, 2), 1, true);
    toys::splitmix rng{4};
    auto const r = search::mcmc(problem, toys::strategy(4, 0), rng, {.evaluations = 10'001});
    CHECK(std::abs(static_cast<double>(r.stats.proposals) - 20'000) < 5 * std::sqrt(20'000.0));
}

namespace {
// A problem that offers strategies to start from.
struct with_starts {
    decltype(toys::table_problem<double>({}, 0, true)) inner;
    std::vector<toys::strategy> offered;
    toys::space const& space() const { return inner.space(); }
    auto evaluator() const { return inner.evaluator(); }
    std::vector<toys::strategy> const& starts() const { return offered; }
};
struct priced_starts {
    std::vector<double> costs, proposed, returned_to;
    std::vector<std::uint64_t> returned_after;
    std::uint64_t proposals = 0;
    void operator()(search::started<double> const& e) {
        CHECK(e.start == costs.size());
        CHECK(e.evaluation == costs.size() + 1);
        costs.push_back(e.cost);
    }
    void operator()(search::proposed<double> const&) { ++proposals; }
    void operator()(search::restarted<double> const& e) {
        returned_to.push_back(e.best);
        returned_after.push_back(proposals);
    }
};
} // namespace

TEST_CASE("several starts are priced in order, once each") {
    auto const table = toys::table_problem<double>(toys::make_space(6, 4), 3, true);
    toys::strategy const given(6, 0), ones(6, 1), twos(6, 2);
    with_starts const problem{table, {ones, given, twos, ones}};
    auto const cost = table.evaluator();
    toys::splitmix rng{1}, same{1};
    priced_starts told, alone;
    auto const r = search::mcmc(problem, given, rng, {.evaluations = 3}, told);
    CHECK(told.costs == std::vector{cost(given), cost(ones), cost(twos)});
    CHECK(r.stats.evaluations == 3);
    CHECK(r.stats.proposals == 0);
    CHECK(r.cost == *std::min_element(told.costs.begin(), told.costs.end()));
    CHECK(r.cost == cost(r.best));
    CHECK(search::mcmc(problem, given, same, {.evaluations = 2}).stats.evaluations == 2); // the budget holds while starts are priced

    search::mcmc(problem, given, rng, {.evaluations = 50, .problem_starts = false}, alone);
    CHECK(alone.costs.empty());

    priced_starts random;
    search::mcmc(problem, given, rng, {.evaluations = 200, .random_starts = 4}, random);
    CHECK(random.costs.size() == 7);
    // Through a problem with other moves, and of another type than the start.
    priced_starts through;
    search::mcmc(search::with_moves(problem, search::uniform_move{}), given, rng, {.evaluations = 50}, through);
    CHECK(through.costs.size() == 3);
}

TEST_CASE("starts race: each has its part of a round, the better half goes on") {
    auto const table = toys::table_problem<double>(toys::make_space(6, 4), 3, true);
    with_starts const problem{table, {toys::strategy(6, 1), toys::strategy(6, 2), toys::strategy(6, 3)}};
    toys::splitmix rng{1};
    priced_starts told;
    // Cold, and no returns: a chain never gets worse, and every event `restarted` is a change of chains.
    search::mcmc(problem, toys::strategy(6, 0), rng,
                 {.evaluations = 2000, .temperature = 0, .reset_interval = 0, .race_length = 80, .racing_starts = 0}, told);
    REQUIRE(told.costs.size() == 4);
    REQUIRE(told.returned_after.size() == 6);
    CHECK(told.returned_after == std::vector<std::uint64_t>{20, 40, 60, 80, 120, 160});
    // The second, third and fourth start, then the best of the round in order, then the winner.
    CHECK(std::vector(told.returned_to.begin(), told.returned_to.begin() + 3) == std::vector(told.costs.begin() + 1, told.costs.end()));
    CHECK(told.returned_to[3] <= told.returned_to[4]);
    CHECK(told.returned_to[3] <= *std::min_element(told.costs.begin(), told.costs.end()));
    CHECK(told.returned_to[5] <= told.returned_to[3]);
}

TEST_CASE("starts race: the three cheapest do, in order of their cost") {
    auto const table = toys::table_problem<double>(toys::make_space(6, 8), 3, true);
    std::vector<toys::strategy> offered;
    for (int n = 1; n < 8; ++n) offered.push_back(toys::strategy(6, n));
    with_starts const problem{table, offered};
    for (std::size_t const racing : {1u, 2u, 3u, 8u}) {
        CAPTURE(racing);
        toys::splitmix rng{1};
        priced_starts told;
        search::mcmc(problem, toys::strategy(6, 0), rng,
                     {.evaluations = 500, .temperature = 0, .reset_interval = 0, .race_length = 240, .racing_starts = racing}, told);
        REQUIRE(told.costs.size() == 8);
        auto cheapest = told.costs;
        if (racing < cheapest.size()) std::ranges::sort(cheapest); // all of them race in the order in which they were priced
        // The first is gone to before the first proposal where it need not be the given one, and each other after its part of the round.
        std::size_t const first = racing < cheapest.size() ? 0 : 1;
        REQUIRE(told.returned_to.size() >= racing - first);
        for (std::size_t n = first; n < racing; ++n) {
            CHECK(told.returned_to[n - first] == cheapest[n]);
            CHECK(told.returned_after[n - first] == n * (240 / racing));
        }
    }
}

TEST_CASE("a good start that the problem offers is found") {
    // Every step from anywhere but the hidden strategy leads nowhere.
    toys::strategy const hidden{3, 1, 4, 1, 5, 9};
    struct {
        toys::space x = toys::make_space(6, 10);
        toys::strategy offered;
        toys::space const& space() const { return x; }
        auto evaluator() const {
            return [this](toys::strategy const& s) { return s == offered ? 1.0 : 2.0; };
        }
        std::vector<toys::strategy> starts() const { return {offered}; }
    } const problem{.offered = hidden};
    toys::splitmix rng{1};
    CHECK(search::mcmc(problem, toys::strategy(6, 0), rng, {.evaluations = 100}).best == hidden);
    CHECK(search::mcmc(problem, toys::strategy(6, 0), rng, {.evaluations = 100, .problem_starts = false}).cost == 2);
}

TEST_CASE("the temperature follows the target acceptance") {
    auto const problem = toys::table_problem<double>(toys::make_space(40, 8), 3, true);
    for (double const target : {0.1, 0.3, 0.6}) {
        for (double const first : {1e-6, 1.0}) {
            toys::splitmix rng{1};
            std::uint64_t worse = 0, taken = 0, proposals = 0;
            double current = problem.evaluator()(toys::strategy(40, 0));
            std::optional<double> asked;
            search::mcmc(problem, toys::strategy(40, 0), rng,
                         {.evaluations = 60'000, .relative_temperature = first, .target_acceptance = target, .reset_interval = 0},
                         search::on<search::proposed>([&](auto const& e) {
                             asked = e.cost;
                             if (++proposals > 10'000 && (!e.cost || *e.cost > current)) ++worse;
                         }),
                         search::on<search::accepted>([&](auto const& e) {
                             if (proposals > 10'000 && e.cost > current) ++taken;
                             current = e.cost;
                         }));
            CAPTURE(target);
            CAPTURE(first);
            CHECK(static_cast<double>(taken) / static_cast<double>(worse) == doctest::Approx(target).epsilon(0.1));
        }
    }
}

TEST_CASE("options of starts and temperature out of range are refused") {
    auto const problem = toys::table_problem<double>(toys::make_space(3, 3), 3, true);
    toys::splitmix rng{1};
    auto const run = [&](search::mcmc_options const& options) { return search::mcmc(problem, toys::strategy(3, 0), rng, options); };
    CHECK_THROWS_WITH_AS(run({.target_acceptance = 1.5}), "mcmc: option 'target_acceptance' is 1.5: must be between 0 and 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.race_length = 0}), "mcmc: option 'race_length' is 0: must be at least 1", ps::invalid_input);
    with_starts const wrong{problem, {toys::strategy(2, 0)}};
    CHECK_THROWS_WITH_AS(search::mcmc(wrong, toys::strategy(3, 0), rng), "mcmc: the start has 2 configurations: the space has 3 operators",
                         ps::invalid_input);
}
