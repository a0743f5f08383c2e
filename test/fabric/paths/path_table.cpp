#include <parsearch/fabric/paths/path_table.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using path_t = std::vector<std::uint32_t>;

namespace {
constexpr link_description cable{{12.5e9}, std::chrono::microseconds{1}};

/// A random connected network of a few servers and switches, with parallel links.
network random_network(split_mix& rng) {
    network n{"random", static_cast<std::uint32_t>(1 + uniform_index(rng, 5)), static_cast<std::uint32_t>(uniform_index(rng, 4)), {}, {}};
    for (std::uint32_t v = 1; v < n.vertices(); ++v) n.links.push_back({v, static_cast<std::uint32_t>(uniform_index(rng, v)), cable});
    for (auto more = uniform_index(rng, 8); more > 0 && n.vertices() > 1; --more) {
        auto const a = static_cast<std::uint32_t>(uniform_index(rng, n.vertices())), b = static_cast<std::uint32_t>(uniform_index(rng, n.vertices()));
        if (a != b) n.links.push_back({a, b, cable});
    }
    return n;
}
void all_loopless(network const& n, std::uint32_t to, path_t& path, std::set<path_t>& out) {
    if (path.back() == to) {
        out.insert(path);
        return;
    }
    auto const near = neighbours_of(n.vertices(), n.links);
    for (auto const v : near[path.back()]) {
        if (std::find(path.begin(), path.end(), v) != path.end()) continue;
        path.push_back(v);
        all_loopless(n, to, path, out);
        path.pop_back();
    }
}
/// The vertices that links lead through, checked.
path_t vertices_of(network const& n, std::uint32_t from, std::vector<link_direction> const& links) {
    path_t out{from};
    for (auto const l : links) {
        REQUIRE(l / 2 < n.links.size());
        auto const& ends = n.links[l / 2];
        REQUIRE((l % 2 == 0 ? ends.a : ends.b) == out.back());
        out.push_back(l % 2 == 0 ? ends.b : ends.a);
    }
    return out;
}
} // namespace

TEST_CASE("paths: every policy gives those that it names, and flows take them, on random networks") {
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const n = random_network(rng);
        auto const k = static_cast<std::uint32_t>(1 + uniform_index(rng, 5));
        path_table const one(n), equal(n, {routing::ecmp, 0, seed}), some(n, {routing::k_shortest, k, seed});
        for (std::uint32_t from = 0; from < n.servers; ++from)
            for (std::uint32_t to = 0; to < n.servers; ++to) {
                std::set<path_t> all, shortest;
                path_t start{from};
                all_loopless(n, to, start, all);
                std::vector<std::size_t> lengths;
                for (auto const& p : all) lengths.push_back(p.size());
                std::sort(lengths.begin(), lengths.end());
                for (auto const& p : all)
                    if (p.size() == lengths.front()) shortest.insert(p);

                auto const fixed = one.paths(from, to);
                REQUIRE(fixed.size() == 1);
                REQUIRE(shortest.contains(fixed[0]));
                auto const found = equal.paths(from, to);
                REQUIRE(std::vector<path_t>(shortest.begin(), shortest.end()) == found);
                REQUIRE(equal.paths(from, to, 1).size() == 1);
                auto const few = some.paths(from, to);
                REQUIRE(few.size() == std::min<std::size_t>(k, all.size()));
                REQUIRE(std::set<path_t>(few.begin(), few.end()).size() == few.size());
                for (std::size_t i = 0; i < few.size(); ++i) {
                    REQUIRE(all.contains(few[i]));
                    REQUIRE(few[i].size() == lengths[i]);
                }
                std::set<std::vector<link_direction>> taken;
                for (std::uint64_t flow = 0; flow < 200; ++flow) {
                    REQUIRE(vertices_of(n, from, one.path(from, to, flow)) == fixed[0]);
                    taken.insert(equal.path(from, to, flow));
                    REQUIRE(equal.path(from, to, flow) == equal.path(from, to, flow));
                    auto const way = vertices_of(n, from, some.path(from, to, flow));
                    REQUIRE(std::find(few.begin(), few.end(), way) != few.end());
                }
                // All shortest ways by any links are taken by some flow, and no others.
                std::size_t ways = 0;
                for (auto const& p : shortest) {
                    std::size_t product = 1;
                    for (std::size_t i = 1; i < p.size(); ++i) product *= equal.links().all_between(p[i - 1], p[i]).size();
                    ways += product;
                }
                for (auto const& way : taken) REQUIRE(shortest.contains(vertices_of(n, from, way)));
                if (ways <= 8) REQUIRE(taken.size() == ways);
            }
    }
}

TEST_CASE("paths: flows spread evenly over equal paths") {
    auto const n = fat_tree(16, cable); // k = 4: four paths between pods
    for (auto const policy : {routing::ecmp, routing::k_shortest}) {
        path_table const t(n, {policy, 4, 1});
        CHECK(t.paths(0, 15).size() == 4);
        std::map<std::vector<link_direction>, int> flows;
        for (std::uint32_t flow = 0; flow < 4000; ++flow) ++flows[t.path(0, 15, flow_between(flow, 1))];
        CHECK(flows.size() == 4);
        for (auto const& [path, count] : flows) CHECK(std::abs(count - 1000) < 140); // five standard deviations
    }
    CHECK_FALSE(path_table(n, {routing::ecmp, 4, 1}).path(0, 15, 3) == path_table(n, {routing::ecmp, 4, 2}).path(0, 15, 3));
}

TEST_CASE("paths: coin change is as short as breadth-first search on circulants, and refuses others") {
    for (std::uint32_t servers = 3; servers < 30; ++servers) {
        auto const n = circulant(servers, {1, std::max(1u, servers / 3)}, cable);
        path_table const coins(n, {routing::coin_change});
        for (std::uint32_t a = 0; a < servers; ++a) {
            auto const hops = hops_from(a, neighbours_of(servers, n.links));
            for (std::uint32_t b = 0; b < servers; ++b) {
                REQUIRE(coins.path(a, b, 0).size() == hops[b]);
                REQUIRE(vertices_of(n, a, coins.path(a, b, 5)) == coins.paths(a, b)[0]);
            }
        }
    }
    CHECK_THROWS_WITH_AS(path_table(ideal_switch(4, cable), {routing::coin_change}), doctest::Contains("a network with 1 switches"), invalid_input);
    CHECK_THROWS_WITH_AS(path_table(torus({3, 4}, cable), {routing::coin_change}), doctest::Contains("make no circulant graph"), invalid_input);
}

TEST_CASE("paths: hops of rings stay on their links with k shortest paths; mistakes") {
    auto const n = circulant(8, {1, 3, 4}, cable);
    path_table const t(n, {routing::k_shortest, 4});
    CHECK(t.paths(0, 1) == std::vector<path_t>{{0, 1}});
    CHECK(t.paths(3, 0) == std::vector<path_t>{{3, 0}});
    CHECK(t.paths(0, 4).size() == 4); // no ring's
    CHECK_THROWS_WITH_AS(path_table(n, {routing::k_shortest, 0}), doctest::Contains("k = 0: must be from 1 to 1024"), invalid_input);
    CHECK_THROWS_WITH_AS(path_table(network{"", 2, 0, {}, {}}), doctest::Contains("vertex 1 cannot be reached"), invalid_input);
}
