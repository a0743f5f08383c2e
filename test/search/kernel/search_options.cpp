#include <parsearch/search/kernel/search_options.hpp>

#include <limits>

#include <doctest/doctest.h>

namespace ps = parsearch;
using namespace std::chrono_literals;

TEST_CASE("a budget is checked with value and rule") {
    CHECK_NOTHROW(ps::search::require_budget({}, "mcmc"));
    CHECK_NOTHROW(ps::search::require_budget({.time = 0ns, .evaluations = 1, .stop = {}}, "mcmc"));
    CHECK_THROWS_WITH_AS(ps::search::require_budget({.time = -5ns, .evaluations = {}, .stop = {}}, "mcmc"),
                         "mcmc: option 'time' is -5 ns: must not be negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(ps::search::require_budget({.time = {}, .evaluations = 0, .stop = {}}, "greedy"),
                         "greedy: option 'evaluations' is 0: must be at least 1, the start is priced too", ps::invalid_input);
}

TEST_CASE("fractions and amounts") {
    double const nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
    for (double const good : {0.0, 0.5, 1.0}) CHECK_NOTHROW(ps::search::require_fraction(good, "a", "b"));
    for (double const bad : {-0.1, 1.1, nan, infinity}) CHECK_THROWS_AS(ps::search::require_fraction(bad, "a", "b"), ps::invalid_input);
    CHECK_THROWS_WITH(ps::search::require_fraction(1.5, "a", "b"), "a: option 'b' is 1.5: must be between 0 and 1");
    for (double const good : {0.0, 1e300}) CHECK_NOTHROW(ps::search::require_amount(good, "a", "b"));
    for (double const bad : {-1.0, nan, infinity}) CHECK_THROWS_AS(ps::search::require_amount(bad, "a", "b"), ps::invalid_input);
    CHECK_THROWS_WITH(ps::search::require_amount(-1.0, "a", "b"), "a: option 'b' is -1: must be finite and not negative");
}

TEST_CASE("the budget of any options struct") {
    struct own_options {
        std::optional<std::chrono::nanoseconds> time{};
        std::optional<std::uint64_t> evaluations{};
        std::stop_token stop{};
        int other = 0;
    };
    std::stop_source source;
    auto const b = ps::search::budget_of(own_options{.time = 3s, .evaluations = 7, .stop = source.get_token()});
    CHECK(b.time == 3s);
    CHECK(b.evaluations == 7);
    CHECK(b.stop == source.get_token());
}
