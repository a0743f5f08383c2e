#include <parsearch/io/report/graph_drawing.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;
using edge_list = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_CASE("layout: spread moves as little as the distances need") {
    CHECK(io::detail::spread({0, 5}, {0, 1}) == std::vector<double>{0, 5});
    CHECK(io::detail::spread({3, 3}, {0, 1}) == std::vector<double>{2.5, 3.5});
    CHECK(io::detail::spread({9, 0, 0}, {0, 1, 1}) == std::vector<double>{2, 3, 4});
    CHECK(io::detail::spread({}, {}).empty());
}

TEST_CASE("layout: a chain is a straight line, a diamond is symmetric") {
    auto const chain = io::lay_out_graph(4, {{0, 1}, {1, 2}, {2, 3}});
    CHECK(chain.layer == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(chain.layers == 4);
    CHECK(chain.width == doctest::Approx(1));
    for (auto const x : chain.x) CHECK(x == doctest::Approx(0.5));
    auto const diamond = io::lay_out_graph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
    CHECK(diamond.layer == std::vector<std::uint32_t>{0, 1, 1, 2});
    CHECK(diamond.x[0] == doctest::Approx(diamond.x[3]));
    CHECK(std::abs(diamond.x[2] - diamond.x[1]) == doctest::Approx(1));
    CHECK(diamond.x[1] + diamond.x[2] == doctest::Approx(2 * diamond.x[0]));
}

TEST_CASE("layout: what nothing leads to stands above its first reader") {
    auto const l = io::lay_out_graph(5, {{0, 2}, {2, 3}, {1, 4}, {3, 4}});
    CHECK(l.layer == std::vector<std::uint32_t>{0, 2, 1, 2, 3});
}

TEST_CASE("layout: none and one node") {
    CHECK(io::lay_out_graph(0, {}).layers == 0);
    auto const one = io::lay_out_graph(1, {});
    CHECK(one.layers == 1);
    CHECK(one.x == std::vector<double>{0.5});
}

TEST_CASE("layout: random graphs: edges lead down and bend in each layer between, nothing overlaps") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const n = static_cast<std::uint32_t>(1 + uniform_index(rng, 40));
        edge_list edges;
        for (std::uint32_t to = 1; to < n; ++to)
            for (auto k = uniform_index(rng, 4); k > 0; --k) edges.emplace_back(static_cast<std::uint32_t>(uniform_index(rng, to)), to);
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        auto const l = io::lay_out_graph(n, edges);
        REQUIRE(l.x.size() == n);
        REQUIRE(l.bends.size() == edges.size());
        std::map<std::uint32_t, std::vector<std::pair<double, double>>> spans; // what each layer holds, from left to right
        auto const add = [&](std::uint32_t layer, double x, double half) {
            REQUIRE(x - half >= -1e-9);
            REQUIRE(x + half <= l.width + 0.5);
            spans[layer].emplace_back(x - half, x + half);
        };
        for (std::uint32_t v = 0; v < n; ++v) {
            REQUIRE(l.layer[v] < l.layers);
            add(l.layer[v], l.x[v], 0.5);
        }
        for (std::size_t e = 0; e < edges.size(); ++e) {
            auto const [from, to] = edges[e];
            REQUIRE(l.layer[from] < l.layer[to]);
            REQUIRE(l.bends[e].size() == l.layer[to] - l.layer[from] - 1);
            for (std::uint32_t k = 0; k < l.bends[e].size(); ++k) add(l.layer[from] + 1 + k, l.bends[e][k], 0.05);
        }
        for (auto& [layer, row] : spans) {
            std::sort(row.begin(), row.end());
            for (std::size_t i = 1; i < row.size(); ++i) REQUIRE(row[i].first >= row[i - 1].second - 1e-9);
        }
        auto const again = io::lay_out_graph(n, edges);
        REQUIRE(again.x == l.x);
        REQUIRE(again.bends == l.bends);
    }
}
