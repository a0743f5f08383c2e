#include <parsearch/pipeline/cuts.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

namespace ps = parsearch;
using ps::pipeline::balanced_cuts;
using times = std::vector<std::int64_t>;

namespace {
// The largest load and the sum of loads.
std::pair<std::int64_t, std::int64_t> loads(times const& t, times const& crossing, std::vector<std::size_t> const& first) {
    std::int64_t most = 0, sum = 0;
    for (std::size_t s = 0; s < first.size(); ++s) {
        std::int64_t own = 0;
        for (auto i = first[s]; i < (s + 1 < first.size() ? first[s + 1] : t.size()); ++i) own += t[i];
        if (s > 0) own = std::max(own, crossing[first[s]]);
        most = std::max(most, own);
        sum += own;
    }
    return {most, sum};
}
} // namespace

TEST_CASE("balanced_cuts: by hand") {
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 1) == std::vector<std::size_t>{0});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 2) == std::vector<std::size_t>{0, 3});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 4) == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 50}, 2) == std::vector<std::size_t>{0, 2}); // the best place is dear
    CHECK(balanced_cuts(times{0, 0, 0}, times{0, 0, 0}, 2) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("balanced_cuts: no other cuts are better") {
    std::mt19937_64 rng(20261122);
    for (int round = 0; round < 1500; ++round) {
        auto const n = 1 + ps::uniform_index(rng, 8), stages = 1 + ps::uniform_index(rng, n);
        times t, crossing;
        for (std::size_t i = 0; i < n; ++i) {
            t.push_back(static_cast<std::int64_t>(ps::uniform_index(rng, 10)));
            crossing.push_back(static_cast<std::int64_t>(ps::uniform_index(rng, 12)));
        }
        auto const found = balanced_cuts(t, crossing, stages);
        REQUIRE(found.size() == stages);
        auto best = std::pair{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};
        std::vector<std::size_t> first{0};
        std::function<void()> const every = [&] {
            if (first.size() == stages) {
                best = std::min(best, loads(t, crossing, first));
                return;
            }
            for (auto next = first.back() + 1; next < n; ++next) {
                first.push_back(next);
                every();
                first.pop_back();
            }
        };
        every();
        INFO("round ", round);
        REQUIRE(loads(t, crossing, found).first == best.first);
        // The least sum is that of prefixes that are optimal themselves: never below the least of all.
        REQUIRE(loads(t, crossing, found).second >= best.second);
    }
}

TEST_CASE("narrow_cuts: only where little crosses, and as many as that allows") {
    using sizes = std::vector<ps::byte_count>;
    using ps::pipeline::narrow_cuts;
    times const t{1, 1, 1, 1, 1, 1};
    CHECK(narrow_cuts(t, sizes{0, 9, 4, 9, 4, 9}, 2) == std::vector<std::size_t>{0, 2}); // 2 | 4 and 4 | 2 are as good
    CHECK(narrow_cuts(t, sizes{0, 9, 4, 9, 5, 9}, 5) == std::vector<std::size_t>{0, 2, 4});
    CHECK(narrow_cuts(t, sizes{0, 9, 4, 9, 6, 9}, 5) == std::vector<std::size_t>{0, 2});
    CHECK(narrow_cuts(t, sizes{0, 4, 4, 4, 4, 4}, 3) == std::vector<std::size_t>{0, 2, 4});
    CHECK(narrow_cuts(times{7}, sizes{3}, 4) == std::vector<std::size_t>{0});
    CHECK(support::refusal([] { return narrow_cuts(times{}, sizes{}, 1); }) == "narrow_cuts: 0 times and 0 sizes: must be as many, at least 1");
}

TEST_CASE("balanced_cuts: what does not fit is refused; times that no sum can hold are not cut off") {
    CHECK(support::refusal([] { return balanced_cuts(times{1, 2}, times{0, 0}, 3); }) == "balanced_cuts: 3 stages of 2 operators: must be from 1 to as many as operators");
    CHECK(support::refusal([] { return balanced_cuts(times{1, 2}, times{0, 0}, 0); }) == "balanced_cuts: 0 stages of 2 operators: must be from 1 to as many as operators");
    CHECK(support::refusal([] { return balanced_cuts(times{1, 2}, times{0}, 1); }) == "balanced_cuts: 1 times of what crosses: must be one for each of 2 operators");
    auto const most = std::numeric_limits<std::int64_t>::max();
    CHECK(balanced_cuts(times{most, most, most}, times{0, 0, 0}, 3) == std::vector<std::size_t>{0, 1, 2});
}
