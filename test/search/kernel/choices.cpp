#include <parsearch/search/kernel/choices.hpp>

#include <vector>

#include <doctest/doctest.h>

namespace ps = parsearch;

namespace {
struct odd_numbers { // ranges made on demand
    [[nodiscard]] std::size_t size() const { return 3; }
    [[nodiscard]] std::vector<long> operator[](std::size_t op) const { return std::vector<long>(op, 2 * static_cast<long>(op) + 1); }
};
} // namespace

TEST_CASE("reading a space") {
    std::vector<std::vector<char>> const stored{{'a'}, {'b', 'c'}};
    CHECK(ps::search::choice_count(stored, 1) == 2);
    CHECK(ps::search::choice(stored, 1, 1) == 'c');
    CHECK(ps::search::choice_count(odd_numbers{}, 2) == 2);
    CHECK(ps::search::choice(odd_numbers{}, 2, 0) == 5);
}

TEST_CASE("a space and a start are checked") {
    std::vector<std::vector<int>> const good{{1}, {1, 2}};
    CHECK_NOTHROW(ps::search::require_choices(good, std::vector<int>{7, 7}, "mcmc"));
    CHECK_THROWS_WITH_AS(ps::search::require_choices(good, std::vector<int>{1}, "mcmc"),
                         "mcmc: the start has 1 configurations: the space has 2 operators", ps::invalid_input);
    CHECK_THROWS_WITH_AS(ps::search::require_choices(odd_numbers{}, 0, "greedy"),
                         "greedy: operator number 0 has 0 configurations: each needs at least one", ps::invalid_input);
    CHECK_NOTHROW(ps::search::require_choices(std::vector<std::vector<int>>{}, std::vector<int>{}, "mcmc"));
}
