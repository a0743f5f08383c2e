#include <parsearch/search/budgeted_cost.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/portfolio.hpp>

#include "support/cases.hpp"
#include "support/least_of_all.hpp"
#include "support/toys.hpp"

namespace ps = parsearch;
namespace additive = ps::search::additive;
using ps::search::additive_cost, ps::search::budgeted_cost, ps::search::budgeted_problem, ps::search::dominator_dp, ps::search::numbered_strategy;

static_assert(ps::BudgetedEvaluator<budgeted_cost<std::int64_t>, numbered_strategy, std::uint32_t>);
static_assert(ps::TabledEvaluator<budgeted_cost<std::int64_t>, numbered_strategy, std::uint32_t>);
static_assert(!ps::BudgetedEvaluator<additive_cost<std::int64_t>, numbered_strategy, std::uint32_t>);
static_assert(ps::SearchProblem<budgeted_problem<ps::picoseconds>, numbered_strategy>);
static_assert(ps::search::has_additive_costs<budgeted_problem<ps::picoseconds>, numbered_strategy>);
// A price on memory needs whole numbers: a portfolio does without the exact search.
static_assert(!ps::search::has_additive_costs<budgeted_problem<double>, numbered_strategy>);

namespace {

std::size_t below(toys::splitmix& rng, std::size_t n) { return static_cast<std::size_t>(ps::uniform_index(rng, n)); }

/// Costs and memory at random: both of few values, of many, or the memory as the cost demands.
struct drawing {
    std::int64_t largest_cost = 100, least_cost = 0;
    ps::byte_count largest_memory = 100;
    std::size_t operators = 6, configurations = 4;
    bool infinite = false, dense = false;
};

template <class C> budgeted_problem<C> random_problem(drawing const& d, toys::splitmix& rng) {
    auto const cost = [&] {
        if (d.infinite && below(rng, 8) == 0) return ps::cost_traits<C>::infinity();
        auto const span = static_cast<std::size_t>(d.largest_cost - d.least_cost) + 1;
        return C(static_cast<std::int64_t>(below(rng, span)) + d.least_cost);
    };
    std::vector<std::vector<C>> own(d.operators);
    std::vector<std::vector<ps::byte_count>> memory(d.operators);
    ps::byte_count least = 0, most = 0;
    for (std::size_t op = 0; op < d.operators; ++op) {
        for (std::size_t n = 0, size = 1 + below(rng, d.configurations); n < size; ++n) {
            own[op].push_back(cost());
            memory[op].push_back(static_cast<ps::byte_count>(below(rng, static_cast<std::size_t>(d.largest_memory) + 1)));
        }
        least += *std::ranges::min_element(memory[op]);
        most += *std::ranges::max_element(memory[op]);
    }
    std::vector<ps::operator_pair> edges;
    for (std::size_t b = 1; b < d.operators; ++b)
        for (std::size_t a = 0; a < b; ++a)
            if (below(rng, d.dense ? 2 : b) == 0) edges.push_back(below(rng, 2) ? ps::operator_pair{a, b} : ps::operator_pair{b, a});
    std::vector<std::vector<C>> of_edges;
    for (auto const& e : edges) {
        auto& t = of_edges.emplace_back();
        for (std::size_t n = 0; n < own[e.from].size() * own[e.to].size(); ++n) t.push_back(cost());
    }
    // From somewhat less than anything takes to somewhat more than everything does.
    auto const budget = std::max<ps::byte_count>(0, least - 3 + static_cast<ps::byte_count>(below(rng, static_cast<std::size_t>(most - least) + 7)));
    return budgeted_problem<C>(budgeted_cost<C>({std::move(own), std::move(edges), std::move(of_edges)}, std::move(memory), budget));
}

template <class C> void check_random(drawing const& d, std::uint64_t seed, std::uint64_t count) {
    for (std::uint64_t n = 0; n < count; ++n) {
        CAPTURE(seed);
        CAPTURE(n);
        toys::splitmix rng{seed + n};
        auto const problem = random_problem<C>(d, rng);
        auto const least = support::least_of_all(problem);
        auto const found = dominator_dp(problem, problem.first(), rng);
        support::require_proved(problem, found, least);
        REQUIRE((found.reason == ps::stop_reason::nothing_feasible) == (least == ps::cost_traits<C>::infinity()));
    }
}

additive::cost_tables<std::int64_t> tables_of(budgeted_problem<std::int64_t> const& problem) {
    auto costs = problem.evaluator();
    return additive::read_tables<numbered_strategy>(problem.space(), costs, "test");
}
additive::memory_limit limit_of(budgeted_problem<std::int64_t> const& problem) {
    additive::memory_limit out{{}, problem.costs().memory_budget()};
    for (std::size_t op = 0; op < problem.costs().size(); ++op) {
        auto& of = out.memory.emplace_back();
        for (std::uint32_t c = 0; c < problem.space()[op].size(); ++c) of.push_back(problem.costs().operator_memory(op, c));
    }
    return out;
}

} // namespace

