#include "profiler/timing.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
using namespace std::chrono_literals;

namespace {

/// A device whose runs take what `one` says, on a clock that it moves itself, in steps of `grain`.
struct fake_run {
    std::function<double(std::int64_t)> one; ///< picoseconds of run number n
    double grain = 1;
    std::int64_t done = 0, calls = 0;
    double time = 0;
    std::chrono::nanoseconds host{};
    picoseconds run(std::int64_t times) {
        ++calls;
        double const from = time;
        for (std::int64_t i = 0; i < times; ++i) time += one(done++);
        host += std::chrono::nanoseconds{static_cast<std::int64_t>((time - from) / 1000) + 5000}; // 5 us of the host for each call
        return picoseconds{static_cast<std::int64_t>((std::floor(time / grain) - std::floor(from / grain)) * grain)};
    }
};
struct host_clock {
    fake_run const* run;
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds> operator()() const {
        return std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>{run->host};
    }
};
timing measured(fake_run& run, timing_options const& o = {}) {
    return measure(run, o, host_clock{&run}, [] { return false; }).value();
}
static_assert(TimedRun<fake_run>);
} // namespace

TEST_CASE("timing: the interval of the median by order statistics") {
    // Tables of the sign test: with 95 %, none below 6 samples, the extremes of 6, the second of 9, the third of 12, the sixth of 20.
    using profiler::detail::median_interval;
    for (std::size_t n = 0; n < 6; ++n) CHECK_FALSE(median_interval(n, 0.95).has_value());
    CHECK(median_interval(6, 0.95) == 0);
    CHECK(median_interval(8, 0.95) == 0);
    CHECK(median_interval(9, 0.95) == 1);
    CHECK(median_interval(12, 0.95) == 2);
    CHECK(median_interval(20, 0.95) == 5);
    CHECK(median_interval(100, 0.95) == 39);
    CHECK(median_interval(7, 0.99).has_value() == false);
    CHECK(median_interval(8, 0.99) == 0);
    // It never crosses the middle, and holds the median as often as it says: exactly, by the binomial distribution.
    for (std::size_t n = 6; n <= 1000; n += 7) {
        auto const k = median_interval(n, 0.95);
        REQUIRE(k.has_value());
        CHECK(2 * *k < n);
    }
}

TEST_CASE("timing: a steady kernel takes few runs; long ones fewer") {
    for (double const ps : {1e6, 3e7, 1e9, 4e10, 5e11}) { // 1 us to 0.5 s
        CAPTURE(ps);
        fake_run run{.one = [ps](std::int64_t) { return ps; }};
        auto const t = measured(run);
        CHECK(std::abs(static_cast<double>(t.median.count()) / ps - 1) < 1e-5);
        CHECK(t.spread <= 1ns);
        bool const room = ps < 2e11; // six samples and the warm-up fit into a second
        CHECK(t.reached == room);
        CHECK(t.samples >= 5);
        CHECK(t.samples <= 6);
        // The last sample, and one warm-up run, may begin just before the time is over.
        CHECK(run.host <= std::max<std::chrono::nanoseconds>(1s, std::chrono::nanoseconds{static_cast<std::int64_t>(7 * ps / 1000)}) + 100ms);
        if (ps < 1e8) CHECK(t.runs >= 6 * 4);
    }
}

TEST_CASE("timing: noise, to the target error") {
    std::size_t reached = 0, close = 0, cases = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        double const base = 1e6 * std::exp2(12 * uniform_unit(rng)), width = 0.1 * uniform_unit(rng); // runs of base * (1 +- width)
        fake_run run{.one = [&](std::int64_t) { return base * (1 + width * (2 * uniform_unit(rng) - 1)); }};
        auto const t = measured(run, {.target_error = 0.01, .kernel_time = 20s});
        ++cases;
        reached += t.reached;
        CHECK(t.low <= t.median);
        CHECK(t.median <= t.high);
        // The true median is `base`. Optional stopping costs some of the confidence, so not every interval holds it.
        close += std::abs(static_cast<double>(t.median.count()) / base - 1) < 0.012;
        CHECK(std::abs(static_cast<double>(t.median.count()) / base - 1) < 0.05);
        if (t.reached) CHECK(t.error <= 0.01);
    }
    CHECK(reached > cases * 9 / 10);
    CHECK(close > cases * 9 / 10);
}

TEST_CASE("timing: spikes do not move the median") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        // A fifth of the samples is hit by something that takes a hundred times as long.
        fake_run run{.one = [&](std::int64_t) { return 1e9 * (uniform_unit(rng) < 0.2 ? 100 : 1 + 0.01 * uniform_unit(rng)); }};
        auto const t = measured(run, {.kernel_time = 100s});
        CHECK(static_cast<double>(t.median.count()) < 1.02e9);
        CHECK(static_cast<double>(t.median.count()) > 0.99e9);
    }
}

