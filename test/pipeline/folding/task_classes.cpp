#include <parsearch/pipeline/folding/task_classes.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

#include "support/cases.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;

namespace {

// Devices 0 to 3, links 4 to 7: each device computes, sends to the next, and computes what it gets.
sim::task_graph ring(std::int64_t time_of_last = 5) {
    sim::task_graph g;
    g.clear(9);
    for (std::uint32_t d = 0; d < 4; ++d) g.add(d, 5, sim::task_kind::forward, {0, d});
    for (std::uint32_t d = 0; d < 4; ++d) {
        g.after(d);
        g.add(4 + d, 2, sim::task_kind::transfer, {1, d, 0});
    }
    for (std::uint32_t d = 0; d < 4; ++d) {
        g.after(4 + (d + 3) % 4);
        g.add(d, d == 3 ? time_of_last : 5, sim::task_kind::forward, {1, d});
    }
    return g;
}

} // namespace

TEST_CASE("task_classes: devices that do the same, by hand") {
    pipeline::task_classes_finder find;
    pipeline::task_classes classes;
    auto const all = ring();
    REQUIRE(find.find(all, 4, {}, {}, classes));
    CHECK(classes.devices == 1);
    CHECK(classes.resource == std::vector<std::uint32_t>{0, 4, 8}); // a device, a link, barriers
    CHECK(classes.of_task == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
    CHECK(classes.tasks.size() == 3);
    CHECK(classes.tasks.predecessors == std::vector<std::uint32_t>{0, 1});
    CHECK(classes.tasks.resources == 3);
    CHECK(!find.find(ring(6), 4, {}, {}, classes)); // one that is slower sets all apart: each is at another distance behind it
    // What moves for blocks, and over the links to hosts, counts too.
    pipeline::shared_blocks shared{.waits = {true, true}, .reduced_with = std::vector<std::uint32_t>(all.size(), pipeline::shared_block::none)};
    shared.blocks[0] = {.first = 0, .gather = {{4, 3}, {5, 3}, {6, 3}, {7, 3}}};
    REQUIRE(find.find(all, 4, shared, {}, classes));
    CHECK(classes.devices == 1);
    auto const folded = fold(shared, classes);
    CHECK(folded.blocks.at(0).gather == pipeline::shared_block::link_times{{1, 3}});
    CHECK(folded.reduced_with.size() == 3);
    shared.blocks[0].gather[2].second = 4;
    CHECK(!find.find(all, 4, shared, {}, classes));
    pipeline::offload_plan offloaded;
    for (std::uint32_t d = 0; d < 4; ++d) offloaded[{d, {0, 0}}] = {.bytes = 8, .time = 7, .op = 0};
    REQUIRE(find.find(all, 4, {}, offloaded, classes));
    CHECK(fold(offloaded, classes).size() == 1);
    offloaded.erase({1, {0, 0}});
    CHECK(!find.find(all, 4, {}, offloaded, classes));
}

TEST_CASE("task_classes: in random task graphs on devices most of which are alike tasks of a class run at the same times") {
    int folded = 0, apart = 0;
    for (std::uint64_t seed = 0; seed < support::cases(4000u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const below = [&](std::size_t n) { return static_cast<std::uint32_t>(ps::uniform_index(rng, n)); };
        // Replicas of one random graph on two devices and two links; now and then a task differs, waits for another replica, or has a tie.
        std::uint32_t const replicas = 2 + below(4), tasks = 6 + below(20);
        sim::task_graph g;
        g.clear(4 * replicas + 1);
        std::vector<std::vector<std::uint32_t>> number(tasks, std::vector<std::uint32_t>(replicas));
        bool const odd = ps::bernoulli(rng, 0.4);
        for (std::uint32_t i = 0; i < tasks; ++i) {
            auto const kind = below(3);
            auto const time = static_cast<std::int64_t>(below(4));
            std::vector<std::uint32_t> before;
            for (std::uint32_t k = 0; i > 0 && k < below(3); ++k) before.push_back(below(i));
            bool const joins = ps::bernoulli(rng, 0.15), slower = odd && ps::bernoulli(rng, 0.1);
            auto const on = below(2);
            for (std::uint32_t r = 0; r < replicas; ++r) {
                for (auto const p : before)
                    for (std::uint32_t other = 0; other < replicas; ++other)
                        if (joins || other == r) g.after(number[p][other]);
                auto const resource = kind == 0 ? 2 * r + on : kind == 1 ? 2 * replicas + 2 * r + on : 4 * replicas;
                auto const what = kind == 0 ? sim::task_kind::forward : kind == 1 ? sim::task_kind::transfer : sim::task_kind::barrier;
                number[i][r] = g.add(resource, kind == 2 ? 0 : time + (slower && r == 0), what, {i, r});
            }
        }
        pipeline::task_classes_finder find;
        pipeline::task_classes classes;
        if (!find.find(g, 2 * replicas, {}, {}, classes)) {
            ++apart;
            continue;
        }
        ++folded;
        if (!odd) REQUIRE(classes.tasks.size() <= tasks);
        for (auto const order : {sim::discipline::fifo, sim::discipline::in_order}) {
            sim::schedule whole, one;
            sim::scheduler schedule;
            REQUIRE(schedule.run(g, order, whole));
            REQUIRE(schedule.run(classes.tasks, order, one));
            for (std::uint32_t t = 0; t < g.size(); ++t) {
                REQUIRE(whole.ready[t] == one.ready[classes.of_task[t]]);
                REQUIRE(whole.start[t] == one.start[classes.of_task[t]]);
                REQUIRE(whole.end[t] == one.end[classes.of_task[t]]);
            }
        }
    }
    CHECK(folded > support::cases(2500));
    CHECK(apart + folded == support::cases(4000));
}
