#include <parsearch/search/additive_cost.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/error.hpp>

namespace ps = parsearch;
using ps::search::additive_cost, ps::search::additive_problem, ps::search::numbered_strategy;

static_assert(ps::TabledEvaluator<additive_cost<double>, numbered_strategy, std::uint32_t>);
static_assert(ps::SearchProblem<additive_problem<std::chrono::microseconds>, numbered_strategy>);
static_assert(ps::ConfigurationSpace<std::vector<ps::search::index_range>>);

TEST_CASE("a cost is the sum of its terms") {
    additive_problem<int> const problem({{{1, 2}, {10, 20, 30}}, {{1, 0}, {0, 1}}, {{100, 200, 300, 400, 500, 600}, {0, 0, 0, 0, 0, 7000}}});
    auto costs = problem.evaluator();
    CHECK(costs(numbered_strategy{0, 0}) == 111);
    CHECK(costs(numbered_strategy{1, 2}) == 2 + 30 + 600 + 7000);
    CHECK(costs.edge_cost(0, 2, 0) == 500); // row major in the first of the two, operator 1
    CHECK(costs.operator_costs(1).size() == 3);
    CHECK(costs.edge_costs(0).data() == problem.costs().edge_costs(0).data()); // copies share the tables
    CHECK(problem.space()[1].size() == 3);
    CHECK(problem.space()[1].begin()[2] == 2);
    CHECK(problem.first() == numbered_strategy{0, 0});
}

TEST_CASE("integers saturate, infinity stays, and partial sums may leave the range") {
    constexpr auto most = std::numeric_limits<std::int8_t>::max();
    additive_cost<std::int8_t> const costs({{100, 5}, {100, 5}, {-100, most}}, {}, {});
    CHECK(costs(numbered_strategy{0, 0, 0}) == 100);
    CHECK(costs(numbered_strategy{0, 1, 1}) == most); // a term is infinite
    CHECK(additive_cost<std::int8_t>({{100}, {100}}, {}, {})(numbered_strategy{0, 0}) == most);
    CHECK(additive_cost<std::int8_t>({{-100}, {-100}}, {}, {})(numbered_strategy{0, 0}) == -128);
}

TEST_CASE("configurations that are in no table are refused") {
    additive_cost<int> const costs({{1, 2}, {10, 20, 30}}, {{1, 0}}, {{1, 2, 3, 4, 5, 6}});
    auto const first = "additive_cost: configuration number 2 of operator number 0: must be below 2, the size of its table";
    CHECK_THROWS_WITH_AS((void)costs(numbered_strategy{2, 0}), first, ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)costs.operator_cost(0, 2), first, ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)costs.edge_cost(0, 0, 2), first, ps::invalid_input); // operator 1 comes first
    auto const second = "additive_cost: configuration number 3 of operator number 1: must be below 3, the size of its table";
    CHECK_THROWS_WITH_AS((void)costs(numbered_strategy{1, 3}), second, ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)costs.operator_cost(1, 3), second, ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)costs.edge_cost(0, 3, 0), second, ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)costs(numbered_strategy{1}), "additive_cost: the strategy has 1 configurations: must be 2, one per operator",
                         ps::invalid_input);
    CHECK(costs(numbered_strategy{1, 2}) == 2 + 30 + 6);
}
