#include <parsearch/fabric/network/hops.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using hops_t = std::vector<std::uint32_t>;

TEST_CASE("hops: along the edges, in their direction") {
    std::vector<hops_t> const near{{1, 2}, {3, 3}, {3, 0}, {}, {3}};
    CHECK(hops_from(0, near) == hops_t{0, 1, 1, 2, unreached});
    CHECK(hops_from(2, near) == hops_t{1, 2, 0, 1, unreached});
    CHECK(hops_from(3, near) == hops_t{unreached, unreached, unreached, 0, unreached});
    CHECK(hops_from(0, std::vector<hops_t>(1)) == hops_t{0});
    // Neighbours that are not listed anywhere.
    CHECK(hops_from(1, 5, [](std::uint32_t v, auto const& visit) { visit((v + 2) % 5); }) == hops_t{2, 0, 3, 1, 4});
}

TEST_CASE("neighbours: the other ends of links, in their order, parallel ones too") {
    struct pair {
        std::uint32_t a, b;
    };
    std::vector<pair> const joined{{2, 0}, {0, 1}, {1, 0}};
    CHECK(neighbours_of(4, joined) == std::vector<hops_t>{{2, 1, 1}, {0, 0}, {0}, {}});
    CHECK(degrees_of(4, joined) == std::vector<std::uint32_t>{3, 2, 1, 0});
}

TEST_CASE("hops: as relaxing all edges again and again has it") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const n = static_cast<std::uint32_t>(1 + uniform_index(rng, 30));
        std::vector<hops_t> near(n);
        for (auto edges = uniform_index(rng, 3 * n); edges > 0; --edges)
            near[uniform_index(rng, n)].push_back(static_cast<std::uint32_t>(uniform_index(rng, n)));
        auto const from = static_cast<std::uint32_t>(uniform_index(rng, n));
        hops_t expected(n, unreached);
        expected[from] = 0;
        for (std::uint32_t round = 0; round < n; ++round)
            for (std::uint32_t v = 0; v < n; ++v)
                for (auto const w : near[v])
                    if (expected[v] != unreached) expected[w] = std::min(expected[w], expected[v] + 1);
        REQUIRE(hops_from(from, near) == expected);
    }
}
