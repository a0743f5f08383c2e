#include <parsearch/cost/monotone_curve.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"
#include "support/shuffle.hpp"

using namespace parsearch;
using cost::monotone_curve;

namespace {
using points = std::vector<std::pair<double, double>>;
} // namespace

TEST_CASE("monotone curve: through points that rise, pools of those that do not, steepness 1 outside") {
    monotone_curve const rising(points{{1, 1}, {3, 2}, {2, 1.5}});
    CHECK(rising(1) == 1);
    CHECK(rising(2.5) == 1.75);
    CHECK(rising(3) == 2);
    CHECK(rising(5) == 4);
    CHECK(rising(-1) == -1);
    monotone_curve const falling(points{{0, 4}, {1, 2}, {4, 6}});
    CHECK(falling(0.5) == 3); // the mean of the pool, at its middle
    CHECK(falling(4) == 6);
    CHECK(monotone_curve(points{{2, 5}})(3) == 6);
    CHECK(monotone_curve(points{{2, 5}, {2, 7}})(2) == 6);
    CHECK(support::refusal([] { return monotone_curve(points{})(0); }) == "monotone curve through 0 points: must be at least one");
}

TEST_CASE("monotone curve: never falls; meets rising points; any order") {
    constexpr std::uint64_t seed = 4;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        points p;
        for (auto n = 1 + uniform_index(rng, 20); n > 0; --n) p.push_back({10 * uniform_unit(rng), 10 * uniform_unit(rng)});
        bool const rises = round % 2;
        if (rises) {
            std::vector<double> y;
            for (auto const& q : p) y.push_back(q.second);
            std::ranges::sort(y);
            std::ranges::sort(p);
            for (std::size_t i = 0; i < p.size(); ++i) p[i].second = y[i];
        }
        monotone_curve const curve(p);
        double before = curve(-1);
        for (double x = -0.99; x < 11; x += 0.01) {
            REQUIRE(curve(x) >= before - 1e-12);
            before = curve(x);
        }
        if (rises)
            for (auto const& [x, y] : p) REQUIRE(std::abs(curve(x) - y) < 1e-9);
        support::shuffle(p, rng);
        monotone_curve const again(p);
        for (double x = -1; x < 11; x += 0.37) REQUIRE(again(x) == curve(x));
    }
}
