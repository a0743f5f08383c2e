#include <parsearch/fabric/servers/wire_failures.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::fabric;
using support::refusal;

namespace {
constexpr bandwidth wire{1e9};
constexpr link_description each{wire, picoseconds{10}};

// Whether all servers reach each other, by a closure over pairs.
bool all_reach(network const& n) {
    std::vector<std::vector<bool>> to(n.vertices(), std::vector<bool>(n.vertices(), false));
    for (auto const& l : n.links) to[l.a][l.b] = to[l.b][l.a] = true;
    for (std::uint32_t v = 0; v < n.vertices(); ++v)
        for (std::uint32_t i = 0; i < n.vertices(); ++i)
            for (std::uint32_t j = 0; j < n.vertices(); ++j)
                if (to[i][v] && to[v][j]) to[i][j] = true;
    for (std::uint32_t i = 0; i < n.servers; ++i)
        for (std::uint32_t j = 0; j < n.servers; ++j)
            if (i != j && !to[i][j]) return false;
    return true;
}
} // namespace

TEST_CASE("wire failures: what is left of a link, of rings, and of switches") {
    // A ring of four servers with its only ring of neighbours: it takes the way round.
    auto const ring = circulant(4, {1}, each);
    REQUIRE(ring.rings.size() > 0);
    auto left = without_wire(ring, 0, wire);
    REQUIRE(left);
    CHECK(left->links.size() == 3);
    CHECK(left->rings.size() == ring.rings.size());
    // Of two kinds of jumps the rings of one are given up.
    auto const both = circulant(5, {1, 2}, each);
    for (std::uint32_t link = 0; link < both.links.size(); ++link) {
        left = without_wire(both, link, wire);
        REQUIRE(left);
        CHECK(left->rings.size() == both.rings.size() / 2);
        for (auto const& r : left->rings) CHECK(std::ranges::find(both.rings, r) != both.rings.end());
    }
    // A link of three wires loses a third, and its rings stay.
    auto wide = ring;
    for (auto& l : wide.links) l.each.rate = {3e9};
    wide.links[2].each.reduction = {6e9};
    left = without_wire(wide, 2, wire);
    REQUIRE(left);
    CHECK(left->links[2].each.rate.bytes_per_second == doctest::Approx(2e9));
    CHECK(left->links[2].each.reduction.bytes_per_second == doctest::Approx(4e9));
    left->links[2] = wide.links[2];
    CHECK(*left == wide);
    // Two links between the same: the second carries the ring.
    auto twice = ring;
    twice.links.push_back(ring.links[1]);
    left = without_wire(twice, 1, wire);
    REQUIRE(left);
    CHECK(left->rings == ring.rings);
    CHECK(left->links.size() == 4);
    // A server with one link is cut off; a switch that hangs on one is gone with it.
    network tree{.name = "tree", .servers = 2, .switches = 2, .links = {{0, 2, each}, {1, 2, each}, {2, 3, each}}};
    CHECK_FALSE(without_wire(tree, 0, wire));
    CHECK_FALSE(without_wire(tree, 1, wire));
    left = without_wire(tree, 2, wire);
    REQUIRE(left);
    CHECK(*left == network{.name = "tree", .servers = 2, .switches = 1, .links = {{0, 2, each}, {1, 2, each}}});
    // The other end first, and switches with higher numbers move up.
    network hung{.name = "hung", .servers = 2, .switches = 2, .links = {{3, 2, each}, {0, 3, each}, {1, 3, each}}};
    left = without_wire(hung, 0, wire);
    REQUIRE(left);
    CHECK(*left == network{.name = "hung", .servers = 2, .switches = 1, .links = {{0, 2, each}, {1, 2, each}}});

    CHECK(refusal([&] { return without_wire(ring, 4, wire); }) == "without_wire: link 4 of 4: must be one of them");
    CHECK(refusal([&] { return without_wire(ring, 0, {0}); }) == "without_wire: a wire of 0 B/s: must be positive");
}