TEST_CASE("a strategy above the budget costs infinity, others what they cost") {
    budgeted_problem<int> const problem({additive_cost<int>({{1, 2}, {10, 20}}, {{0, 1}}, {{100, 200, 300, 400}}), {{5, 1}, {7, 0}}, 8});
    auto const costs = problem.evaluator();
    CHECK(costs(numbered_strategy{0, 0}) == std::numeric_limits<int>::max()); // 12 bytes
    CHECK(costs(numbered_strategy{1, 0}) == 312);                             // 8
    CHECK(costs(numbered_strategy{0, 1}) == 221);                             // 5
    CHECK(costs.memory_of(numbered_strategy{0, 0}) == 12);
    CHECK(costs.operator_memory(1, 0) == 7);
    CHECK(costs.memory_budget() == 8);
    CHECK(costs.operator_cost(0, 0) == 1);
    CHECK(problem.first() == numbered_strategy{0, 0});
    toys::splitmix rng{1};
    auto const found = dominator_dp(problem, problem.first(), rng);
    CHECK(found.best == numbered_strategy{0, 1});
    CHECK(found.cost == 221);
    CHECK(found.lower_bound == 221);
    CHECK(found.reason == ps::stop_reason::proved_optimal);
}

TEST_CASE("memory that does not fit the tables is refused") {
    additive_cost<int> const costs({{1, 2}, {10, 20}}, {}, {});
    auto const make = [&](std::vector<std::vector<ps::byte_count>> memory, ps::byte_count budget) {
        budgeted_cost<int>(costs, std::move(memory), budget);
    };
    CHECK_THROWS_WITH_AS(make({{1, 1}}, 1), "budgeted_cost: memory of 1 operators: must be of 2", ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({{1, 1}, {1}}, 1), "budgeted_cost: memory of 1 configurations of operator number 1: must be of 2", ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({{1, 1}, {1, -1}}, 1),
                         "budgeted_cost: configuration number 1 of operator number 1 takes -1 bytes: must be from 0 to 2^50", ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({{1, (ps::byte_count{1} << 50) + 1}, {1, 1}}, 1),
                         "budgeted_cost: configuration number 1 of operator number 0 takes 1125899906842625 bytes: must be from 0 to 2^50",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({{1, 1}, {1, 1}}, -1), "budgeted_cost: the budget is -1 bytes: must not be negative", ps::invalid_input);
    budgeted_cost<int> const fine(costs, {{1, 1}, {1, 1}}, 0);
    CHECK_THROWS_WITH_AS((void)fine.operator_memory(0, 2),
                         "additive_cost: configuration number 2 of operator number 0: must be below 2, the size of its table", ps::invalid_input);
}

