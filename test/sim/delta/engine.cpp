#include <parsearch/sim/delta/engine.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <list>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

#include "support/block_tasks.hpp"

using namespace parsearch;
using sim::discipline;

namespace {

using times = std::vector<std::int64_t>;
using pair = std::pair<std::uint32_t, std::uint32_t>;
constexpr auto both = {discipline::fifo, discipline::in_order};

/// A block graph of these arcs.
sim::block_graph graph_of(std::uint32_t blocks, std::vector<sim::block_graph::arc> arcs) {
    sim::block_graph g;
    g.blocks = blocks;
    g.any.assign(blocks, false);
    g.arcs = std::move(arcs);
    auto const index = [&](auto const& end_of, std::vector<std::uint32_t>& list, std::vector<std::uint32_t>& first) {
        for (std::uint32_t b = 0; b < blocks; ++b) {
            first.push_back(static_cast<std::uint32_t>(list.size()));
            for (std::uint32_t a = 0; a < g.arcs.size(); ++a)
                if (end_of(g.arcs[a]) == b) list.push_back(a);
        }
        first.push_back(static_cast<std::uint32_t>(list.size()));
    };
    index([](auto const& a) { return a.to; }, g.in, g.first_in);
    index([](auto const& a) { return a.from; }, g.out, g.first_out);
    return g;
}

sim::task_list tasks_of(std::initializer_list<std::pair<std::uint32_t, std::int64_t>> all) {
    sim::task_list out;
    for (auto const& [resource, duration] : all) out.add(resource, duration);
    return out;
}
sim::dependence waits_of(std::vector<pair> const& pairs, std::uint32_t dependents, std::uint32_t predecessors, bool each = false) {
    sim::dependence_builder b;
    for (auto const& [to, from] : pairs) b.add(to, from);
    return b.make(dependents, predecessors, each);
}

times readies(sim::engine const& e, std::uint32_t block) {
    times out;
    for (auto const& m : e.moments(block)) out.push_back(m.ready);
    return out;
}
times ends(sim::engine const& e, std::uint32_t block) {
    times out;
    for (auto const& m : e.moments(block)) out.push_back(m.end);
    return out;
}

constexpr sim::resource_numbers two_devices{2, 1}; // a link, and barriers on resource 3

} // namespace

TEST_CASE("engine: nothing to run") {
    for (auto const order : both) {
        auto const g = graph_of(2, {{0, 1}});
        sim::engine e(g, two_devices, order);
        CHECK_FALSE(e.valid());
        CHECK(e.run({}) == 0);
        e.commit();
        CHECK(e.valid());
        CHECK(e.makespan() == 0);
        CHECK(e.size() == 0);
        CHECK(e.moments(0).empty());
        CHECK(e.heaviest() == std::pair<std::int64_t, std::int64_t>{0, 0});
        CHECK(e.run({.bound = 0}) == 0);
    }
}

TEST_CASE("engine: fifo takes what is ready first, then by block, then by task; in_order by block and task") {
    auto const g = graph_of(4, {{0, 2}, {0, 3}});
    auto const before = tasks_of({{0, 10}, {0, 10}}), one = tasks_of({{1, 25}}), two = tasks_of({{1, 3}, {1, 4}}), three = tasks_of({{1, 5}});
    auto const later = waits_of({{0, 1}, {1, 0}}, 2, 2), last = waits_of({{0, 0}}, 1, 2);
    for (auto const order : both) {
        sim::engine e(g, two_devices, order);
        e.set_tasks(0, &before);
        e.set_tasks(1, &one);
        e.set_tasks(2, &two);
        e.set_tasks(3, &three);
        e.set_dependence(0, &later);
        e.set_dependence(1, &last);
        CHECK(e.size() == 6);
        CHECK(e.heaviest() == std::pair<std::int64_t, std::int64_t>{37, 0});
        REQUIRE(e.run({}) == 37);
        e.commit();
        CHECK(readies(e, 2) == times{20, 10});
        // Device 1 is busy to 25. Ready at 10: task 1 of block 2, then block 3; at 20: task 0 of block 2.
        if (order == discipline::fifo) {
            CHECK(ends(e, 2) == times{37, 29});
            CHECK(ends(e, 3) == times{34});
        } else {
            CHECK(ends(e, 2) == times{28, 32});
            CHECK(ends(e, 3) == times{37});
        }
        CHECK(e.moments(0)[1].end == 20);
    }
}

