#include <parsearch/search/greedy.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include <doctest/doctest.h>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using namespace std::chrono_literals;
using ps::stop_reason;
using search::visit_order;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

namespace {
using table = decltype(toys::table_problem<double>({}, 0, true));
static_assert(ps::Searcher<search::greedy_fn, table, toys::strategy, std::mt19937>);

// A problem that says in which order to visit its operators.
struct ordered_problem {
    toys::space x;
    std::vector<std::size_t> visits;
    [[nodiscard]] toys::space const& space() const { return x; }
    [[nodiscard]] auto evaluator() const {
        return [](toys::strategy const& s) {
            int sum = 0;
            for (int const c : s) sum -= c;
            return sum;
        };
    }
    [[nodiscard]] std::vector<std::size_t> order() const { return visits; }
};

template <class P> bool local_optimum(P const& problem, toys::strategy s) {
    auto evaluate = problem.evaluator();
    auto const here = evaluate(s);
    for (std::size_t op = 0; op < s.size(); ++op) {
        int const kept = s[op];
        for (int const c : problem.space()[op]) {
            s[op] = c;
            if (evaluate(s) < here) return false;
        }
        s[op] = kept;
    }
    return true;
}

// The operators in the order in which they were first improved.
template <class P> std::vector<std::size_t> visited(P const& problem, std::uint64_t seed, search::greedy_options const& options) {
    toys::splitmix rng{seed};
    std::vector<std::size_t> order;
    search::greedy(problem, toys::strategy(problem.space().size(), 0), rng, options, [&](search::accepted<int> const& e) {
        if (std::find(order.begin(), order.end(), *e.op) == order.end()) order.push_back(*e.op);
    });
    return order;
}
} // namespace

TEST_CASE("greedy solves separable problems and finds local optima of others") {
    auto const check = [](auto kind) {
        using cost = decltype(kind);
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            toys::splitmix rng{seed};
            auto const separable = toys::table_problem<cost>(toys::make_space(6, 3, 3), seed, false);
            auto const best = search::greedy(separable, toys::strategy(6, 0), rng);
            CHECK(best.cost == toys::brute_force(separable));
            CHECK(best.cost == separable.evaluator()(best.best));
            CHECK(best.reason == stop_reason::exhausted);

            auto const coupled = toys::table_problem<cost>(toys::make_space(6, 3, 3), seed, true);
            for (auto const order : {visit_order::numbered, visit_order::shuffled}) {
                auto const r = search::greedy(coupled, toys::strategy(6, 0), rng, {.order = order});
                CHECK(local_optimum(coupled, r.best));
                CHECK(r.cost <= coupled.evaluator()(toys::strategy(6, 0)));
                CHECK(r.reason == stop_reason::exhausted);
                CHECK(r.stats.evaluations == r.stats.proposals + 1);
            }
        }
    };
    check(double{});
    check(int{});
    check(picoseconds{});
}

TEST_CASE("an operator at its best is not visited again before something changes") {
    toys::splitmix rng{1};
    ps::search_problem const one{toys::make_space(1, 10), [](toys::strategy const& s) { return -s[0]; }};
    auto const r = search::greedy(one, toys::strategy{0}, rng);
    CHECK(r.stats.evaluations == 10);
    CHECK(r.stats.improved == 9);

    // Only the last of three operators has something better: the first two are tried twice, the last once.
    ps::search_problem const last{toys::make_space(3, 4), [](toys::strategy const& s) { return s[0] + s[1] - s[2]; }};
    CHECK(search::greedy(last, toys::strategy{0, 0, 0}, rng).stats.evaluations == 1 + 5 * 3);
    CHECK(search::greedy(last, toys::strategy{0, 0, 3}, rng).stats.evaluations == 1 + 3 * 3);
}

TEST_CASE("the same seed gives the same run; golden trajectories") {
    auto const problem = toys::table_problem<double>(toys::make_space(12, 3, 4), 5, true);
    auto const run = [&](std::uint64_t seed) {
        std::mt19937_64 rng{seed};
        return search::greedy(problem, toys::strategy(12, 0), rng, {.candidates = 3, .order = visit_order::shuffled});
    };
    CHECK(toys::same_run(run(42), run(42)));
    CHECK(run(42).stats.trajectory != run(43).stats.trajectory);
    CHECK(run(42).stats.trajectory == 0xfe5894fc83a0d8a8);
    CHECK(run(42).cost == 623);
}

