#include <parsearch/sim/delta/block_bounds.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/sim/schedule/schedule.hpp>

#include "support/block_tasks.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;
using sim::path_bounds;

namespace {

/// x -> first -> middle -> last: linear layers.
graph::dense_graph three_layers() {
    graph::operator_graph g;
    auto x = g.input("x", {{4, 4}});
    for (auto const* name : {"first", "middle", "last"}) x = g.add(name, ops::linear{.out = 4, .bias = false}, x);
    return graph::read_graph(g).graph;
}
std::vector<std::vector<std::uint32_t>> const classes{{1}, {2}, {3}};
std::vector<std::uint32_t> const class_of{sim::block_graph::none, 0, 1, 2};

/// Forward 100, backward 200, on the first device half of all; an update of 30 after a synchronisation of 40.
void fill(path_bounds& b, bool connected = true) {
    for (std::uint32_t op = 1; op < 4; ++op) b.of_operator(op) = {100, 200, 50, 60, false};
    for (std::uint32_t e = 1; e < 3; ++e) b.of_edge(e) = {connected, connected};
    for (std::uint32_t c = 0; c < 3; ++c) b.of_class(c) = {70, 30, true};
    b.find_tails();
}

} // namespace

TEST_CASE("bounds: a chain by hand") {
    auto const g = three_layers();
    auto const blocks = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, true);
    path_bounds b(g, blocks, class_of, 3);
    fill(b);
    auto const after = b.after();
    CHECK(after[blocks.operators[1].backward] == 70);
    CHECK(after[blocks.operators[2].backward] == 270);
    CHECK(after[blocks.operators[3].backward] == 470);
    CHECK(after[blocks.operators[3].forward] == 670);
    CHECK(after[blocks.operators[1].forward] == 870);
    CHECK(after[blocks.classes[2].sync] == 30);
    CHECK(b.after_device() == 70);
    CHECK(b.tail(1) == 970);
    // After a forward shard of the layer in the middle: the last one there and back, its own backward, that of the first.
    CHECK(b.after_work(2) == 50 + 60 + 60 + 70);
    // Sums that nobody reads may end when they like.
    b.of_operator(3).sums = true;
    b.find_tails();
    CHECK(b.after()[blocks.operators[3].forward] == 0);
    CHECK(b.tail(2) == 870);
}

TEST_CASE("bounds: where a shard has no part in an exchange, nothing is known to follow") {
    auto const g = three_layers();
    auto const blocks = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, true);
    path_bounds b(g, blocks, class_of, 3);
    fill(b, false);
    CHECK(b.after()[blocks.operators[3].backward] == 70);
    CHECK(b.after()[blocks.operators[1].forward] == 270); // its own backward
    CHECK(b.after_work(1) == 0);
}

TEST_CASE("bounds: without overlap every backward shard is followed by the longest synchronisation") {
    auto const g = three_layers();
    auto const blocks = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, false);
    path_bounds b(g, blocks, class_of, 3);
    fill(b);
    CHECK(b.after()[blocks.operators[1].backward] == 70);
    b.of_class(2).after_backward = 500;
    b.find_tails();
    CHECK(b.after()[blocks.operators[1].backward] == 500);
    b.of_class(2).synchronises = false;
    b.find_tails();
    CHECK(b.after()[blocks.operators[1].backward] == 70);
    CHECK(b.after()[blocks.operators[3].backward] == 500);
}

TEST_CASE("bounds: inference, and graphs without tasks") {
    auto const g = three_layers();
    auto const blocks = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, false, true);
    path_bounds b(g, blocks, class_of, 3);
    fill(b);
    CHECK(b.tail(1) == 300);
    CHECK(b.after_device() == 0);
    CHECK(b.after_work(1) == 100);
    graph::operator_graph without_tasks;
    without_tasks.input("x", {{4, 4}});
    auto const none = graph::read_graph(without_tasks).graph;
    std::vector<std::uint32_t> const no_class{sim::block_graph::none};
    auto const nothing = sim::make_block_graph(none, sim::shared_reads(none), std::vector<std::vector<std::uint32_t>>{}, no_class, true, true);
    path_bounds empty(none, nothing, no_class, 0);
    empty.find_tails();
    CHECK(empty.after_device() == 0);
}