TEST_CASE("engine: a task that becomes ready at an instant through one of no duration still sorts by its number") {
    // Task 0 of the block takes no time and makes task 1 ready at once; task 2 was ready at the same time, but has a larger number.
    for (bool const barrier : {true, false}) {
        auto const g = graph_of(1, {{0, 0}});
        auto const tasks = tasks_of({{barrier ? two_devices.barrier() : 0, 0}, {two_devices.link(0), 10}, {two_devices.link(0), 5}});
        auto const inside = waits_of({{1, 0}}, 3, 3);
        for (auto const order : both) {
            INFO(name_of(order), " barrier ", barrier);
            sim::engine e(g, two_devices, order);
            e.set_tasks(0, &tasks);
            e.set_dependence(0, &inside);
            CHECK(e.run({}) == 15);
            e.commit();
            CHECK(ends(e, 0) == times{0, 10, 15});
        }
    }
}

TEST_CASE("engine: barriers hold nobody up") {
    auto const g = graph_of(4, {{0, 1}, {2, 3}});
    auto const slow = tasks_of({{0, 50}}), quick = tasks_of({{1, 5}}), barrier = tasks_of({{two_devices.barrier(), 0}});
    auto const waits = waits_of({{0, 0}}, 1, 1);
    for (auto const order : both) {
        sim::engine e(g, two_devices, order);
        e.set_tasks(0, &slow);
        e.set_tasks(1, &barrier);
        e.set_tasks(2, &quick);
        e.set_tasks(3, &barrier);
        e.set_dependence(0, &waits);
        e.set_dependence(1, &waits);
        CHECK(e.run({}) == 50);
        e.commit();
        CHECK(ends(e, 1) == times{50});
        CHECK(ends(e, 3) == times{5});
    }
}

TEST_CASE("engine: a proposal is kept or dropped") {
    auto const g = graph_of(2, {{0, 1}});
    auto const first = tasks_of({{0, 10}}), longer = tasks_of({{0, 15}}), second = tasks_of({{1, 20}});
    auto const waits = waits_of({{0, 0}}, 1, 1);
    for (auto const order : both) {
        INFO(name_of(order));
        sim::engine e(g, two_devices, order);
        e.set_tasks(0, &first);
        e.set_tasks(1, &second);
        e.set_dependence(0, &waits);
        CHECK(e.run({}) == 30);
        e.commit();
        e.set_tasks(0, &longer);
        e.set_dependence(0, nullptr);
        CHECK(e.run({.bound = 20}) == 20);
        CHECK(e.makespan() == 30); // still
        e.roll_back();
        CHECK(e.tasks(0) == &first);
        CHECK(e.heaviest().first == 20);
        CHECK(ends(e, 1) == times{30});
        CHECK(e.run({.bound = 30}) == 30);
        e.roll_back();
        e.set_tasks(0, &longer);
        CHECK(e.run({.bound = 35}) == 35);
        e.commit();
        CHECK(e.makespan() == 35);
        CHECK(ends(e, 0) == times{15});
        CHECK(ends(e, 1) == times{35});
    }
}

TEST_CASE("engine: committed after a run that was stopped, the schedule is unknown until the next run") {
    auto const g = graph_of(2, {{0, 1}});
    auto const first = tasks_of({{0, 10}}), longer = tasks_of({{0, 15}}), second = tasks_of({{1, 20}});
    auto const waits = waits_of({{0, 0}}, 1, 1);
    for (auto const order : both) {
        INFO(name_of(order));
        sim::engine e(g, two_devices, order);
        e.set_tasks(0, &first);
        e.set_tasks(1, &second);
        e.set_dependence(0, &waits);
        CHECK(e.run({}) == 30);
        e.commit();
        e.set_tasks(0, &longer);
        CHECK(e.run({.bound = 34}) == std::nullopt);
        e.commit();
        CHECK_FALSE(e.valid());
        CHECK(e.tasks(0) == &longer);
        e.set_tasks(1, &first); // device 0 too
        CHECK(e.run({.bound = 25}) == 25);
        e.roll_back();
        CHECK_FALSE(e.valid());
        CHECK(e.run_whole() == 35);
        e.commit();
        CHECK(e.valid());
        CHECK(ends(e, 1) == times{35});
        // Stopped with nothing changed: the schedule stays.
        CHECK(e.run({.bound = 34}) == std::nullopt);
        e.commit();
        CHECK(e.valid());
        CHECK(ends(e, 1) == times{35});
    }
}

