#include "profiler/progress.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::profiler;

TEST_CASE("progress: what is left is weighted, and scaled by what was taken") {
    progress_estimate e({1, 2, 3, 4});
    CHECK(e.seconds_left() == 10);
    e.finish(3, 8); // twice as long as guessed
    CHECK(e.seconds_left() == 12);
    e.finish(0, 2);
    CHECK(e.seconds_left() == 10);
    e.finish(1, 4);
    e.finish(2, 6);
    CHECK(e.seconds_left() == 0);
    CHECK(e.done() == 4);
    CHECK(progress_estimate({}).seconds_left() == 0);
}

TEST_CASE("progress: the guess is good where weights are, up to a factor and noise") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::vector<double> weights, times;
        double const factor = 0.1 + static_cast<double>(uniform_index(rng, 100)) / 10;
        double left = 0;
        for (int i = 0; i < 400; ++i) {
            weights.push_back(1 + static_cast<double>(uniform_index(rng, 100)));
            times.push_back(weights.back() * factor * (0.5 + static_cast<double>(uniform_index(rng, 1000)) / 1000));
            left += times.back();
        }
        progress_estimate e(weights);
        for (std::size_t i = 0; i < 400; ++i) {
            e.finish(i, times[i]);
            left -= times[i];
            if (i > 50 && i < 350) CHECK(std::abs(e.seconds_left() / left - 1) < 0.25);
        }
    }
}

TEST_CASE("progress: lines are due now and then") {
    progress_clock terminal(true), file(false);
    int often = 0, rare = 0;
    for (int ms = 0; ms <= 20'000; ms += 10) {
        often += terminal.due(ms / 1000.0);
        rare += file.due(ms / 1000.0);
    }
    CHECK(often >= 150);
    CHECK(often <= 200);
    CHECK(rare == 4);
}