TEST_CASE("incremental and plain evaluators give the same run") {
    auto const problem = toys::table_problem<int>(toys::make_space(9, 5), 8, true);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        toys::asked counts;
        toys::splitmix a{seed}, b{seed};
        search::greedy_options const options{.candidates = 4, .order = visit_order::shuffled};
        auto const plain = search::greedy(problem, toys::strategy(9, 0), a, options);
        auto const stepped = search::greedy(toys::incremental(problem, counts), toys::strategy(9, 0), b, options);
        CHECK(toys::same_run(plain, stepped));
        CHECK(counts.above_bound > 0);
        CHECK(counts.whole == 0);
        CHECK(counts.resets == 1);
    }
}

TEST_CASE("orders") {
    ordered_problem const problem{toys::make_space(5, 3), {3, 1, 4, 0, 2}};
    CHECK(visited(problem, 1, {}) == problem.visits);
    CHECK(visited(problem, 1, {.order = visit_order::supplied}) == problem.visits);
    CHECK(visited(problem, 1, {.order = visit_order::numbered}) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    std::map<std::vector<std::size_t>, int> seen;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        auto order = visited(problem, seed, {.order = visit_order::shuffled});
        ++seen[order];
        std::sort(order.begin(), order.end());
        CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
    }
    CHECK(seen.size() > 20);

    CHECK_THROWS_WITH_AS(visited(ordered_problem{toys::make_space(2, 2), {0, 2}}, 1, {}),
                         "greedy: the problem's order lists operator number 2: the space has 2", ps::invalid_input);
    CHECK_THROWS_WITH_AS(visited(ordered_problem{toys::make_space(2, 2), {1, 1}}, 1, {}),
                         "greedy: the problem's order lists operator number 1 twice: must be once", ps::invalid_input);
    CHECK_THROWS_WITH_AS(visited(ordered_problem{toys::make_space(2, 2), {1}}, 1, {}),
                         "greedy: the problem's order lists 1 operators: the space has 2", ps::invalid_input);
    CHECK_THROWS_WITH_AS(visited(toys::table_problem<int>(toys::make_space(2, 2), 1, true), 1, {.order = visit_order::supplied}),
                         "greedy: option 'order' is supplied: the problem has no order()", ps::invalid_input);
}

TEST_CASE("more configurations than candidates: a uniform sample without replacement") {
    std::map<toys::strategy, int> pairs;
    toys::splitmix rng{8};
    int const runs = 10'000;
    for (int n = 0; n < runs; ++n) {
        toys::strategy tried;
        ps::search_problem const problem{toys::make_space(1, 5), [&](toys::strategy const& s) {
                                             tried.push_back(s[0]);
                                             return 1;
                                         }};
        auto const r = search::greedy(problem, toys::strategy{-1}, rng, {.candidates = 2}); // a start outside the space
        CHECK(r.reason == stop_reason::no_improvement);
        REQUIRE(tried.size() == 3);
        ++pairs[{tried[1], tried[2]}];
    }
    CHECK(pairs.size() == 10);
    for (auto const& [pair, count] : pairs) {
        CHECK(pair[0] < pair[1]);
        CHECK(std::abs(count - runs / 10.0) < 5 * std::sqrt(runs / 10.0));
    }
}

