#include <parsearch/sim/schedule/schedule.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/naive_schedule.hpp"

using namespace parsearch;
using sim::discipline, sim::task_kind;

namespace {

/// Adds a task after `before`.
std::uint32_t task(sim::task_graph& g, std::uint32_t resource, std::int64_t duration, std::vector<std::uint32_t> const& before = {},
                   task_kind kind = task_kind::forward) {
    for (auto const p : before) g.after(p);
    return g.add(resource, duration, kind, {});
}

sim::task_graph empty_graph(std::uint32_t resources) {
    sim::task_graph g;
    g.clear(resources);
    return g;
}

sim::schedule run(sim::task_graph const& g, discipline order) {
    sim::schedule s;
    sim::scheduler{}.run(g, order, s);
    return s;
}

/// Up to 20 tasks on up to 5 resources; durations from a small range, so that ties are common; edges from none to many. `heads`: some tasks wait for
/// the heads of others.
sim::task_graph random_graph(std::mt19937_64& rng, bool heads = false) {
    auto const resources = static_cast<std::uint32_t>(1 + uniform_index(rng, 5));
    auto const tasks = uniform_index(rng, 21);
    auto const longest = 1 + uniform_index(rng, 2) * 9;
    double const density = static_cast<double>(uniform_index(rng, 5)) * 0.12;
    auto g = empty_graph(resources);
    for (std::uint32_t t = 0; t < tasks; ++t) {
        std::vector<std::uint32_t> before;
        for (std::uint32_t p = 0; p < t; ++p)
            if (bernoulli(rng, density)) before.push_back(p);
        if (!before.empty() && bernoulli(rng, 0.1)) before.push_back(before.front()); // named twice
        bool const barrier = resources > 1 && bernoulli(rng, 0.15);
        task(g, barrier ? resources - 1 : static_cast<std::uint32_t>(uniform_index(rng, resources)),
             barrier ? 0 : static_cast<std::int64_t>(uniform_index(rng, longest + 1)), before, barrier ? task_kind::barrier : task_kind::forward);
    }
    for (std::uint32_t t = 0; heads && t < g.size(); ++t) {
        g.ties.push_back(
            {.task = sim::task_tie::none, .latency = static_cast<std::int64_t>(uniform_index(rng, static_cast<std::uint64_t>(g.duration[t]) + 2))});
        if (t > 0 && bernoulli(rng, 0.4)) g.ties[t].task = static_cast<std::uint32_t>(uniform_index(rng, t));
    }
    return g;
}

void cross_check(discipline order, bool heads = false) {
    sim::scheduler scheduler; // one for all: what it keeps from one graph must not show in the next
    sim::schedule s;
    for (std::uint64_t seed = 0; seed < 12000; ++seed) {
        std::mt19937_64 rng(seed);
        auto const g = random_graph(rng, heads);
        scheduler.run(g, order, s);
        auto const expected = support::naive_schedule(g, order);
        bool const same = s.ready == expected.ready && s.start == expected.start && s.end == expected.end && s.makespan == expected.makespan;
        auto const broken = support::broken_rule(g, s);
        INFO("seed ", seed);
        REQUIRE(broken == "");
        if (same) continue;
        CHECK(s.ready == expected.ready);
        CHECK(s.start == expected.start);
        CHECK(s.end == expected.end);
        REQUIRE(s.makespan == expected.makespan);
        FAIL("differs from the naive schedule");
    }
}

} // namespace

TEST_CASE("schedule: fifo is the naive one, task by task, on 12,000 random graphs") { cross_check(discipline::fifo); }
TEST_CASE("schedule: in_order is the naive one, task by task, on 12,000 random graphs") { cross_check(discipline::in_order); }

TEST_CASE("schedule: tasks that follow heads, on 24,000 random graphs") {
    cross_check(discipline::fifo, true);
    cross_check(discipline::in_order, true);
}

TEST_CASE("schedule: what is chained on its resource need not be queued, on 12,000 random graphs") {
    sim::scheduler scheduler;
    for (std::uint64_t seed = 0; seed < 12000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const any = random_graph(rng);
        auto const chained = static_cast<std::uint32_t>(uniform_index(rng, any.resources + std::uint64_t{1}));
        auto g = empty_graph(any.resources);
        std::vector<std::uint32_t> last(any.resources, any.size());
        for (std::uint32_t t = 0; t < any.size(); ++t) {
            for (auto const p : any.before(t)) g.after(p);
            auto const r = any.resource[t];
            if (r < chained && last[r] < any.size()) g.after(last[r]);
            last[r] = g.add(r, any.duration[t], any.kind[t], any.label[t]);
        }
        for (auto const order : {discipline::fifo, discipline::in_order}) {
            auto const expected = support::naive_schedule(g, order);
            for (auto const off : {0, 1, -1}) {
                sim::schedule s;
                auto const bound = off == 0 ? std::numeric_limits<std::int64_t>::max() : expected.makespan + (off > 0 ? 0 : -1);
                REQUIRE(scheduler.run(g, order, s, bound, chained) == (off >= 0));
                if (off < 0) continue;
                REQUIRE(s.start == expected.start);
                REQUIRE(s.end == expected.end);
                REQUIRE(s.makespan == expected.makespan);
            }
        }
    }
}

