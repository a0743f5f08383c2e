#include <parsearch/fabric/network/regular_networks.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/paths/coin_change.hpp>

#include "support/networks.hpp"

using namespace parsearch;
using namespace parsearch::fabric;
using support::degrees;

namespace {
constexpr link_description cable{{12.5e9}, std::chrono::microseconds{1}};

std::vector<std::uint32_t> distances(network const& n, std::uint32_t from) { return hops_from(from, neighbours_of(n.vertices(), n.links)); }
} // namespace

TEST_CASE("networks: ideal switch and fully connected") {
    auto const star = ideal_switch(5, cable);
    CHECK(star.links.size() == 5);
    CHECK(distances(star, 2) == std::vector<std::uint32_t>{2, 2, 0, 2, 2, 1});
    auto const all = fully_connected(5, cable);
    CHECK(all.links.size() == 10);
    CHECK(degrees(all) == std::vector<std::uint32_t>(5, 4));
    CHECK(fully_connected(1, cable).links.empty());
    CHECK_THROWS_WITH_AS((void)ideal_switch(0, cable), doctest::Contains("ideal switch of 0 servers"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fully_connected(4097, cable), doctest::Contains("4097 servers"), invalid_input);
    CHECK_THROWS_WITH_AS((void)ideal_switch(2, {}), doctest::Contains("network ideal switch, link 0 has a bandwidth of 0"), invalid_input);
}

TEST_CASE("networks: fat trees of any number of servers are never blocked between layers") {
    for (std::uint32_t servers = 1; servers <= 150; ++servers) {
        CAPTURE(servers);
        auto const n = fat_tree(servers, cable);
        std::uint32_t k = 2;
        while (k * k * k / 4 < servers) k += 2;
        auto const half = k / 2, edges = (servers + half - 1) / half;
        CHECK(n.name == text("fat tree, k = ", k));
        auto const degree = degrees(n);
        for (std::uint32_t v = 0; v < n.vertices(); ++v) CHECK(degree[v] <= (v < servers ? 1 : k)); // ports
        // As many links up as down from every edge and aggregation switch that is not the last layer; hops by place.
        for (std::uint32_t a = 0; a < servers; ++a) {
            auto const hops = distances(n, a);
            for (std::uint32_t b = 0; b < servers; ++b)
                REQUIRE(hops[b] == (a == b ? 0 : a / half == b / half ? 2 : a / (half * half) == b / (half * half) ? 4 : 6));
        }
        if (edges == 1) CHECK(n.switches == 1);
        if (servers == k * k * k / 4 && servers > 2) {
            CHECK(n.switches == k * k + half * half);
            CHECK(n.links.size() == 3 * servers);
        }
    }
    auto const pod = fat_tree(7, cable, 6); // three edge switches, three aggregations, no core
    CHECK(pod.switches == 6);
    CHECK(pod.links.size() == 7 + 9);
    CHECK_THROWS_WITH_AS((void)fat_tree(17, cable, 4), doctest::Contains("fat tree of k = 4 for 17 servers"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fat_tree(1, cable, 3), doctest::Contains("must be even"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fat_tree(65537, cable), doctest::Contains("k = 66"), invalid_input);
}

TEST_CASE("networks: racks have the ratio asked for") {
    for (double const ratio : {1.0, 2.0, 2.5, 3.0, 8.0, 20.0}) {
        CAPTURE(ratio);
        auto const n = oversubscribed(20, cable, {.servers_per_rack = 8, .ratio = ratio});
        std::map<std::uint32_t, double> up;
        for (auto const& l : n.links) {
            if (l.a < 20) {
                CHECK(l.b == 20 + l.a / 8);
                CHECK(l.each == cable);
            } else {
                CHECK(l.each.rate.bytes_per_second <= cable.rate.bytes_per_second);
                up[l.a] += l.each.rate.bytes_per_second;
            }
        }
        CHECK(up.size() == 3);
        for (auto const& [rack, rate] : up) CHECK(rate * ratio == doctest::Approx(8 * cable.rate.bytes_per_second).epsilon(1e-12));
    }
    CHECK(oversubscribed(8, cable, {.servers_per_rack = 8}).switches == 1);
    CHECK(oversubscribed(9, cable, {.servers_per_rack = 8}).switches == 2 + 8);
    CHECK_THROWS_WITH_AS((void)oversubscribed(8, cable, {}), doctest::Contains("racks of 0 servers"), invalid_input);
    CHECK_THROWS_WITH_AS((void)oversubscribed(8, cable, {8, 0.5}), doctest::Contains("oversubscribed 0.5 times"), invalid_input);
}

TEST_CASE("networks: the distances of a torus are the sums of those of its rings") {
    for (std::vector<std::uint32_t> const& extents : {std::vector<std::uint32_t>{5}, {2, 3}, {4, 4}, {1, 6}, {3, 2, 5}, {2, 2, 2}, {4, 1, 3}}) {
        auto const n = torus(extents, cable);
        std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
        for (auto const& l : n.links) pairs.insert(std::minmax(l.a, l.b));
        CHECK(pairs.size() == n.links.size()); // simple
        for (std::uint32_t a = 0; a < n.servers; ++a) {
            auto const hops = distances(n, a);
            for (std::uint32_t b = 0; b < n.servers; ++b) {
                std::uint32_t expected = 0;
                auto x = a, y = b;
                for (auto i = extents.size(); i-- > 0;) {
                    auto const ahead = (y % extents[i] + extents[i] - x % extents[i]) % extents[i];
                    expected += std::min(ahead, extents[i] - ahead);
                    x /= extents[i];
                    y /= extents[i];
                }
                REQUIRE(hops[b] == expected);
            }
        }
    }
    CHECK(torus({4, 4}, cable).links.size() == 32);
    CHECK(torus({2, 2}, cable).links.size() == 4);
    CHECK_THROWS_WITH_AS((void)torus({}, cable), doctest::Contains("torus of 0 dimensions"), invalid_input);
    CHECK_THROWS_WITH_AS((void)torus({4, 0}, cable), doctest::Contains("extent 0"), invalid_input);
    CHECK_THROWS_WITH_AS((void)torus({131072, 32768}, cable), doctest::Contains("torus of 4294967296 servers"), invalid_input);
}

TEST_CASE("networks: circulants and their rings") {
    auto const n = circulant(12, {1, 5, 4, 6}, cable);
    CHECK(n.links.size() == 12 * 3 + 6);
    CHECK(n.rings.size() == 4); // of 1 and 5, both ways
    for (std::size_t r = 0; r < 4; ++r)
        for (std::size_t i = 0; i < 12; ++i) {
            auto const jump = (n.rings[r][(i + 1) % 12] + 12 - n.rings[r][i]) % 12;
            CHECK(jump == std::vector<std::uint32_t>{1, 11, 5, 7}[r]);
        }
    std::vector<std::uint32_t> const steps{1, 5, 4, 6};
    CHECK(distances(n, 0) == circulant_distances(12, steps));
    CHECK(circulant(2, {1}, cable).rings == std::vector<std::vector<std::uint32_t>>{{0, 1}});
    CHECK(circulant(2, {1, 1}, cable).links.size() == 2);
    CHECK_THROWS_WITH_AS((void)circulant(12, {12}, cable), doctest::Contains("a step of 12: must be from 1 to 11"), invalid_input);
    CHECK_THROWS_WITH_AS((void)circulant(12, {2, 4}, cable), doctest::Contains("vertex 1 cannot be reached"), invalid_input);
}
