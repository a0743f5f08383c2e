#pragma once
/// The minimum by trying everything.

#include <algorithm>
#include <cstddef>

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

} // namespace support