TEST_CASE("schedule: a head leaves before the task ends") {
    auto g = empty_graph(3);
    task(g, 0, 10);
    task(g, 1, 4);
    task(g, 2, 6);
    g.ties = {{sim::task_tie::none, 3}, {0, 3}, {1, 3}};
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto const s = run(g, order);
        CHECK(s.start == std::vector<std::int64_t>{0, 3, 6});
        CHECK(s.end == std::vector<std::int64_t>{10, 7, 12});
    }
}

TEST_CASE("schedule: bounded, it answers whether the makespan is above the bound") {
    sim::scheduler scheduler;
    for (auto const order : {discipline::fifo, discipline::in_order})
        for (std::uint64_t seed = 0; seed < 3000; ++seed) {
            INFO("seed ", seed);
            std::mt19937_64 rng(seed);
            auto const g = random_graph(rng);
            auto const exact = run(g, order);
            for (std::int64_t const off : {-3, -1, 0, 1}) {
                sim::schedule s;
                REQUIRE(scheduler.run(g, order, s, exact.makespan + off) == (off >= 0));
                if (off >= 0) REQUIRE(s.start == exact.start);
            }
        }
}

TEST_CASE("schedule: no tasks") {
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto const s = run(empty_graph(3), order);
        CHECK(s.makespan == 0);
        CHECK(s.start.empty());
    }
}

TEST_CASE("schedule: a resource takes the task that was ready first; in_order the one with the smaller number") {
    auto g = empty_graph(2);
    auto const a = task(g, 0, 10);
    auto const late = task(g, 1, 5, {a}); // ready at 10
    auto const early = task(g, 1, 7);     // ready at 0
    auto const fifo = run(g, discipline::fifo);
    CHECK(fifo.start[early] == 0);
    CHECK(fifo.start[late] == 10);
    CHECK(fifo.makespan == 15);
    auto const in_order = run(g, discipline::in_order);
    CHECK(in_order.start[late] == 10);
    CHECK(in_order.start[early] == 15);
    CHECK(in_order.makespan == 22);
}

TEST_CASE("schedule: ties go to the smaller number") {
    auto g = empty_graph(1);
    for (int i = 0; i < 3; ++i) task(g, 0, 4);
    for (auto const order : {discipline::fifo, discipline::in_order}) CHECK(run(g, order).start == std::vector<std::int64_t>{0, 4, 8});
}

TEST_CASE("schedule: a task that becomes ready at an instant through zero durations still sorts by its number") {
    // 1 (no time) ends at 0 and makes 2 ready at 0, before 3, which is ready at 0 too but has a larger number.
    auto g = empty_graph(2);
    task(g, 1, 0);
    task(g, 1, 0, {0});
    task(g, 0, 5, {1});
    task(g, 0, 3);
    CHECK(run(g, discipline::fifo).start == std::vector<std::int64_t>{0, 0, 0, 5});
}

TEST_CASE("schedule: fifo leaves a resource idle for nobody") {
    // The queue holds only what is ready: a long task that was ready first delays a short one on the longer path.
    auto g = empty_graph(2);
    auto const a = task(g, 0, 1);
    auto const wide = task(g, 1, 10);
    auto const path = task(g, 1, 1, {a});
    auto const end = task(g, 0, 20, {path});
    auto const s = run(g, discipline::fifo);
    CHECK(s.start[wide] == 0);
    CHECK(s.start[path] == 10);
    CHECK(s.start[end] == 11);
    CHECK(s.makespan == 31);
}

TEST_CASE("schedule: barriers join tasks and hold nobody up") {
    // Barrier 1 is ready at 50, barrier 3 at 5: in program order the second does not wait for the first, they are on no device.
    auto g = empty_graph(3);
    auto const slow = task(g, 0, 50);
    task(g, 2, 0, {slow}, task_kind::barrier);
    auto const quick = task(g, 1, 5);
    auto const second = task(g, 2, 0, {quick}, task_kind::barrier);
    auto const after = task(g, 1, 5, {second});
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto const s = run(g, order);
        CHECK(s.start[second] == 5);
        CHECK(s.end[after] == 10);
        CHECK(s.makespan == 50);
    }
}
