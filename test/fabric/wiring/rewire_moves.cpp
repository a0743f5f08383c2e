#include <parsearch/fabric/wiring/rewire_moves.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/wiring/bonded_links.hpp>
#include <parsearch/fabric/wiring/demand.hpp>

#include "support/networks.hpp"

using namespace parsearch;
using namespace parsearch::fabric;
using support::degrees;

namespace {
constexpr link_description gigabyte{{1e9}, {}};

using wire_ends = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The ends of every wire, a bundle's as many times as it has wires, in order.
wire_ends wires_of(network const& n) {
    wire_ends out;
    for (auto const& l : n.links) out.insert(out.end(), l.wires, std::minmax(l.a, l.b));
    std::ranges::sort(out);
    return out;
}

/// How many wires two networks have in common.
std::size_t common_wires(network const& x, network const& y) {
    wire_ends out;
    std::ranges::set_intersection(wires_of(x), wires_of(y), std::back_inserter(out));
    return out.size();
}
} // namespace

TEST_CASE("exchanged wires: two of them change, degrees and connection stay") {
    int changed = 0;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const servers = 4 + static_cast<std::uint32_t>(uniform_index(rng, 8));
        auto const n = seed % 3 == 0 ? circulant(servers, {1, 1}, gigabyte) : random_regular(servers, servers % 2 ? 2 : 3, seed, gigabyte);
        auto const next = exchange_wires(n, rng);
        if (!next) continue;
        ++changed;
        REQUIRE_NOTHROW(validate(*next));
        REQUIRE(degrees(*next) == degrees(n));
        REQUIRE(connected(*next));
        REQUIRE(next->rings == n.rings);
        REQUIRE(common_wires(n, *next) == wires_of(n).size() - 2);
    }
    CHECK(changed > 1000);
}

TEST_CASE("exchanged wires: bundles gain and lose wires, and come back to what they were") {
    int bonded = 0, parted = 0, kept = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        demand d(6);
        for (std::uint32_t a = 0; a < 6; ++a) d.add(a, (a + 1) % 6, static_cast<byte_count>(1 + uniform_index(rng, 1000)));
        auto n = bonded_links(d, 5, gigabyte);
        n.links.push_back({0, 3, {{7.5e8}, {}}}); // of another rate: no wire of these
        auto const begun = wires_of(n);
        for (int i = 0; i < 40; ++i) {
            auto next = exchange_wires(n, rng);
            if (!next) continue;
            REQUIRE_NOTHROW(validate(*next));
            REQUIRE(degrees(*next) == degrees(n));
            REQUIRE(common_wires(n, *next) == begun.size() - 2);
            REQUIRE(std::ranges::count(next->links, network_link{0, 3, {{7.5e8}, {}}}) == 1);
            std::set<std::pair<std::uint32_t, std::uint32_t>> pairs; // wires like each other are bonded
            for (auto const& l : next->links)
                if (l.each.rate.bytes_per_second >= 1e9) REQUIRE(pairs.insert(std::minmax(l.a, l.b)).second);
            bonded += next->links.size() < n.links.size();
            parted += next->links.size() > n.links.size();
            n = *std::move(next);
            kept += wires_of(n) == begun;
        }
    }
    CHECK(bonded > 100);
    CHECK(parted > 100);
    CHECK(kept > 0);
}

TEST_CASE("exchanged wires: only those between servers move") {
    std::mt19937_64 rng(7);
    CHECK(!exchange_wires(ideal_switch(6, gigabyte), rng)); // none
    auto n = ideal_switch(6, gigabyte);
    n.links.push_back({0, 1, gigabyte});
    n.links.push_back({2, 3, gigabyte});
    for (int i = 0; i < 50; ++i)
        if (auto const next = exchange_wires(n, rng))
            for (std::size_t l = 0; l < 6; ++l) REQUIRE(next->links[l] == n.links[l]);
}

TEST_CASE("swapped servers: the network is the same but for two numbers, rings keep their links") {
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const n = seed % 2 == 0 ? circulant(6, {1, 2}, gigabyte) : fat_tree(6, gigabyte);
        auto const next = swap_servers(n, rng);
        REQUIRE(next);
        REQUIRE_NOTHROW(validate(*next));
        // Exactly one swap of two servers makes one of the other.
        std::size_t found = 0;
        for (std::uint32_t a = 0; a < 6; ++a)
            for (std::uint32_t b = a + 1; b < 6; ++b) {
                auto const as = [&](std::uint32_t v) { return v == a ? b : v == b ? a : v; };
                bool same = true;
                for (std::size_t l = 0; l < n.links.size(); ++l)
                    same = same && next->links[l].a == as(n.links[l].a) && next->links[l].b == as(n.links[l].b);
                for (std::size_t r = 0; r < n.rings.size(); ++r)
                    for (std::size_t i = 0; i < n.rings[r].size(); ++i) same = same && next->rings[r][i] == as(n.rings[r][i]);
                if (!same) continue;
                ++found;
                pairs.insert({a, b});
            }
        REQUIRE(found == 1);
    }
    CHECK(pairs.size() == 15);
    std::mt19937_64 rng(1);
    CHECK(!swap_servers(network{.name = {}, .servers = 1}, rng));
}

TEST_CASE("replaced rings: the links of a ring follow it, both directions stay one ring") {
    int changed = 0, wired = 0;
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const servers = 5 + static_cast<std::uint32_t>(uniform_index(rng, 12));
        auto n = circulant(servers, {1, 2}, gigabyte);
        if (bernoulli(rng, 0.2)) n.links.pop_back(); // a hop of step 2 without a link
        auto const next = replace_ring(n, rng);
        if (!next) continue;
        ++changed;
        REQUIRE_NOTHROW(validate(*next));
        REQUIRE(degrees(*next) == degrees(n));
        REQUIRE(next->rings.size() == n.rings.size());
        REQUIRE(next->rings != n.rings);
        for (auto const& ring : next->rings) { // each in both directions, once per wired step
            auto const back = std::vector<std::uint32_t>(ring.rbegin(), ring.rend());
            REQUIRE(std::any_of(next->rings.begin(), next->rings.end(), [&](auto const& other) { return fabric::detail::same_cycle(other, back); }));
        }
        if (same_wiring(n, *next)) continue;
        ++wired;
        for (std::size_t r = 0; r < n.rings.size(); ++r) {
            if (next->rings[r] == n.rings[r]) continue;
            auto const& ring = next->rings[r];
            for (std::size_t i = 0; i < ring.size(); ++i)
                REQUIRE(std::any_of(next->links.begin(), next->links.end(),
                                    [&](auto const& l) { return std::minmax(l.a, l.b) == std::minmax(ring[i], ring[(i + 1) % ring.size()]); }));
        }
    }
    CHECK(changed > 500);
    CHECK(wired > 300);
    std::mt19937_64 rng(1);
    // Links of several rates stay where they are.
    auto bundled = circulant(7, {1}, gigabyte);
    bundled.links.front() = bundle_of(bundled.links.front(), 3);
    for (int i = 0; i < 20; ++i)
        if (auto const next = replace_ring(bundled, rng)) CHECK(next->links == bundled.links);
    CHECK(!replace_ring(circulant(4, {1}, gigabyte), rng)); // there is no other ring
    CHECK(!replace_ring(fully_connected(6, gigabyte), rng));
}
