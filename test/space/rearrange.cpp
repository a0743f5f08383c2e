#include <parsearch/space/rearrange.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/hand_network.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {

using changes = std::vector<change<space::configuration>>;

std::set<std::int32_t> device_set(space::configuration const& c) {
    std::set<std::int32_t> out;
    for (std::int64_t n = 0; n < c.shards(); ++n) out.insert(c.device(n));
    return out;
}

std::size_t shared(space::configuration const& a, space::configuration const& b) {
    auto const x = device_set(a), y = device_set(b);
    return static_cast<std::size_t>(std::count_if(x.begin(), x.end(), [&](auto d) { return y.contains(d); }));
}

graph::dense_graph two_layers() {
    graph::operator_graph net;
    auto x = net.add("fc1", ops::linear{.out = 8}, net.input("x", {{8, 8}}));
    x = net.add("relu", ops::relu{}, x);
    net.add("fc2", ops::linear{.out = 8}, x);
    return graph::read_graph(net).graph;
}

/// Calls `f(graph, space, strategy, rng)` for random networks, strategies of the space, and all options that change how it is numbered.
template <class F> void on_random_strategies(std::uint64_t seeds, F const& f) {
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        std::size_t const devices = std::vector<std::size_t>{1, 2, 4, 6, 8}[uniform_index(rng, 5)];
        space::strategy_space const space(
            g, devices,
            {.placements = bernoulli(rng, 0.5) ? space::placements::strided : space::placements::contiguous, .all_orders = bernoulli(rng, 0.5)});
        space::flat_strategy s;
        for (std::size_t op = 0; op < g.size(); ++op) s.push_back(space.of(op)[uniform_index(rng, space.of(op).size())]);
        f(g, space, s, rng);
    }
}

} // namespace

TEST_CASE("operator_space: configurations are numbered by combination of degrees, then by placement") {
    std::size_t combinations = 0;
    on_random_strategies(200, [&](auto const& g, space::strategy_space const& space, auto const&, auto&) {
        for (std::size_t op = 0; op < g.size(); ++op) {
            auto const& of = space.of(op);
            std::size_t at = 0;
            for (std::size_t split = 0; split < of.splits(); ++split) {
                auto const [first, last] = of.placements_of(split);
                REQUIRE(first == at);
                REQUIRE(first < last);
                for (; at < last; ++at) {
                    REQUIRE(of.split_of(of[at]) == split);
                    REQUIRE(of[at].shards() == of.shards_of(split));
                    REQUIRE(of[at].degree == of[first].degree);
                }
            }
            REQUIRE(at == of.size());
            combinations += of.splits();
            auto other = of[0];
            other.degree[0] = 5; // no extent of these networks has this divisor
            REQUIRE(of.split_of(other) == of.splits());
        }
    });
    CHECK(combinations > 2000);
}

TEST_CASE("migrate: the degrees stay; every placement of them comes up alike often") {
    auto const g = two_layers();
    space::strategy_space const space(g, 4);
    space::migrate_move const move;
    space::flat_strategy s;
    for (std::size_t op = 0; op < g.size(); ++op) s.push_back(space::whole(g.operations[op]));
    auto const fc1 = support::op_named(g, "fc1");
    s[fc1].degree[0] = 2;
    s[fc1].stride[0] = 1;
    std::mt19937_64 rng(4);
    std::map<std::set<std::int32_t>, int> seen;
    int const draws = 8000;
    for (int n = 0; n < draws; ++n) {
        changes out;
        auto const index = move(space, s, rng, out);
        REQUIRE(index.has_value() == !out.empty());
        if (out.empty()) continue; // the graph input was drawn
        REQUIRE(out.size() == 1);
        REQUIRE(out[0].configuration == space.of(out[0].op)[*index]);
        REQUIRE(out[0].configuration.degree == s[out[0].op].degree);
        if (out[0].op == fc1) ++seen[device_set(out[0].configuration)];
    }
    // One of four operators is drawn.
    CHECK(seen.size() == 4);
    for (auto const& [where, count] : seen) CHECK(std::abs(count - draws / 16) < 150);
    // Degrees that are not in the space.
    s[fc1].degree[0] = 8;
    for (int n = 0; n < 100; ++n) {
        changes out;
        (void)move(space, s, rng, out);
        CHECK((out.empty() || out[0].op != fc1));
    }
}

