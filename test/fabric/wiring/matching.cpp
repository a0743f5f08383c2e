#include <parsearch/fabric/wiring/matching.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
struct random_graph {
    std::uint32_t n;
    std::vector<std::int64_t> weights;
};

random_graph draw(split_mix& rng, std::uint32_t n) {
    random_graph g{n, std::vector<std::int64_t>(std::size_t{n} * n, 0)};
    auto const density = 1 + uniform_index(rng, 10), most = 1 + uniform_index(rng, uniform_index(rng, 2) ? 4 : 1000);
    for (std::uint32_t u = 0; u < n; ++u)
        for (std::uint32_t v = u + 1; v < n; ++v)
            if (uniform_index(rng, 10) < density)
                g.weights[u * n + v] = g.weights[v * n + u] = static_cast<std::int64_t>(1 + uniform_index(rng, most));
    return g;
}

/// The weight of a matching that is one; -1 where it is none.
std::int64_t weight_of(random_graph const& g, std::vector<std::uint32_t> const& mate) {
    std::int64_t sum = 0;
    for (std::uint32_t u = 0; u < g.n; ++u) {
        if (mate[u] == unmatched) continue;
        if (mate[u] >= g.n || mate[mate[u]] != u || g.weights[u * g.n + mate[u]] == 0) return -1;
        if (mate[u] > u) sum += g.weights[u * g.n + mate[u]];
    }
    return sum;
}

/// By trying everything: best[s] of the vertices in s.
std::int64_t brute_force(random_graph const& g) {
    std::vector<std::int64_t> best(std::size_t{1} << g.n, 0);
    for (std::size_t s = 1; s < best.size(); ++s) {
        auto const u = static_cast<std::size_t>(std::countr_zero(s));
        best[s] = best[s & (s - 1)];
        for (std::size_t v = u + 1; v < g.n; ++v)
            if (s >> v & 1) best[s] = std::max(best[s], best[s & ~(std::size_t{1} << u) & ~(std::size_t{1} << v)] + g.weights[u * g.n + v]);
    }
    return best.back();
}
} // namespace

TEST_CASE("maximum-weight matching: as brute force has it") {
    std::uint64_t const seed = 20260801;
    MESSAGE("seed ", seed);
    split_mix rng(seed);
    int greedy_misses = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto const g = draw(rng, static_cast<std::uint32_t>(1 + uniform_index(rng, i % 100 == 0 ? 15 : 10)));
        auto const best = brute_force(g);
        auto const mate = maximum_weight_matching(g.n, g.weights);
        REQUIRE(weight_of(g, mate) == best);
        auto const greedy = weight_of(g, greedy_matching(g.n, g.weights));
        REQUIRE(greedy >= 0);
        REQUIRE(2 * greedy >= best);
        greedy_misses += greedy < best;
        if (i % 100 == 0) REQUIRE(maximum_weight_matching(g.n, g.weights) == mate);
    }
    CHECK(greedy_misses > 0);
}

TEST_CASE("maximum-weight matching: larger graphs, no exchange of two edges gains") {
    split_mix rng(7);
    for (int i = 0; i < 60; ++i) {
        auto const g = draw(rng, static_cast<std::uint32_t>(30 + uniform_index(rng, 50)));
        auto const mate = maximum_weight_matching(g.n, g.weights);
        auto const w = [&](std::uint32_t u, std::uint32_t v) { return g.weights[u * g.n + v]; };
        auto const weight = weight_of(g, mate);
        REQUIRE(weight >= weight_of(g, greedy_matching(g.n, g.weights)));
        for (std::uint32_t u = 0; u < g.n; ++u)
            for (std::uint32_t v = 0; v < u; ++v) {
                if (mate[u] == v) continue;
                auto const a = mate[u], b = mate[v];
                auto const held = (a == unmatched ? 0 : w(u, a)) + (b == unmatched ? 0 : w(v, b));
                auto const swapped = w(u, v) + (a == unmatched || b == unmatched ? 0 : w(a, b));
                REQUIRE(swapped <= held);
            }
    }
}

TEST_CASE("matching: large weights, small graphs, mistakes") {
    CHECK(maximum_weight_matching(0, {}).empty());
    std::int64_t const big = std::int64_t{1} << 60;
    std::vector<std::int64_t> const triangle{0, big, big - 1, big, 0, big, big - 1, big, 0};
    CHECK(weight_of({3, triangle}, maximum_weight_matching(3, triangle)) == big);
    std::vector<std::int64_t> path{0, 2, 0, 0, 2, 0, 3, 0, 0, 3, 0, 2, 0, 0, 2, 0}; // 0-1-2-3: the two outer edges
    CHECK(maximum_weight_matching(4, path) == std::vector<std::uint32_t>{1, 0, 3, 2});
    CHECK(greedy_matching(4, path) == std::vector<std::uint32_t>{unmatched, 2, 1, unmatched});
    CHECK_THROWS_WITH_AS((void)maximum_weight_matching(3, path), doctest::Contains("16 weights for 3 vertices"), invalid_input);
    path[1] = 1;
    CHECK_THROWS_WITH_AS((void)maximum_weight_matching(4, path), doctest::Contains("differs from that of the other direction"), invalid_input);
    path[1] = path[4] = -1;
    CHECK_THROWS_WITH_AS((void)greedy_matching(4, path), doctest::Contains("weight -1 of vertices 1 and 0"), invalid_input);
    path[1] = path[4] = 1;
    path[5] = 1;
    CHECK_THROWS_WITH_AS((void)maximum_weight_matching(4, path), doctest::Contains("no edge to itself"), invalid_input);
}