TEST_CASE("engine: what follows counts, and what a device has still to do") {
    auto const g = graph_of(3, {{0, 1}, {1, 2}});
    auto const ten = tasks_of({{0, 10}}), twenty = tasks_of({{1, 20}}), update = tasks_of({{0, 7}});
    auto const waits = waits_of({{0, 0}}, 1, 1);
    for (auto const order : both) {
        sim::engine e(g, two_devices, order);
        e.count(2, false);
        e.set_tasks(0, &ten);
        e.set_tasks(1, &twenty);
        e.set_tasks(2, &update);
        e.set_dependence(0, &waits);
        e.set_dependence(1, &waits);
        CHECK(e.heaviest().first == 20); // the update does not count
        times const after{27, 7, 0};
        CHECK(e.run({37, after, 7}) == 37);
        CHECK(e.run({36, after, 7}) == std::nullopt);
        CHECK(e.run({37, {}, 0}) == 37);
        CHECK(e.run({36, {}, 0}) == std::nullopt);
    }
}

namespace {

/// Random tasks and dependences of a random block graph, changed block by block.
struct random_blocks {
    sim::block_graph graph;
    sim::resource_numbers resources;
    std::vector<bool> counts;
    std::vector<sim::task_list const*> tasks;
    std::vector<sim::dependence const*> waits;
    std::list<sim::task_list> all_tasks; ///< ever made
    std::list<sim::dependence> all_waits;
    std::size_t most_tasks = 5;
    std::uint64_t longest = 10;

    random_blocks(std::mt19937_64& rng, std::uint32_t blocks, std::size_t most)
        : resources{static_cast<std::uint32_t>(1 + uniform_index(rng, 3)), static_cast<std::uint32_t>(uniform_index(rng, 3))}, most_tasks(most),
          longest(1 + uniform_index(rng, 2) * 20) {
        std::vector<sim::block_graph::arc> arcs;
        double const density = std::min(0.5, 3.0 / blocks);
        for (std::uint32_t to = 0; to < blocks; ++to)
            for (std::uint32_t from = 0; from <= to; ++from)
                if (bernoulli(rng, from == to ? 0.5 : density)) arcs.push_back({from, to});
        graph = graph_of(blocks, std::move(arcs));
        for (std::uint32_t b = 0; b < blocks; ++b) {
            counts.push_back(bernoulli(rng, 0.8));
            bool waits_for_others = false;
            for (auto const a : graph.into(b)) waits_for_others = waits_for_others || graph.arcs[a].from != b;
            graph.any[b] = waits_for_others && bernoulli(rng, 0.4);
        }
        tasks.resize(blocks);
        waits.resize(graph.arcs.size());
        for (std::uint32_t b = 0; b < blocks; ++b) draw_tasks(rng, b);
        for (std::uint32_t b = 0; b < blocks; ++b) draw_waits(rng, b);
    }