TEST_CASE("timing: drift is seen and measured again") {
    // A clock that rises over the first 10 ms of work: early runs are up to twice as slow.
    fake_run run{.one = [&](std::int64_t) { return 0.0; }};
    run.one = [&](std::int64_t) { return run.time < 1e10 ? 2e8 - run.time / 1e10 * 1e8 : 1e8; };
    auto const t = measured(run, {.target_error = 0.02, .kernel_time = 10s, .warm_up = 0ns});
    CHECK(t.reached);
    CHECK(t.discarded > 0);
    CHECK(std::abs(static_cast<double>(t.median.count()) / 1e8 - 1) < 0.03);
    // One that never ends is reported as not reached.
    fake_run endless{.one = [](std::int64_t n) { return 1e8 * std::exp2(static_cast<double>(n) / 50); }};
    auto const never = measured(endless, {.target_error = 0.001, .kernel_time = 2s});
    CHECK_FALSE(never.reached);
}

TEST_CASE("timing: coarse clocks, and clocks that stand still") {
    // Half a microsecond, as that of CUDA's events: runs of 100 ns are timed in thousands.
    fake_run coarse{.one = [](std::int64_t) { return 1e5; }, .grain = 5e5};
    auto const t = measured(coarse);
    CHECK(std::abs(static_cast<double>(t.median.count()) / 1e5 - 1) < 0.01);
    CHECK(t.reached);
    fake_run still{.one = [](std::int64_t) { return 0.0; }};
    CHECK_THROWS_AS((void)measured(still), still_clock);
    CHECK(still.done <= 2 * (1 << 16));
    fake_run coarser{.one = [](std::int64_t) { return 1.0; }, .grain = 1e9};
    CHECK_THROWS_AS((void)measured(coarser), still_clock);
    fake_run back{.one = [](std::int64_t) { return -1e6; }};
    CHECK_THROWS_AS((void)measured(back), still_clock);
}

TEST_CASE("timing: limits, ends and failures") {
    std::mt19937_64 rng{7};
    fake_run wild{.one = [&](std::int64_t) { return 1e9 * (0.1 + 10 * uniform_unit(rng)); }};
    auto const t = measured(wild, {.target_error = 0.0001, .kernel_time = 3600s, .most_samples = 40});
    CHECK(t.samples + t.discarded == 40);
    CHECK_FALSE(t.reached);
    CHECK(t.error > 0.0001);
    fake_run slow{.one = [](std::int64_t) { return 5e12; }};
    auto const few = measured(slow, {.kernel_time = 1s, .least_samples = 3});
    CHECK(few.samples == 3);
    CHECK_FALSE(few.reached);
    // Stopped between two samples: no answer.
    fake_run steady{.one = [](std::int64_t) { return 1e9; }};
    std::int64_t asked = 0;
    CHECK_FALSE(measure(steady, {}, host_clock{&steady}, [&] { return ++asked > 4; }).has_value());
    CHECK(steady.calls == 4);
    // What the device throws comes through.
    fake_run failing{.one = [](std::int64_t n) -> double { return n > 10 ? throw std::runtime_error("misaligned address") : 1e9; }};
    CHECK_THROWS_WITH((void)measured(failing), "misaligned address");
    // The same runs give the same answer.
    for (int i = 0; i < 2; ++i) {
        std::mt19937_64 again{3};
        fake_run one{.one = [&](std::int64_t) { return 1e8 * (1 + uniform_unit(again)); }};
        static timing first;
        auto const now = measured(one);
        if (i == 0) first = now;
        CHECK(now.median == first.median);
        CHECK(now.samples == first.samples);
    }
}

TEST_CASE("timing: options are checked") {
    fake_run run{.one = [](std::int64_t) { return 1e9; }};
    auto const said = [&](timing_options const& o) { return support::refusal([&] { return measured(run, o); }); };
    CHECK(said({.target_error = 0}) == "target_error is 0: must be above 0 and at most 1");
    CHECK(said({.confidence = 1}) == "confidence is 1: must be above 0 and below 1");
    CHECK(said({.kernel_time = -1ns}).find("kernel_time") == 0);
    CHECK(said({.warm_up = -1ns}).find("warm_up") == 0);
    CHECK(said({.least_samples = 10, .most_samples = 5}).find("least_samples is 10") == 0);
    CHECK(said({.most_runs = 0}).find("most_runs") == 0);
}