TEST_CASE("wire failures: random networks, against all pairs") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        network n{.servers = static_cast<std::uint32_t>(2 + uniform_index(rng, 5)), .switches = static_cast<std::uint32_t>(uniform_index(rng, 3))};
        for (std::uint32_t v = 1; v < n.vertices(); ++v) n.links.push_back({static_cast<std::uint32_t>(uniform_index(rng, v)), v, each});
        for (auto more = uniform_index(rng, 4); more > 0; --more) {
            auto const a = static_cast<std::uint32_t>(uniform_index(rng, n.vertices())),
                       b = static_cast<std::uint32_t>(uniform_index(rng, n.vertices()));
            if (a != b) n.links.push_back({a, b, each});
        }
        for (std::uint32_t link = 0; link < n.links.size(); ++link) {
            auto by_hand = n;
            by_hand.links.erase(by_hand.links.begin() + link);
            auto const left = without_wire(n, link, wire);
            REQUIRE(left.has_value() == all_reach(by_hand));
            if (!left) continue;
            validate(*left);
            CHECK(left->servers == n.servers);
            std::vector<bool> reached(n.vertices(), false);
            reached[0] = true;
            for (std::uint32_t round = 0; round < n.vertices(); ++round)
                for (auto const& l : by_hand.links) reached[l.a] = reached[l.b] = reached[l.a] || reached[l.b];
            CHECK(left->switches == std::ranges::count(reached, true) - n.servers);
            std::erase_if(by_hand.links, [&](auto const& l) { return !reached[l.a]; });
            for (auto& l : by_hand.links)
                for (auto* end : {&l.a, &l.b}) *end = static_cast<std::uint32_t>(std::count(reached.begin(), reached.begin() + *end, true));
            CHECK(left->links == by_hand.links);
        }
    }
}

TEST_CASE("wire failures: a plan takes the time that it takes on the network without the wire") {
    std::mt19937_64 rng(7);
    auto const n = random_regular(6, 3, 1, each);
    fabric_problem const problem(models::mlp({.features = 64, .hidden = {64, 64}, .classes = 8, .batch = 24}), n.servers,
                                 {.servers = {.device = topology::a100_sxm, .host_link = each}});
    auto const placed = problem.on(n).problem;
    auto const strategy = data_parallel(placed);
    auto const time = placed.evaluator()(strategy);
    auto const time_on = [&](network const& left) { return problem.on(left).problem.evaluator()(strategy); };
    auto const all = single_wire_failures(n, wire, time_on);
    REQUIRE(all.size() == n.links.size());
    for (std::uint32_t link = 0; link < all.size(); ++link) {
        CHECK(all[link].link == link);
        auto const left = without_wire(n, link, wire);
        REQUIRE(left.has_value() == all[link].time.has_value());
        if (left) CHECK(*all[link].time == time_on(*left));
    }
    auto const summary = summary_of(all, n.links.size(), time);
    CHECK(summary.tried == n.links.size());
    CHECK(summary.cut_off == 0);
    CHECK(summary.worst >= summary.mean);
    CHECK(summary.worst > 1);
    REQUIRE(summary.worst_link);
    CHECK(static_cast<double>(all[*summary.worst_link].time->count()) / static_cast<double>(time.count()) == summary.worst);

    // Stopped, those are left out that were not tried; the first are far apart.
    for (std::size_t most = 0; most <= n.links.size(); ++most) {
        std::size_t tried = 0;
        std::stop_source source;
        if (most == 0) source.request_stop();
        auto const some = single_wire_failures(
            n, wire,
            [&](network const& left) {
                if (++tried == most) source.request_stop();
                return time_on(left);
            },
            source.get_token());
        REQUIRE(some.size() == most);
        for (auto const& f : some) CHECK(f == all[f.link]);
        if (most == 2) CHECK(some[1].link >= n.links.size() / 3);
        std::size_t until = 0;
        auto const cut = single_wire_failures(n, wire, [&](network const& left) {
            if (++until > most) throw interrupted();
            return time_on(left);
        });
        CHECK(cut == some);
    }

    // One link to each server: all cut off.
    auto const star = ideal_switch(4, each);
    auto const none = summary_of(single_wire_failures(star, wire, time_on), star.links.size(), time);
    CHECK(none == failure_summary{.links = 4, .tried = 4, .cut_off = 4});
}