    /// Of a block that is to have tasks only where there are others to wait for, none where there are not.
    void draw_tasks(std::mt19937_64& rng, std::uint32_t b) {
        std::size_t others = 0;
        for (auto const a : graph.into(b))
            if (auto const from = graph.arcs[a].from; from != b && tasks[from]) others += tasks[from]->size();
        auto& list = all_tasks.emplace_back();
        auto n = bernoulli(rng, 0.1) || (graph.any[b] && others == 0) ? 0 : 1 + uniform_index(rng, most_tasks);
        while (n-- > 0) {
            auto const on = static_cast<std::uint32_t>(uniform_index(rng, resources.size()));
            list.add(on, on == resources.barrier() ? 0 : static_cast<std::int64_t>(uniform_index(rng, longest + 1)));
        }
        tasks[b] = &list;
    }
    /// What block `b` waits for.
    void draw_waits(std::mt19937_64& rng, std::uint32_t b) {
        auto const n = tasks[b]->size();
        std::vector<bool> waits_for_other(n);
        std::vector<std::vector<pair>> pairs;
        auto const arcs = graph.into(b);
        for (auto const a : arcs) {
            auto& mine = pairs.emplace_back();
            auto const from = graph.arcs[a].from;
            auto const m = tasks[from]->size();
            if (n == 0 || m == 0) continue;
            if (from != b && n <= m && bernoulli(rng, 0.3)) {
                for (std::uint32_t i = 0; i < n; ++i) mine.push_back({i, i});
            } else {
                double const density = bernoulli(rng, 0.2) ? 0 : 1.5 / m;
                for (std::uint32_t i = 0; i < n; ++i)
                    for (std::uint32_t p = 0; p < (from == b ? i : m); ++p)
                        if (bernoulli(rng, density)) mine.insert(mine.end(), bernoulli(rng, 0.1) ? 2 : 1, {i, p});
            }
            if (from != b)
                for (auto const& [i, p] : mine) waits_for_other[i] = true;
        }
        if (graph.any[b]) // every task waits for something of another block
            for (std::uint32_t i = 0; i < n; ++i) {
                if (waits_for_other[i]) continue;
                for (std::size_t k = 0; k < arcs.size(); ++k)
                    if (auto const from = graph.arcs[arcs[k]].from; from != b && tasks[from]->size() > 0) {
                        pairs[k].push_back({i, static_cast<std::uint32_t>(uniform_index(rng, tasks[from]->size()))});
                        break;
                    }
            }
        for (std::size_t k = 0; k < arcs.size(); ++k) {
            auto const from = graph.arcs[arcs[k]].from;
            std::vector<bool> bound(n);
            for (auto const& [i, p] : pairs[k]) bound[i] = true;
            bool const each = n > 0 && std::find(bound.begin(), bound.end(), false) == bound.end() && bernoulli(rng, 0.8);
            waits[arcs[k]] = &all_waits.emplace_back(waits_of(pairs[k], n, tasks[from]->size(), each));
        }
    }
    /// New tasks for some blocks, what they wait for, and what waits for them. Answers the blocks and arcs that changed.
    std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> alter(std::mt19937_64& rng) {
        std::vector<bool> block(graph.blocks), arc(graph.arcs.size());
        for (auto n = 1 + uniform_index(rng, 3); n-- > 0;) block[uniform_index(rng, graph.blocks)] = true;
        std::vector<bool> waiting(graph.blocks);
        for (std::uint32_t b = 0; b < graph.blocks; ++b) {
            // Where nothing is left to wait for, nothing may be.
            if (!block[b] && graph.any[b] && tasks[b]->size() > 0) {
                std::size_t others = 0;
                for (auto const a : graph.into(b))
                    if (graph.arcs[a].from != b) others += tasks[graph.arcs[a].from]->size();
                block[b] = others == 0;
            }
            if (!block[b]) continue;
            draw_tasks(rng, b);
            waiting[b] = true;
            for (auto const a : graph.out_of(b)) waiting[graph.arcs[a].to] = true;
        }
        for (std::uint32_t b = 0; b < graph.blocks; ++b)
            if (waiting[b]) {
                draw_waits(rng, b);
                for (auto const a : graph.into(b)) arc[a] = true;
            }
        std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> out;
        for (std::uint32_t b = 0; b < graph.blocks; ++b)
            if (block[b]) out.first.push_back(b);
        for (std::uint32_t a = 0; a < graph.arcs.size(); ++a)
            if (arc[a]) out.second.push_back(a);
        return out;
    }

    [[nodiscard]] sim::task_graph flat() const { return support::flatten(graph, tasks, waits, resources); }

