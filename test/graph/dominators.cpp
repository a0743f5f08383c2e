#include <parsearch/graph/dominators.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

namespace ps = parsearch;
using ps::graph::dominators_between, ps::graph::flow_edge;

TEST_CASE("dominators are what every path passes") {
    // 0 -> {1, 2} -> 3 -> 4 -> {5, 6} -> 7, and 4 -> 7
    std::vector<flow_edge> const edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {4, 5}, {4, 6}, {5, 7}, {6, 7}, {4, 7}};
    CHECK(dominators_between(8, edges, 0, 7) == std::vector<std::uint32_t>{3, 4});
    CHECK(dominators_between(8, edges, 0, 3).empty());
    CHECK(dominators_between(8, edges, 5, 6).empty()); // no path
    CHECK(dominators_between(2, {}, 0, 1).empty());
    CHECK(dominators_between(8, edges, 3, 3).empty()); // the way is no way
    std::vector<flow_edge> const odd{{0, 0}, {0, 1}, {0, 1}, {1, 1}, {1, 2}, {2, 1}};
    CHECK(dominators_between(3, odd, 0, 2) == std::vector<std::uint32_t>{1}); // to itself, twice, and back
}

TEST_CASE("dominators of random graphs are those without which no path is left") {
    std::mt19937_64 rng{11};
    for (int n = 0; n < 2000; ++n) {
        CAPTURE(n);
        std::uint32_t const size = 3 + static_cast<std::uint32_t>(ps::uniform_index(rng, 12));
        bool const cycles = n % 2 == 1;
        auto const sparsity = 2 + ps::uniform_index(rng, 4);
        std::vector<flow_edge> edges;
        for (std::uint32_t b = 0; b < size; ++b)
            for (std::uint32_t a = 0; a < (cycles ? size : b); ++a)
                if (ps::uniform_index(rng, sparsity) == 0) edges.emplace_back(a, b);
        // Whether the last is reached from 0 without `left_out`.
        auto const reached = [&](std::uint32_t left_out) {
            std::vector<bool> seen(size, false);
            seen[0] = true;
            for (std::uint32_t round = 0; round < size; ++round)
                for (auto const& [a, b] : edges)
                    if (seen[a] && b != left_out) seen[b] = true;
            return static_cast<bool>(seen[size - 1]);
        };
        std::vector<std::uint32_t> wanted;
        for (std::uint32_t v = 1; v + 1 < size && reached(size); ++v)
            if (!reached(v)) wanted.push_back(v);
        auto got = dominators_between(size, edges, 0, size - 1);
        // In the order of the paths: what stands behind is not reached without what stands before.
        for (std::size_t i = 1; i < got.size(); ++i) {
            auto const first = got[i - 1], second = got[i];
            auto const between = dominators_between(size, edges, first, size - 1);
            CHECK(std::find(between.begin(), between.end(), second) != between.end());
        }
        std::sort(got.begin(), got.end());
        CHECK(got == wanted);
    }
}