TEST_CASE("bounds: what they say follows does follow, in schedules of either discipline") {
    std::size_t positive = 0, work = 0;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const options = support::random_options(rng);
        auto const p =
            support::random_workload(rng, options, {.devices = static_cast<std::uint32_t>(1 + uniform_index(rng, 6)), .kinds = bernoulli(rng, 0.5)});
        auto const& g = p.graph();
        auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
        auto const blocks = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, false);
        auto const placed = support::place_blocks(cache, blocks, s);
        path_bounds bounds(g, blocks, p.work->class_of, p.work->classes.size());
        support::note_facts(bounds, cache, blocks, placed);
        bounds.find_tails();
        auto const tasks = support::flatten(blocks, placed.tasks, placed.waits, cache.resources());
        auto const first = support::first_tasks(placed.tasks);
        std::vector<std::int64_t> tail(tasks.size());
        for (auto i = tasks.size(); i-- > 0;)
            for (auto const q : tasks.before(i)) tail[q] = std::max(tail[q], tail[i] + tasks.duration[i]);
        for (std::uint32_t b = 0; b < blocks.blocks; ++b)
            for (auto t = first[b]; t < first[b + 1]; ++t) {
                INFO("block ", b);
                REQUIRE(bounds.after()[b] <= tail[t]);
                positive += bounds.after()[b] > 0;
            }
        sim::schedule schedule;
        sim::scheduler{}.run(tasks, options.discipline, schedule);
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            auto const& at = blocks.operators[op];
            auto const shards = static_cast<std::uint32_t>(s[op].shards());
            if (at.forward == sim::block_graph::none) continue;
            INFO("operator ", op);
            auto soonest = std::numeric_limits<std::int64_t>::max();
            for (auto t = first[at.forward]; t < first[at.forward] + shards; ++t) {
                REQUIRE(schedule.start[t] + bounds.tail(op) <= schedule.makespan);
                REQUIRE(bounds.after_device() <= tail[t]);
                soonest = std::min(soonest, schedule.end[t]);
            }
            if (at.backward != sim::block_graph::none)
                for (auto t = first[at.backward]; t < first[at.backward] + shards; ++t) REQUIRE(bounds.after_device() <= tail[t]);
            REQUIRE(soonest + bounds.after_work(op) <= schedule.makespan);
            work += bounds.after_work(op) > bounds.after_device();
        }
    }
    CHECK(positive > 5000);
    CHECK(work > 100);
}

TEST_CASE("bounds: there and back in a chain by hand") {
    auto const g = three_layers();
    auto const blocks = sim::make_block_graph(g, sim::shared_reads(g), classes, class_of, true, true);
    path_bounds b(g, blocks, class_of, 3);
    using sums = std::vector<std::int64_t>;
    auto const there = [&](bool in_order) { return b.find_round_trips(in_order), sums{b.round_trip(1), b.round_trip(2), b.round_trip(3)}; };
    auto const back = [&](bool in_order) { return b.find_round_trips(in_order), sums{b.way_back(1), b.way_back(2), b.way_back(3)}; };
    fill(b);
    CHECK(there(true) == sums{300, 300, 300}); // nothing is everywhere or aligned
    CHECK(there(false) == sums{300, 300, 300});
    CHECK(back(true) == sums{270, 270, 270});
    CHECK(back(false) == sums{270, 270, 270});
    for (std::uint32_t op = 1; op < 4; ++op) b.of_operator(op).everywhere = true;
    for (std::uint32_t e = 1; e < 3; ++e) b.of_edge(e).aligned = true;
    for (bool const in_order : {false, true}) {
        CHECK(there(in_order) == sums{900, 600, 300});
        CHECK(back(in_order) == sums{270, 470, 670});
    }
    // The first layer's weights are read elsewhere, too.
    b.of_class(0).shared = true;
    for (bool const in_order : {false, true}) CHECK(back(in_order) == sums{200, 400, 600});
    b.of_class(0).shared = false;
    // The layer in the middle is not on all devices.
    b.of_operator(2).everywhere = false;
    CHECK(there(true) == sums{600, 600, 300});
    CHECK(back(true) == sums{270, 470, 470});
    // Nor is the first: what follows is the update of the last.
    b.of_operator(1).everywhere = false;
    b.of_class(2).after_backward = 35;
    CHECK(back(true) == sums{270, 270, 235});
    // Something moves between the last two.
    b.of_edge(2).aligned = false;
    CHECK(there(false) == sums{600, 300, 300});
    CHECK(back(false) == sums{270, 470, 235});
}

