#include <parsearch/fabric/network/disjoint_rings.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>

#include "support/cases.hpp"
#include "support/networks.hpp"

using namespace parsearch;
using support::ten_gigabit;

namespace {

/// Each ring passes every server once, along links, and no direction of a link is in two rings.
void check_rings(fabric::network const& n, std::vector<std::vector<std::uint32_t>> const& made) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> left; // directions of links
    for (auto const& l : n.links) {
        ++left[{l.a, l.b}];
        ++left[{l.b, l.a}];
    }
    for (auto const& ring : made) {
        CHECK(ring.front() == 0);
        CHECK(std::set(ring.begin(), ring.end()).size() == n.servers);
        CHECK(ring.size() == n.servers);
        for (std::size_t i = 0; i < ring.size(); ++i) {
            auto const hop = std::pair(ring[i], ring[(i + 1) % ring.size()]);
            REQUIRE(left.contains(hop));
            REQUIRE(left[hop]-- > 0);
        }
    }
    auto with = n;
    with.rings = made;
    CHECK_NOTHROW(fabric::validate(with));
}

std::size_t rings_of(fabric::network const& n) {
    auto const made = fabric::disjoint_rings(n);
    check_rings(n, made);
    return made.size();
}

} // namespace

TEST_CASE("disjoint rings: as many as the links allow") {
    CHECK(rings_of(fabric::fully_connected(1, ten_gigabit)) == 0);
    CHECK(rings_of(fabric::fully_connected(2, ten_gigabit)) == 1);
    CHECK(rings_of(fabric::fully_connected(3, ten_gigabit)) == 2);
    CHECK(rings_of(fabric::fully_connected(5, ten_gigabit)) == 4);
    CHECK(rings_of(fabric::fully_connected(16, ten_gigabit)) == 14);
    CHECK(rings_of(fabric::torus({16}, ten_gigabit)) == 2);
    CHECK(rings_of(fabric::torus({4, 4}, ten_gigabit)) == 4);
    CHECK(rings_of(fabric::torus({4, 4, 4}, ten_gigabit)) == 6);
    CHECK(rings_of(fabric::circulant(12, {2, 3}, ten_gigabit)) == 4); // no step makes a ring of its own
    CHECK(rings_of(fabric::network{"pair", 2, 0, {{0, 1, ten_gigabit}, {1, 0, ten_gigabit}}, {}}) == 2);
    CHECK(rings_of(fabric::network{
              "triangle, twice",
              3,
              0,
              {{0, 1, ten_gigabit}, {0, 1, ten_gigabit}, {1, 2, ten_gigabit}, {2, 1, ten_gigabit}, {2, 0, ten_gigabit}, {0, 2, ten_gigabit}},
              {}}) == 4);
}

TEST_CASE("disjoint rings: none where there is none") {
    CHECK(rings_of(fabric::ideal_switch(8, ten_gigabit)) == 0);
    CHECK(rings_of(fabric::fat_tree(16, ten_gigabit)) == 0);
    CHECK(rings_of(fabric::network{"path", 3, 0, {{0, 1, ten_gigabit}, {1, 2, ten_gigabit}}, {}}) == 0);
    // Two triangles with a server in common have no way through both.
    CHECK(rings_of(fabric::network{
              "bow tie",
              5,
              0,
              {{0, 1, ten_gigabit}, {1, 2, ten_gigabit}, {2, 0, ten_gigabit}, {2, 3, ten_gigabit}, {3, 4, ten_gigabit}, {4, 2, ten_gigabit}},
              {}}) == 0);
    // Servers on a switch and in a ring: the ring alone.
    auto both = fabric::torus({6}, ten_gigabit);
    both.switches = 1;
    for (std::uint32_t s = 0; s < 6; ++s) both.links.push_back({s, 6, ten_gigabit});
    CHECK(rings_of(both) == 2);
}

TEST_CASE("disjoint rings of random networks") {
    std::uint64_t found = 0, bound = 0;
    for (std::uint64_t seed = 0; seed < support::cases<std::uint64_t>(200); ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const servers = static_cast<std::uint32_t>(6 + uniform_index(rng, 60));
        auto const degree = static_cast<std::uint32_t>(2 + uniform_index(rng, 4));
        auto const n = fabric::random_regular(servers, degree, seed, ten_gigabit);
        auto const made = rings_of(n);
        CHECK(made % 2 == 0);
        CHECK(made <= 2 * (degree / 2));
        if (degree % 2 == 0) { // with an odd degree not all servers have it
            found += made;
            bound += degree;
        }
    }
    CHECK(found * 10 >= bound * 9);
}

TEST_CASE("disjoint rings: options") {
    auto const full = fabric::fully_connected(9, ten_gigabit);
    CHECK(fabric::disjoint_rings(full, {.most = 3}).size() == 6);
    CHECK(fabric::disjoint_rings(full, {.most = 0}).empty());
    CHECK(fabric::disjoint_rings(fabric::network{"pair", 2, 0, {{0, 1, ten_gigabit}, {1, 0, ten_gigabit}}, {}}, {.most = 1}).size() == 1);
    CHECK(fabric::disjoint_rings(full, {.seed = 1}) == fabric::disjoint_rings(full, {.seed = 1}));
    CHECK(fabric::disjoint_rings(full, {.seed = 1}) != fabric::disjoint_rings(full, {.seed = 2}));
    CHECK(fabric::with_rings(full).rings == fabric::disjoint_rings(full));
    CHECK_THROWS_WITH_AS((void)fabric::disjoint_rings(full, {.attempts = 0}), "disjoint_rings: attempts is 0: must be at least 1", invalid_input);
    CHECK_THROWS_AS((void)fabric::disjoint_rings(fabric::network{"apart", 2, 0, {}, {}}), invalid_input);
}
