#include <parsearch/sim/schedule/ready_queue.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/cases.hpp"

using namespace parsearch;

TEST_CASE("ready queue: tasks come out by time, then number, whatever comes in between") {
    constexpr std::uint64_t seed = 5;
    CAPTURE(seed);
    std::mt19937_64 rng{seed};
    sim::ready_queue queue; // one for all cases: it is left as it is cleared
    for (int n = 0; n < support::cases(2000); ++n) {
        queue.clear();
        std::set<std::pair<std::int64_t, std::uint32_t>> expected;
        std::int64_t now = 0;
        std::uint32_t number = 0;
        auto const step = std::uint64_t{1} << (1 + uniform_index(rng, 61)); // from many at once to times all over 63 bits
        for (std::uint64_t k = 0, most = uniform_index(rng, 200); k < most; ++k) {
            if (expected.empty() || bernoulli(rng, 0.55)) {
                auto const later = static_cast<std::int64_t>(
                    std::min<std::uint64_t>(uniform_index(rng, step), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - now)));
                auto const task = bernoulli(rng, 0.5) ? number++ : 1000 + static_cast<std::uint32_t>(uniform_index(rng, 1u << 31));
                if (!expected.emplace(now + later, task).second) continue;
                queue.push(now + later, task);
            } else {
                now = expected.begin()->first;
                REQUIRE(queue.pop() == expected.begin()->second);
                expected.erase(expected.begin());
            }
            REQUIRE(queue.empty() == expected.empty());
        }
        if (bernoulli(rng, 0.3)) continue; // cleared while there is something in it
        for (; !expected.empty(); expected.erase(expected.begin())) REQUIRE(queue.pop() == expected.begin()->second);
        REQUIRE(queue.empty());
    }
}
