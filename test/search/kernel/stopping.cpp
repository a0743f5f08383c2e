#include <parsearch/search/kernel/stopping.hpp>

#include <thread>

#include <doctest/doctest.h>

namespace ps = parsearch;
using namespace std::chrono_literals;
using ps::stop_reason;
using ps::search::stopping;

TEST_CASE("no budget, no end") {
    stopping s({});
    for (std::uint64_t n = 1; n < 1000; ++n) CHECK(!s.due(n));
}

TEST_CASE("the evaluation budget is exact") {
    stopping s({.time = {}, .evaluations = 10, .stop = {}});
    CHECK(!s.due(9));
    CHECK(s.due(10) == stop_reason::evaluation_budget);
    CHECK(s.due(11) == stop_reason::evaluation_budget);
}

TEST_CASE("a stop token comes before the rest") {
    std::stop_source source;
    stopping s({.time = 0ns, .evaluations = 1, .stop = source.get_token()});
    CHECK(s.due(1) == stop_reason::evaluation_budget);
    source.request_stop();
    CHECK(s.due(1) == stop_reason::stop_requested);
}

TEST_CASE("time: no budget at all ends at the first look") {
    stopping s({.time = 0ns, .evaluations = {}, .stop = {}});
    CHECK(s.due(1) == stop_reason::time_budget);
}

TEST_CASE("time: quick calls are looked at rarely, and the end is still seen") {
    stopping s({.time = 20ms, .evaluations = {}, .stop = {}});
    std::uint64_t calls = 0;
    while (!s.due(1)) ++calls;
    CHECK(s.elapsed() >= 20ms);
    CHECK(calls > 0);
}

TEST_CASE("time: slow calls are each looked at") {
    stopping s({.time = 20ms, .evaluations = {}, .stop = {}});
    std::uint64_t calls = 0;
    while (!s.due(1)) {
        ++calls;
        std::this_thread::sleep_for(2ms);
    }
    CHECK(calls <= 10);
}

TEST_CASE("patience: a fraction of the evaluations without improvement, after the least number") {
    stopping s({}, {.of_evaluations = 0.5, .of_time = 0, .min_evaluations = 100});
    CHECK(!s.due(99));
    CHECK(s.due(100) == stop_reason::no_improvement);
    s.improved(80);
    CHECK(!s.due(159));
    CHECK(s.due(160) == stop_reason::no_improvement);
}

TEST_CASE("patience: a fraction of the time") {
    stopping s({}, {.of_evaluations = 0, .of_time = 0.5, .min_evaluations = 5});
    std::this_thread::sleep_for(1ms);
    CHECK(!s.due(4));
    CHECK(s.due(5) == stop_reason::no_improvement);
    std::this_thread::sleep_for(20ms);
    s.improved(6);
    auto const improved_after = s.elapsed();
    while (!s.due(7)) {
    }
    CHECK(s.elapsed() >= 2 * improved_after - 1ms);
}
