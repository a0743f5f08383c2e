#include <parsearch/concepts/search_problem.hpp>

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace search_problem_test {

using strategy = std::vector<int>;
using stored = std::vector<std::vector<int>>;

struct price {
    double operator()(strategy const& s);
};

/// Configurations that exist only while they are looked at.
struct squares {
    std::size_t size() const { return 2; }
    auto operator[](std::size_t op) const {
        return std::views::iota(0, 3 + static_cast<int>(op)) | std::views::transform([](int i) { return i * i; });
    }
};
struct without_size {
    std::span<int const> operator[](std::size_t) const;
};
struct without_index {
    std::size_t size() const;
};
struct index_not_const {
    std::size_t size() const;
    std::vector<int> operator[](std::size_t);
};

static_assert(ConfigurationSpace<stored> && ConfigurationSpace<std::array<std::array<char, 2>, 3>> && ConfigurationSpace<squares>);
static_assert(ConfigurationSpace<std::vector<std::span<std::string const>>>);
static_assert(!ConfigurationSpace<std::vector<int>> && !ConfigurationSpace<int> && !ConfigurationSpace<void>);
static_assert(!ConfigurationSpace<std::vector<std::list<int>>>, "configurations are drawn by number");
static_assert(!ConfigurationSpace<std::map<std::size_t, std::vector<int>>>, "a constant map has no index");
static_assert(!ConfigurationSpace<without_size> && !ConfigurationSpace<without_index> && !ConfigurationSpace<index_not_const>);
static_assert(std::is_same_v<configuration_t<stored>, int> && std::is_same_v<configuration_t<squares>, int>);

struct problem {
    stored const& space() const;
    price evaluator() const;
};
struct space_by_value {
    squares space() const;
    price evaluator() const;
};
struct without_evaluator {
    squares space() const;
};
struct without_space {
    price evaluator() const;
};
struct wrong_space {
    strategy space() const;
    price evaluator() const;
};
struct wrong_evaluator {
    squares space() const;
    double evaluator() const;
};
struct evaluator_not_const {
    squares space() const;
    price evaluator();
};

static_assert(SearchProblem<problem, strategy> && SearchProblem<space_by_value, strategy>);
static_assert(!SearchProblem<problem, std::vector<std::string>>, "a strategy of other configurations");
static_assert(!SearchProblem<without_evaluator, strategy> && !SearchProblem<without_space, strategy>);
static_assert(!SearchProblem<wrong_space, strategy> && !SearchProblem<wrong_evaluator, strategy>);
static_assert(!SearchProblem<evaluator_not_const, strategy>, "every thread makes its own evaluator");
static_assert(!SearchProblem<int, strategy> && !SearchProblem<void, strategy>);
static_assert(std::is_same_v<problem_cost_t<problem, strategy>, double>);
static_assert(std::is_same_v<problem_configuration_t<problem>, int>);
static_assert(std::is_same_v<space_t<problem>, stored> && std::is_same_v<evaluator_t<problem>, price>);

} // namespace search_problem_test

TEST_CASE("search problem: a space and an evaluator make one") {
    using namespace search_problem_test;
    search_problem const p(stored{{1, 2}, {3}}, [](strategy const& s) { return s[0] * s[1]; });
    static_assert(SearchProblem<decltype(p), strategy>);
    CHECK(p.space().size() == 2);
    CHECK(p.space()[0][1] == 2);
    CHECK(p.evaluator()({2, 3}) == 6);
}

TEST_CASE("search problem: every evaluator is its own") {
    using namespace search_problem_test;
    auto const counting = [calls = 0](strategy const&) mutable { return ++calls; };
    search_problem const p(stored{{1}}, counting);
    auto a = p.evaluator(), b = p.evaluator();
    CHECK(a({1}) == 1);
    CHECK(a({1}) == 2);
    CHECK(b({1}) == 1);
}

TEST_CASE("search problem: a computed space is passed like a stored one") {
    using namespace search_problem_test;
    auto const sum = []<ConfigurationSpace X>(X const& x) {
        int out = 0;
        for (std::size_t op = 0; op < x.size(); ++op)
            for (configuration_t<X> const c : x[op]) out += c;
        return out;
    };
    CHECK(sum(squares{}) == 0 + 1 + 4 + 0 + 1 + 4 + 9);
    CHECK(sum(stored{{0, 1, 4}, {0, 1, 4, 9}}) == 19);
}