    /// The limits that dependences give: what follows the tasks of each block, and those of devices that count.
    std::int64_t follows(sim::task_graph const& t, times& after) const {
        times tail(t.size());
        for (auto i = t.size(); i-- > 0;)
            for (auto const p : t.before(i)) tail[p] = std::max(tail[p], tail[i] + t.duration[i]);
        auto const first = support::first_tasks(tasks);
        auto after_device = std::numeric_limits<std::int64_t>::max();
        after.assign(graph.blocks, 0);
        for (std::uint32_t b = 0; b < graph.blocks; ++b) {
            if (first[b] != first[b + 1]) after[b] = *std::min_element(tail.begin() + first[b], tail.begin() + first[b + 1]);
            for (auto i = first[b]; i < first[b + 1]; ++i)
                if (counts[b] && t.resource[i] < resources.devices) after_device = std::min(after_device, tail[i]);
        }
        return after_device == std::numeric_limits<std::int64_t>::max() ? 0 : after_device;
    }
};

/// Proposals of random blocks, each held to the schedule of the whole.
void walk(std::mt19937_64& rng, discipline order, std::uint32_t blocks, std::size_t most_tasks, int steps, std::size_t& stopped) {
    random_blocks now(rng, blocks, most_tasks);
    sim::engine e(now.graph, now.resources, order);
    sim::scheduler scheduler;
    sim::schedule expected;
    for (std::uint32_t b = 0; b < now.graph.blocks; ++b) {
        if (!now.counts[b]) e.count(b, false);
        e.set_tasks(b, now.tasks[b]);
    }
    for (std::uint32_t a = 0; a < now.graph.arcs.size(); ++a) e.set_dependence(a, now.waits[a]);
    auto flat = now.flat();
    scheduler.run(flat, order, expected);
    REQUIRE(e.run({}) == expected.makespan);
    e.commit();
    auto const same = [&](sim::schedule const& s) {
        std::uint32_t t = 0;
        bool all = e.makespan() == s.makespan;
        for (std::uint32_t b = 0; b < now.graph.blocks; ++b)
            for (auto const& m : e.moments(b)) {
                all = all && m.ready == s.ready[t] && m.end == s.end[t];
                ++t;
            }
        return all && t == s.end.size();
    };
    REQUIRE(same(expected));
    for (int step = 0; step < steps; ++step) {
        INFO("step ", step);
        if (bernoulli(rng, 0.2)) e.give_back(0);
        auto const tasks = now.tasks;
        auto const waits = now.waits;
        auto const size = e.size();
        auto const heaviest = e.heaviest();
        bool const valid = e.valid();
        if (bernoulli(rng, 0.95)) {
            auto const [altered, arcs] = now.alter(rng);
            for (auto const b : altered) e.set_tasks(b, now.tasks[b]);
            for (auto const a : arcs) e.set_dependence(a, now.waits[a]);
        }
        flat = now.flat();
        sim::schedule proposed;
        scheduler.run(flat, order, proposed);
        REQUIRE(e.size() == flat.size());
        times after;
        sim::run_limits limits;
        auto const after_device = now.follows(flat, after);
        if (bernoulli(rng, 0.7)) limits = {0, after, after_device};
        auto const kind = uniform_index(rng, 4);
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        limits.bound = kind == 0   ? most
                       : kind == 1 ? proposed.makespan
                                   : std::max<std::int64_t>(0, kind == 2 ? proposed.makespan - 1 : proposed.makespan / 2);
        // More than once, as long as it is the same proposal.
        for (auto n = 1 + uniform_index(rng, 2); n-- > 0;)
            REQUIRE(e.run(limits) == (limits.bound >= proposed.makespan ? std::optional(proposed.makespan) : std::nullopt));
        stopped += limits.bound < proposed.makespan;
        if (bernoulli(rng, 0.5)) {
            e.commit();
            expected = proposed;
            if (limits.bound < expected.makespan) {
                if (bernoulli(rng, 0.5)) continue; // unknown until the next
                REQUIRE(e.run_whole() == expected.makespan);
                e.commit();
            }
        } else {
            e.roll_back();
            now.tasks = tasks;
            now.waits = waits;
            REQUIRE(e.size() == size);
            REQUIRE(e.heaviest() == heaviest);
            REQUIRE(e.valid() == valid);
            for (std::uint32_t b = 0; b < now.graph.blocks; ++b) REQUIRE(e.tasks(b) == tasks[b]);
        }
        if (e.valid()) REQUIRE(same(expected));
    }
}

} // namespace

TEST_CASE("engine: proposals of a few random blocks are scheduled as the whole is") {
    std::size_t stopped = 0;
    for (auto const order : both)
        for (std::uint64_t seed = 0; seed < 400; ++seed) {
            INFO("seed ", seed, " ", name_of(order));
            std::mt19937_64 rng(seed);
            walk(rng, order, static_cast<std::uint32_t>(1 + uniform_index(rng, 8)), 5, 30, stopped);
        }
    CHECK(stopped > 2000);
}

TEST_CASE("engine: proposals of many random blocks, where most of a schedule is kept") {
    std::size_t stopped = 0;
    for (auto const order : both)
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            INFO("seed ", seed, " ", name_of(order));
            std::mt19937_64 rng(seed);
            walk(rng, order, 60, 15, 30, stopped);
        }
    CHECK(stopped > 200);
}