TEST_CASE("migrate and resplit propose configurations of the space, one degree or another") {
    std::size_t migrated = 0, split = 0;
    on_random_strategies(300, [&](auto const&, space::strategy_space const& space, auto const& s, auto& rng) {
        space::migrate_move const migrate;
        space::resplit_move resplit;
        for (int n = 0; n < 20; ++n) {
            changes out;
            if (auto const index = migrate(space, s, rng, out)) {
                REQUIRE(space.of(out[0].op)[*index] == out[0].configuration);
                REQUIRE(out[0].configuration.degree == s[out[0].op].degree);
                ++migrated;
            }
            out.clear();
            if (auto const index = resplit(space, s, rng, out)) {
                REQUIRE(out.size() == 1);
                REQUIRE(space.of(out[0].op)[*index] == out[0].configuration);
                REQUIRE(out[0].configuration.degree != s[out[0].op].degree);
                ++split;
            }
        }
    });
    CHECK(migrated > 1000);
    CHECK(split > 1000);
}

TEST_CASE("resplit: no placement of the new degrees shares more devices with the old") {
    std::size_t proposed = 0, alike = 0, more = 0;
    on_random_strategies(200, [&](auto const&, space::strategy_space const& space, auto const& s, auto& rng) {
        space::resplit_move move;
        for (int n = 0; n < 10; ++n) {
            changes out;
            if (!move(space, s, rng, out)) continue;
            auto const& [op, to] = out[0];
            auto const& from = s[op];
            auto const& of = space.of(op);
            std::size_t most = 0;
            auto const [first, last] = of.placements_of(of.split_of(to));
            for (auto i = first; i < last; ++i) most = std::max(most, shared(from, of[i]));
            REQUIRE(shared(from, to) == most);
            ++proposed;
            alike += from.shards() == to.shards() && device_set(from) == device_set(to);
            more += most > 1;
        }
    });
    CHECK(proposed > 500);
    CHECK(alike > 20);
    CHECK(more > 100);
}

TEST_CASE("resplit: every other combination of degrees comes up, and of as many shards more often") {
    auto const g = two_layers();
    space::strategy_space const space(g, 4);
    auto const fc1 = support::op_named(g, "fc1");
    space::flat_strategy s;
    for (std::size_t op = 0; op < g.size(); ++op) s.push_back(space::whole(g.operations[op]));
    s[fc1].degree = {4, 1, 1};
    s[fc1].stride = {1, 0, 0};
    std::mt19937_64 rng(2);
    space::resplit_move move;
    std::map<std::int64_t, int> by_shards;
    std::set<std::size_t> splits;
    int of_fc1 = 0;
    for (int n = 0; n < 8000; ++n) {
        changes out;
        if (!move(space, s, rng, out) || out[0].op != fc1) continue;
        ++of_fc1;
        splits.insert(space.of(fc1).split_of(out[0].configuration));
        ++by_shards[out[0].configuration.shards()];
    }
    CHECK(splits.size() == space.of(fc1).splits() - 1);
    // Ten combinations: whole, three of two shards, six of four. Of the nine others five have four shards: 1/2 + 1/2 * 5/9.
    CHECK(space.of(fc1).splits() == 10);
    CHECK(std::abs(by_shards[4] - of_fc1 * 7 / 9) < 120);
    CHECK(std::abs(by_shards[1] - of_fc1 / 18) < 60);
}

TEST_CASE("swap: configurations, or else devices, change places; twice is nothing") {
    std::size_t whole = 0, devices = 0;
    on_random_strategies(400, [&](auto const&, space::strategy_space const& space, space::flat_strategy const& s, auto& rng) {
        space::swap_move const move;
        for (int n = 0; n < 10; ++n) {
            changes out;
            bool const some = move(space, s, rng, out);
            REQUIRE(some == !out.empty());
            if (!some) continue;
            REQUIRE(out.size() == 2);
            REQUIRE(out[0].op != out[1].op);
            for (auto const& c : out) REQUIRE(space.of(c.op).contains(c.configuration));
            auto const &a = s[out[0].op], &b = s[out[1].op];
            if (out[0].configuration == b && out[1].configuration == a) {
                REQUIRE(!(a == b));
                ++whole;
                continue;
            }
            REQUIRE(out[0].configuration.degree == a.degree);
            REQUIRE(out[1].configuration.degree == b.degree);
            REQUIRE(device_set(out[0].configuration) == device_set(b));
            REQUIRE(device_set(out[1].configuration) == device_set(a));
            ++devices;
        }
    });
    CHECK(whole > 500);
    CHECK(devices > 50);
}

TEST_CASE("rearranging moves have nothing to propose where nothing can change") {
    auto const g = two_layers();
    space::strategy_space const one(g, 1);
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    std::mt19937_64 rng(1);
    space::resplit_move resplit;
    for (int n = 0; n < 50; ++n) {
        changes out;
        CHECK_FALSE(space::migrate_move()(one, s, rng, out));
        CHECK_FALSE(resplit(one, s, rng, out));
        CHECK_FALSE(space::swap_move()(one, s, rng, out));
        CHECK(out.empty());
    }
    // All alike: nothing to exchange.
    space::strategy_space const four(g, 4);
    changes out;
    for (int n = 0; n < 50; ++n) CHECK_FALSE(space::swap_move()(four, s, rng, out));
}