TEST_CASE("the answer is the least of all strategies that keep the budget") {
    check_random<std::int64_t>({}, 1'000, support::cases(1500u));
    check_random<std::int64_t>({.dense = true}, 10'000, support::cases(500u));
    check_random<std::int64_t>({.largest_cost = 3, .largest_memory = 3, .operators = 8, .configurations = 3}, 20'000, support::cases(500u));
    check_random<std::int64_t>({.largest_cost = 1'000'000'000, .least_cost = -1'000'000'000, .largest_memory = 1'000'000'000}, 30'000,
                               support::cases(500u));
    check_random<std::int64_t>({.infinite = true}, 40'000, support::cases(500u));
    check_random<std::int64_t>({.infinite = true, .dense = true}, 50'000, support::cases(500u));
    check_random<ps::picoseconds>({.largest_memory = 1, .operators = 9, .configurations = 3}, 60'000, support::cases(200u));
    // Prices far below one a byte, which rounding makes nothing of.
    check_random<std::int64_t>({.largest_cost = 2, .largest_memory = 400}, 65'000, support::cases(3000u));
    check_random<std::int64_t>({.largest_cost = 1, .largest_memory = 20, .operators = 5, .configurations = 4}, 75'000, support::cases(3000u));
    // Sums of 8-bit integers that are finite, and sums that no double holds.
    check_random<std::int8_t>({.largest_cost = 4, .least_cost = -4, .operators = 5}, 70'000, support::cases(300u));
    check_random<std::int64_t>(
        {.largest_cost = std::int64_t{1} << 54, .least_cost = -(std::int64_t{1} << 54), .largest_memory = ps::byte_count{1} << 49}, 80'000,
        support::cases(500u));
}

TEST_CASE("with too few labels what is found is feasible, and the bound holds") {
    std::size_t complete = 0, cut = 0;
    for (std::uint64_t n = 0; n < support::cases(300u); ++n) {
        CAPTURE(n);
        toys::splitmix rng{n};
        auto const problem = random_problem<std::int64_t>({.largest_cost = 10'000, .operators = 8, .configurations = 4, .dense = true}, rng);
        auto const least = support::least_of_all(problem);
        auto const tables = tables_of(problem);
        auto const limit = limit_of(problem);
        std::int64_t best = std::numeric_limits<std::int64_t>::max();
        auto bound = std::numeric_limits<std::int64_t>::min();
        bool const all = additive::minimise_within(tables, limit, 0,
                                                   {.found =
                                                        [&](std::span<std::uint32_t const> s) {
                                                            auto const cost = problem.costs()(numbered_strategy(s.begin(), s.end()));
                                                            REQUIRE(cost < best);
                                                            best = cost;
                                                        },
                                                    .bound =
                                                        [&](std::int64_t b) {
                                                            REQUIRE(b > bound);
                                                            bound = b;
                                                        },
                                                    .stop = [](additive::phase) { return false; }});
        REQUIRE(best >= least);
        REQUIRE(bound <= least);
        if (all) REQUIRE(best == least);
        ++(all ? complete : cut);
    }
    CHECK(complete > 0);
    CHECK(cut > 0);
}

TEST_CASE("a chain of equal layers agrees with a table over its memory") {
    for (std::uint64_t seed = 0; seed < support::cases(40u); ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        std::size_t const layers = 40, of_layer = 1 + below(rng, 3), configurations = 3;
        std::vector<std::vector<std::int64_t>> own, of_edges;
        std::vector<std::vector<ps::byte_count>> memory;
        std::vector<ps::operator_pair> edges;
        for (std::size_t op = 0; op < layers * of_layer; ++op) {
            if (op >= of_layer) {
                own.push_back(own[op - of_layer]);
                memory.push_back(memory[op - of_layer]);
            } else {
                own.emplace_back();
                memory.emplace_back();
                for (std::size_t c = 0; c < configurations; ++c) {
                    own.back().push_back(static_cast<std::int64_t>(below(rng, 1000)));
                    memory.back().push_back(static_cast<ps::byte_count>(below(rng, 30)));
                }
            }
            if (op == 0) continue;
            edges.push_back({op - 1, op});
            if (op > of_layer) {
                of_edges.push_back(of_edges[op - 1 - of_layer]);
            } else {
                of_edges.emplace_back();
                for (std::size_t n = 0; n < configurations * configurations; ++n)
                    of_edges.back().push_back(static_cast<std::int64_t>(below(rng, 500)));
            }
        }
        auto const budget = static_cast<ps::byte_count>(10 * layers * of_layer);
        // The least cost by the last choice and the bytes so far.
        constexpr auto none = std::numeric_limits<std::int64_t>::max();
        std::vector<std::vector<std::int64_t>> least(configurations, std::vector<std::int64_t>(static_cast<std::size_t>(budget) + 1, none));
        for (std::size_t op = 0; op < own.size(); ++op) {
            std::vector<std::vector<std::int64_t>> next(configurations, std::vector<std::int64_t>(static_cast<std::size_t>(budget) + 1, none));
            for (std::size_t c = 0; c < configurations; ++c)
                for (auto bytes = static_cast<std::size_t>(memory[op][c]); bytes < next[c].size(); ++bytes) {
                    auto const before = bytes - static_cast<std::size_t>(memory[op][c]);
                    if (op == 0) next[c][bytes] = own[op][c];
                    else
                        for (std::size_t b = 0; b < configurations; ++b)
                            if (least[b][before] < none)
                                next[c][bytes] = std::min(next[c][bytes], least[b][before] + own[op][c] + of_edges[op - 1][b * configurations + c]);
                }
            least = std::move(next);
        }
        std::int64_t expected = none;
        for (auto const& of : least) expected = std::min(expected, *std::ranges::min_element(of));
        budgeted_problem<std::int64_t> const problem({{std::move(own), std::move(edges), std::move(of_edges)}, std::move(memory), budget});
        auto const found = dominator_dp(problem, problem.first(), rng);
        REQUIRE(found.cost == expected);
        REQUIRE(found.lower_bound == expected);
    }
}

TEST_CASE("operators that all depend on each other agree with a knapsack, where the choices at the open end fit no number") {
    for (std::uint64_t seed = 0; seed < support::cases(24u); ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        std::size_t const operators = 24, configurations = 12;
        auto const largest = 3 + below(rng, 2000), bytes = 3 + below(rng, 300);
        std::vector<std::vector<std::int64_t>> own(operators);
        std::vector<std::vector<ps::byte_count>> memory(operators);
        ps::byte_count budget = 0;
        for (std::size_t op = 0; op < operators; ++op) {
            for (std::size_t c = 0; c < configurations; ++c) {
                own[op].push_back(static_cast<std::int64_t>(below(rng, largest)));
                memory[op].push_back(static_cast<ps::byte_count>(below(rng, bytes)));
            }
            budget += *std::ranges::min_element(memory[op]) + static_cast<ps::byte_count>(below(rng, bytes / 3));
        }
        std::vector<std::int64_t> least(static_cast<std::size_t>(budget) + 1, 0);
        for (std::size_t op = 0; op < operators; ++op) {
            std::vector<std::int64_t> next(least.size(), std::numeric_limits<std::int64_t>::max());
            for (std::size_t c = 0; c < configurations; ++c)
                for (auto b = static_cast<std::size_t>(memory[op][c]); b < next.size(); ++b)
                    if (auto const before = least[b - static_cast<std::size_t>(memory[op][c])]; before < std::numeric_limits<std::int64_t>::max())
                        next[b] = std::min(next[b], before + own[op][c]);
            least = std::move(next);
        }
        std::vector<ps::operator_pair> edges;
        for (std::size_t b = 1; b < operators; ++b)
            for (std::size_t a = 0; a < b; ++a) edges.push_back({a, b});
        std::vector<std::vector<std::int64_t>> const nothing(edges.size(), std::vector<std::int64_t>(configurations * configurations, 0));
        budgeted_problem<std::int64_t> const problem({{std::move(own), std::move(edges), nothing}, std::move(memory), budget});
        // Little memory, so that labels are thinned out within a step.
        auto const found = dominator_dp(problem, problem.first(), rng, {.memory = std::uint64_t{1} << 20});
        REQUIRE(found.cost >= least.back());
        REQUIRE(*found.lower_bound <= least.back());
        if (found.ended == ps::stop_reason::proved_optimal) REQUIRE(found.cost == least.back());
    }
}

TEST_CASE("costs that a price all but cancels are told apart") {
    for (std::uint64_t seed = 0; seed < support::cases(300u); ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        auto const each = std::int64_t{1} << (44 + below(rng, 7)); // what a byte saves
        std::vector<std::vector<std::int64_t>> own(3 + below(rng, 4));
        std::vector<std::vector<ps::byte_count>> memory(own.size());
        ps::byte_count most = 0;
        for (std::size_t op = 0; op < own.size(); ++op) {
            for (std::size_t c = 0, size = 2 + below(rng, 3); c < size; ++c) {
                memory[op].push_back(static_cast<ps::byte_count>(below(rng, 100)));
                own[op].push_back(-each * memory[op].back() + static_cast<std::int64_t>(below(rng, 1000)));
            }
            most += *std::ranges::max_element(memory[op]);
        }
        auto const budget = static_cast<ps::byte_count>(below(rng, static_cast<std::size_t>(most) + 1));
        budgeted_problem<std::int64_t> const problem({{std::move(own), {}, {}}, std::move(memory), budget});
        auto const found = dominator_dp(problem, problem.first(), rng);
        REQUIRE(found.cost == support::least_of_all(problem));
        REQUIRE(found.ended == ps::stop_reason::proved_optimal);
    }
}

TEST_CASE("a price that rounding makes nothing of proves nothing") {
    budgeted_problem<int> const problem(
        {additive_cost<int>({{0, 0}, {1, 1}, {1, 1, 0}, {1, 1, 1}}, {}, {}), {{8, 5}, {8, 8}, {9, 12, 16}, {19, 11, 6}}, 35});
    toys::splitmix rng{1};
    auto const found = dominator_dp(problem, problem.first(), rng);
    CHECK(found.cost == support::least_of_all(problem));
    CHECK(found.ended == ps::stop_reason::proved_optimal);
}

TEST_CASE("time ends what no table can hold") {
    toys::splitmix rng{1};
    std::vector<std::vector<std::int64_t>> own(100), of_edges;
    std::vector<std::vector<ps::byte_count>> memory(own.size());
    std::vector<ps::operator_pair> edges;
    for (std::size_t b = 0; b < own.size(); ++b) {
        for (std::int64_t c = 0; c < 6; ++c) {
            memory[b].push_back(c);
            own[b].push_back(5 - c);
        }
        for (std::size_t a = 0; a < b; ++a) {
            edges.push_back({a, b});
            auto& table = of_edges.emplace_back();
            for (int n = 0; n < 36; ++n) table.push_back(static_cast<std::int64_t>(below(rng, 1000)));
        }
    }
    budgeted_problem<std::int64_t> const problem({{std::move(own), std::move(edges), std::move(of_edges)}, std::move(memory), 200});
    auto const found = dominator_dp(problem, problem.first(), rng, {.time = std::chrono::milliseconds(100)});
    CHECK(found.ended == ps::stop_reason::time_budget);
    CHECK(problem.costs().memory_of(found.best) <= 200);
    CHECK(found.stats.seconds < 20);
}

namespace {
/// Terms of one's own, of configurations that are no numbers.
struct lodgings {
    int operator()(std::vector<std::string> const& s) const {
        if (!forgets && operator_memory(0, s[0]) + operator_memory(1, s[1]) > memory_budget()) return std::numeric_limits<int>::max();
        return operator_cost(0, s[0]) + operator_cost(1, s[1]) + edge_cost(0, s[0], s[1]);
    }
    int operator_cost(std::size_t, std::string const& c) const { return 10 - static_cast<int>(c.size()); }
    std::vector<ps::operator_pair> edges() const { return {{0, 1}}; }
    int edge_cost(std::size_t, std::string const& a, std::string const& b) const { return a == b ? 0 : 3; }
    ps::byte_count operator_memory(std::size_t, std::string const& c) const { return least + static_cast<ps::byte_count>(c.size()); }
    ps::byte_count memory_budget() const { return budget; }
    ps::byte_count least = 0, budget = 9;
    bool forgets = false; ///< its own budget
};
/// Whose bytes are unsigned, and without a limit.
struct unsigned_lodgings {
    int operator()(std::vector<std::string> const& s) const { return operator_cost(0, s[0]) + operator_cost(1, s[1]); }
    int operator_cost(std::size_t, std::string const& c) const { return 10 - static_cast<int>(c.size()); }
    std::vector<ps::operator_pair> edges() const { return {}; }
    int edge_cost(std::size_t, std::string const&, std::string const&) const { return 0; }
    std::size_t operator_memory(std::size_t, std::string const& c) const { return c.size(); }
    std::size_t memory_budget() const { return std::numeric_limits<std::size_t>::max(); }
};
} // namespace

TEST_CASE("an evaluator of one's own with a budget") {
    std::vector<std::vector<std::string>> const rooms{{"hut", "house", "mansion"}, {"hut", "house", "mansion"}};
    toys::splitmix rng{1};
    ps::search_problem const problem{rooms, lodgings{}};
    auto const found = dominator_dp(problem, std::vector<std::string>{"hut", "hut"}, rng);
    CHECK(found.cost == support::least_of_all(
                            budgeted_problem<int>({{{{7, 5, 3}, {7, 5, 3}}, {{0, 1}}, {{0, 3, 3, 3, 0, 3, 3, 3, 0}}}, {{3, 5, 7}, {3, 5, 7}}, 9})));
    CHECK(found.reason == ps::stop_reason::proved_optimal);
    // Other searches take the evaluator as it is.
    CHECK(ps::search::exact(problem, std::vector<std::string>{"hut", "hut"}, rng).cost == found.cost);
    CHECK(ps::search::portfolio(problem, std::vector<std::string>{"hut", "hut"}, rng, {.evaluations = 100}).cost == found.cost);
    CHECK_THROWS_WITH_AS(dominator_dp(ps::search_problem{rooms, lodgings{.least = -10}}, std::vector<std::string>{"hut", "hut"}, rng),
                         "dominator_dp: operator_memory(0, configuration number 0) is -7 bytes: must be from 0 to 2^50", ps::invalid_input);
    CHECK_THROWS_WITH_AS(dominator_dp(ps::search_problem{rooms, lodgings{.budget = -1}}, std::vector<std::string>{"hut", "hut"}, rng),
                         "dominator_dp: memory_budget() is -1 bytes: must not be negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(dominator_dp(ps::search_problem{rooms, lodgings{.forgets = true}}, std::vector<std::string>{"mansion", "hut"}, rng),
                         "dominator_dp: the evaluator answers 13 for a start of 10 bytes: must be infinity, as the budget is 9", ps::invalid_input);
    auto const boundless = dominator_dp(ps::search_problem{rooms, unsigned_lodgings{}}, std::vector<std::string>{"hut", "hut"}, rng);
    CHECK(boundless.best == std::vector<std::string>{"mansion", "mansion"});
}

TEST_CASE("terms too large for a price are refused, and a stop ends the search") {
    toys::splitmix rng{1};
    budgeted_problem<std::int64_t> const large({{{{std::int64_t{1} << 59, 1}, {std::int64_t{1} << 59, 1}}, {}, {}}, {{1, 5}, {1, 5}}, 7});
    CHECK_THROWS_WITH_AS(dominator_dp(large, large.first(), rng),
                         "dominator_dp: the largest terms of the tables add up to 2^60 or more: with a budget of memory it must be less",
                         ps::invalid_input);
    auto const problem = random_problem<std::int64_t>({.operators = 12, .dense = true}, rng);
    auto const stopped = dominator_dp(problem, problem.first(), rng, {.evaluations = 1});
    CHECK(stopped.ended == ps::stop_reason::evaluation_budget);
    CHECK(stopped.stats.evaluations == 1);
}