TEST_CASE("bounds: there and back along several ways counts every operator once") {
    graph::operator_graph made;
    auto const x = made.input("x", {{4, 4}});
    auto const a = made.add("a", ops::linear{.out = 4, .bias = false}, x), b = made.add("b", ops::linear{.out = 4, .bias = false}, x);
    made.add("d", ops::add{}, made.add("c", ops::relu{}, a), made.add("both", ops::add{}, a, b));
    auto const g = graph::read_graph(made).graph;
    std::vector<std::uint32_t> number;
    for (auto const* name : {"a", "b", "c", "both", "d"}) number.push_back(support::op_named(g, name));
    std::vector<std::uint32_t> member(g.size(), sim::block_graph::none);
    member[number[0]] = 0;
    member[number[1]] = 1;
    auto const blocks =
        sim::make_block_graph(g, sim::shared_reads(g), std::vector<std::vector<std::uint32_t>>{{number[0]}, {number[1]}}, member, true, true);
    path_bounds bounds(g, blocks, member, 2);
    for (auto const op : number) bounds.of_operator(op) = {100, 200, 0, 0, false};
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) bounds.of_edge(e) = {true, true, true};
    bounds.of_class(0) = {70, 30, true};
    bounds.of_class(1) = {10, 5, true};
    bounds.find_round_trips(false);
    CHECK(bounds.round_trip(number[0]) == 4 * 300);
    CHECK(bounds.round_trip(number[1]) == 3 * 300);
    CHECK(bounds.way_back(number[4]) == 5 * 200 + 10); // whichever layer comes last
    CHECK(bounds.way_back(number[2]) == 2 * 200 + 70);
}

TEST_CASE("bounds: what they say lies between a shard's passes and after them does") {
    struct {
        std::size_t there = 0, back = 0, exact = 0;
    } counts[2];
    for (std::uint64_t seed = 0; seed < 800; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.training = true;
        auto const machine = static_cast<std::uint32_t>(bernoulli(rng, 0.8) ? 1 + uniform_index(rng, 4) : 5 + uniform_index(rng, 4));
        auto const p = support::random_workload(rng, options, {.devices = machine, .operators = 14, .kinds = bernoulli(rng, 0.3)},
                                                support::mixed_oracle{bernoulli(rng, 0.7) ? 1 : 100});
        auto const s = bernoulli(rng, 0.8) ? support::mostly_data_parallel(rng, p, 0.15)
                                           : support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
        auto const blocks = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, false);
        auto const placed = support::place_blocks(cache, blocks, s);
        path_bounds bounds(p.graph(), blocks, p.work->class_of, p.work->classes.size());
        support::note_facts(bounds, cache, blocks, placed);
        auto const first = support::first_tasks(placed.tasks);
        sim::schedule schedule;
        sim::scheduler{}.run(support::flatten(blocks, placed.tasks, placed.waits, cache.resources()), options.discipline, schedule);
        for (bool const in_order : {false, true}) {
            if (in_order && options.discipline == sim::discipline::fifo) continue;
            bounds.find_round_trips(in_order);
            auto& count = counts[in_order];
            for (std::uint32_t op = 0; op < p.size(); ++op) {
                auto const& at = blocks.operators[op];
                if (at.backward == sim::block_graph::none) continue;
                INFO("in_order ", in_order, " operator ", op);
                auto const c = p.work->class_of[op];
                auto const& mine = bounds.of_operator(op);
                count.there += bounds.round_trip(op) > mine.forward + mine.backward;
                count.back += bounds.way_back(op) > mine.backward + (c == sim::block_graph::none ? 0 : bounds.of_class(c).after_backward);
                for (std::uint32_t n = 0; n < static_cast<std::uint32_t>(s[op].shards()); ++n) {
                    auto const there = first[at.forward] + n, back = first[at.backward] + n;
                    REQUIRE(schedule.end[back] - schedule.start[there] >= bounds.round_trip(op));
                    REQUIRE(schedule.makespan - schedule.start[back] >= bounds.way_back(op));
                    count.exact +=
                        bounds.round_trip(op) > mine.forward + mine.backward && schedule.end[back] - schedule.start[there] == bounds.round_trip(op);
                }
            }
        }
    }
    for (auto const& count : counts) {
        CHECK(count.there > 500);
        CHECK(count.back > 500);
        CHECK(count.exact > 50);
    }
}
