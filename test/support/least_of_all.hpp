#pragma once
/// The minimum by trying everything.

#include <algorithm>
#include <cstddef>

#include <doctest/doctest.h>

#include <parsearch/concepts/searcher.hpp>

namespace support {

/// The least cost of all strategies of an additive problem, whose configurations are numbers.
template <class P> auto least_of_all(P const& problem) {
    auto const costs = problem.evaluator();
    auto s = problem.first();
    auto least = costs(s);
    for (;;) {
        std::size_t op = 0;
        while (op < s.size() && ++s[op] == problem.space()[op].size()) s[op++] = 0;
        if (op == s.size()) return least;
        least = std::min(least, costs(s));
    }
}

/// What a search found is a strategy of the least cost, and proved to be.
template <class P, class Result, class C> void require_proved(P const& problem, Result const& found, C const& least) {
    REQUIRE(found.cost == least);
    REQUIRE(problem.costs()(found.best) == least);
    REQUIRE(found.lower_bound == least);
    REQUIRE(found.ended == parsearch::stop_reason::proved_optimal);
}

} // namespace support