TEST_CASE("huge spaces end") {
    struct huge {
        [[nodiscard]] std::size_t size() const { return 20; }
        [[nodiscard]] std::span<int const> operator[](std::size_t) const { return numbers; }
        std::vector<int> numbers = [] {
            std::vector<int> all(100'000);
            for (std::size_t n = 0; n < all.size(); ++n) all[n] = static_cast<int>(n);
            return all;
        }();
    };
    ps::search_problem const problem{huge{}, [](toys::strategy const& s) {
                                         std::int64_t sum = 0;
                                         for (int const c : s) sum += c;
                                         return sum;
                                     }};
    toys::splitmix rng{8};
    auto const r = search::greedy(problem, toys::strategy(20, 99'999), rng);
    CHECK(r.reason == stop_reason::no_improvement);
    CHECK(r.cost < 20 * 10'000);
    CHECK(r.stats.evaluations < 100'000);
}

TEST_CASE("reasons to stop, and options out of range") {
    auto const problem = toys::table_problem<double>(toys::make_space(6, 4), 3, true);
    toys::strategy const start(6, 0);
    toys::splitmix rng{1};
    auto const run = [&](search::greedy_options const& options) { return search::greedy(problem, start, rng, options); };
    CHECK(run({.time = 0s}).reason == stop_reason::time_budget);
    CHECK(run({.time = 0s}).stats.evaluations == 1);
    CHECK(run({.evaluations = 7}).reason == stop_reason::evaluation_budget);
    CHECK(run({.evaluations = 7}).stats.evaluations == 7);
    std::stop_source source;
    source.request_stop();
    CHECK(run({.stop = source.get_token()}).reason == stop_reason::stop_requested);
    CHECK_THROWS_WITH_AS(run({.time = -1ns}), "greedy: option 'time' is -1 ns: must not be negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.candidates = 0}), "greedy: option 'candidates' is 0: must be at least 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.order = static_cast<visit_order>(9)}), "greedy: option 'order' is 9: must be numbered, shuffled or supplied",
                         ps::invalid_input);
}

TEST_CASE("infeasible starts") {
    double const infinity = std::numeric_limits<double>::infinity();
    ps::search_problem const problem{toys::make_space(2, 3), [&](toys::strategy const& s) { return s[0] == s[1] ? 5.0 - s[0] : infinity; }};
    toys::splitmix rng{1};
    auto const away = search::greedy(problem, toys::strategy{0, 2}, rng);
    CHECK(away.cost == 3.0);
    ps::search_problem const never{toys::make_space(2, 3), [&](toys::strategy const&) { return infinity; }};
    auto const stuck = search::greedy(never, toys::strategy{0, 2}, rng);
    CHECK(stuck.cost == infinity);
    CHECK(stuck.best == toys::strategy{0, 2});
    CHECK(stuck.ended == stop_reason::exhausted);
    CHECK(stuck.reason == stop_reason::nothing_feasible);
}

TEST_CASE("nothing to choose") {
    toys::splitmix rng{4};
    ps::search_problem const empty{toys::space{}, [](toys::strategy const&) { return 3; }};
    auto const none = search::greedy(empty, toys::strategy{}, rng);
    CHECK(none.reason == stop_reason::exhausted);
    CHECK(none.cost == 3);
    auto const single = search::greedy(toys::table_problem<int>(toys::make_space(5, 1), 1, true), toys::strategy(5, 0), rng);
    CHECK(single.reason == stop_reason::exhausted);
    CHECK(single.stats.proposals == 0);
    ps::search_problem const hole{toys::space{{0, 1}, {}}, [](toys::strategy const&) { return 3; }};
    CHECK_THROWS_WITH_AS(search::greedy(hole, toys::strategy{0, 0}, rng), "greedy: operator number 1 has 0 configurations: each needs at least one",
                         ps::invalid_input);
}

namespace {
// Eight operators in a row: each pair that differs costs 10; configuration 1 suits the first half, 2 the second, 0 none.
struct halves {
    std::vector<toys::strategy> known{toys::strategy(8, 1), toys::strategy(8, 2), toys::strategy(8, 1)};
    toys::space x = toys::make_space(8, 3);
    [[nodiscard]] toys::space const& space() const { return x; }
    [[nodiscard]] std::vector<toys::strategy> const& starts() const { return known; }
    [[nodiscard]] auto evaluator() const {
        return [](toys::strategy const& s) {
            int sum = 0;
            for (std::size_t op = 0; op < s.size(); ++op) {
                sum += s[op] == 0 ? 4 : (s[op] == 1) == (op < 4) ? 1 : 5;
                if (op > 0 && s[op] != s[op - 1]) sum += 10;
            }
            return sum;
        };
    }
};
} // namespace

TEST_CASE("construct joins parts of known strategies that no change of one operator reaches") {
    halves const problem;
    toys::strategy const start(8, 0);
    toys::splitmix rng{1};
    CHECK(search::greedy(problem, start, rng).cost == 32);
    auto const r = search::greedy(problem, start, rng, {.construct = true});
    CHECK(r.best == toys::strategy{1, 1, 1, 1, 2, 2, 2, 2});
    CHECK(r.cost == 18);
    CHECK(r.reason == stop_reason::exhausted);
    CHECK(r.cost == toys::brute_force(problem));
    // From the back the parts are others: then the first known strategy has to be right for the back.
    struct backwards : halves {
        [[nodiscard]] std::vector<std::size_t> order() const { return {7, 6, 5, 4, 3, 2, 1, 0}; }
    } from_behind;
    CHECK(search::greedy(from_behind, start, rng, {.construct = true}).cost == 24);
    std::swap(from_behind.known[0], from_behind.known[1]);
    std::vector<std::size_t> changed;
    auto const back = search::greedy(from_behind, start, rng, {.construct = true}, [&](search::accepted<int> const& e) { changed.push_back(*e.op); });
    CHECK(back.cost == 18);
    CHECK(changed == std::vector<std::size_t>{7, 4, 4}); // all to the first known strategy, from operator 4 on to the other, and that one back
    // The budget holds in the constructive pass too.
    CHECK(search::greedy(problem, start, rng, {.evaluations = 2, .construct = true}).stats.evaluations == 2);
    CHECK(search::greedy(problem, start, rng, {.evaluations = 2, .construct = true}).cost == 24);
}

TEST_CASE("construct never ends above the best known strategy, gives the same run again, with either kind of evaluator") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed ", seed);
        struct known_problem {
            decltype(toys::table_problem<int>({}, 0, true)) table;
            std::vector<toys::strategy> known;
            [[nodiscard]] auto const& space() const { return table.space(); }
            [[nodiscard]] auto evaluator() const { return table.evaluator(); }
            [[nodiscard]] auto const& starts() const { return known; }
        };
        auto const table = toys::table_problem<int>(toys::make_space(9, 5), seed, true);
        known_problem problem{table, {}};
        toys::splitmix draws{seed};
        auto evaluate = table.evaluator();
        int least = evaluate(toys::strategy(9, 0));
        for (int n = 0; n < 4; ++n) {
            toys::strategy s(9);
            for (auto& c : s) c = static_cast<int>(ps::uniform_index(draws, 5));
            least = std::min(least, evaluate(s));
            problem.known.push_back(s);
        }
        toys::splitmix a{seed}, b{seed}, c{seed};
        search::greedy_options const options{.candidates = 3, .construct = true};
        auto const r = search::greedy(problem, toys::strategy(9, 0), a, options);
        CHECK(r.cost <= least);
        CHECK(toys::same_run(r, search::greedy(problem, toys::strategy(9, 0), b, options)));

        // Without other strategies than the start it is a sweep like the others.
        toys::splitmix d{seed};
        CHECK(toys::same_run(search::greedy(table, toys::strategy(9, 0), c, options),
                             search::greedy(table, toys::strategy(9, 0), d, {.candidates = 3})));
    }
}

TEST_CASE("construct refuses a start of the problem that has another length") {
    halves problem;
    problem.known.push_back(toys::strategy(7, 0));
    toys::splitmix rng{1};
    CHECK_THROWS_WITH_AS(search::greedy(problem, toys::strategy(8, 0), rng, {.construct = true}),
                         "greedy: a start of the problem: the start has 7 configurations: the space has 8 operators", ps::invalid_input);
}

TEST_CASE("greedy visits groups of operators first, the coarsest level first, and then single operators") {
    halves const one_by_one; // from all 0 no change of one operator is better
    toys::strategy const start(8, 0);
    toys::grouped const problem(ps::search_problem{one_by_one.space(), one_by_one.evaluator()});
    toys::splitmix rng{1}, again{1};
    std::vector<std::size_t> changed;
    auto const r = search::greedy(problem, start, rng, {}, [&](search::accepted<int> const& e) { changed.push_back(e.op.value_or(99)); });
    CHECK(r.best == toys::strategy{1, 1, 1, 1, 2, 2, 2, 2});
    CHECK(r.reason == stop_reason::exhausted);
    CHECK(changed.size() == 3); // the first half to 1, the second to 1, and that on to 2
    CHECK(search::greedy(problem, start, again, {.coarse = false}).cost == 32);

    // Where single operators are left out nothing else is tried: two halves and four pairs, each with two other choices, and once more after a
    // change.
    toys::splitmix third{1};
    auto const groups = search::greedy(problem, start, third, {.single = false});
    CHECK(groups.best == r.best);
    CHECK(groups.reason == stop_reason::exhausted);
    CHECK(groups.stats.evaluations < r.stats.evaluations);
    // A problem without groups has nothing to visit then.
    CHECK(search::greedy(one_by_one, start, third, {.single = false}).stats.evaluations == 1);
    CHECK_THROWS_WITH_AS(search::greedy(problem, start, third, {.coarse = false, .single = false}),
                         "greedy: options 'coarse' and 'single' are false: one of them must be true", ps::invalid_input);
}

TEST_CASE("groups: budgets hold, the same seed gives the same run, plain and incremental evaluators agree") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        INFO("seed ", seed);
        auto const table = toys::table_problem<int>(toys::make_space(9, 5, 3), seed, true);
        toys::asked counts;
        search::greedy_options const options{.candidates = 1 + seed % 7, .single = seed % 2 == 0};
        toys::splitmix a{seed}, b{seed}, c{seed};
        auto const r = search::greedy(toys::grouped(table), toys::strategy(9, 0), a, options);
        CHECK(toys::same_run(r, search::greedy(toys::grouped(table), toys::strategy(9, 0), b, options)));
        CHECK(toys::same_run(r, search::greedy(toys::grouped(toys::incremental(table, counts)), toys::strategy(9, 0), c, options)));
        CHECK(r.cost == table.evaluator()(r.best));
        for (std::uint64_t evaluations = 1; evaluations < r.stats.evaluations; evaluations += 5) {
            auto limited = options;
            limited.evaluations = evaluations;
            toys::splitmix d{seed};
            auto const part = search::greedy(toys::grouped(table), toys::strategy(9, 0), d, limited);
            CHECK(part.stats.evaluations == evaluations);
            CHECK(part.reason == stop_reason::evaluation_budget);
            CHECK(part.cost >= r.cost);
        }
    }
}
