#include <parsearch/fabric/paths/coin_change.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using steps_t = std::vector<std::uint32_t>;

namespace {
/// Shortest lengths from `from` on the graph written out link by link.
std::vector<std::uint32_t> breadth_first(std::uint32_t n, steps_t const& steps, std::uint32_t from) {
    std::vector<std::set<std::uint32_t>> near(n);
    for (std::uint32_t v = 0; v < n; ++v)
        for (auto const p : steps) {
            near[v].insert((v + p) % n);
            near[(v + p) % n].insert(v);
        }
    std::vector<std::uint32_t> distance(n, std::numeric_limits<std::uint32_t>::max()), queue{from};
    distance[from] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (auto const w : near[queue[i]])
            if (distance[w] > n) {
                distance[w] = distance[queue[i]] + 1;
                queue.push_back(w);
            }
    return distance;
}
} // namespace

TEST_CASE("coin change: routes as short as breadth-first search has them, on random circulants") {
    std::uint64_t const seed = 20260802;
    MESSAGE("seed ", seed);
    split_mix rng(seed);
    int circulants = 0;
    while (circulants < 4000) {
        auto const n = static_cast<std::uint32_t>(2 + uniform_index(rng, 60));
        steps_t steps;
        auto common = n;
        for (auto k = 1 + uniform_index(rng, 4); k > 0; --k) steps.push_back(static_cast<std::uint32_t>(1 + uniform_index(rng, n - 1)));
        for (auto const p : steps) common = std::gcd(common, p);
        if (common != 1) {
            CHECK_THROWS_WITH_AS(coin_change(n, steps), doctest::Contains("the steps do not sum up to"), invalid_input);
            continue;
        }
        ++circulants;
        coin_change const coins(n, steps);
        auto const from = static_cast<std::uint32_t>(uniform_index(rng, n));
        auto const distance = breadth_first(n, steps, from);
        for (std::uint32_t to = 0; to < n; ++to) {
            REQUIRE(coins.hops(from, to) == distance[to]);
            auto const path = coins.route(from, to);
            REQUIRE(path.size() == distance[to] + 1);
            REQUIRE(path.front() == from);
            REQUIRE(path.back() == to);
            for (std::size_t i = 1; i < path.size(); ++i) {
                auto const jump = (path[i] + n - path[i - 1]) % n;
                REQUIRE(std::any_of(steps.begin(), steps.end(), [&](auto p) { return jump == p || jump == n - p; }));
            }
        }
    }
}

TEST_CASE("coin change: all shortest routes") {
    coin_change const coins(12, steps_t{1, 5});
    CHECK(coins.all_routes(0, 0) == std::vector<steps_t>{{0}});
    CHECK(coins.all_routes(2, 1) == std::vector<steps_t>{{2, 1}});
    CHECK(coins.all_routes(0, 6) == std::vector<steps_t>{{0, 1, 6}, {0, 11, 6}, {0, 5, 6}, {0, 7, 6}});
    CHECK(coins.all_routes(0, 6, 3).size() == 3);
    // Their number is that of the walks of the least length: powers of the adjacency matrix.
    for (std::uint32_t n = 3; n <= 20; ++n) {
        steps_t const steps{1, std::min(n - 1, 3u)};
        coin_change const c(n, steps);
        for (std::uint32_t to = 0; to < n; ++to) {
            std::vector<std::uint64_t> walks(n, 0);
            walks[0] = 1;
            for (std::uint32_t hop = 0; hop < c.hops(0, to); ++hop) {
                std::vector<std::uint64_t> next(n, 0);
                for (std::uint32_t v = 0; v < n; ++v)
                    for (auto const coin : c.coins()) next[(v + coin) % n] += walks[v];
                walks = next;
            }
            auto const routes = c.all_routes(0, to);
            CHECK(routes.size() == walks[to]);
            CHECK(std::set<steps_t>(routes.begin(), routes.end()).size() == routes.size());
        }
    }
}

TEST_CASE("coin change: equal jumps take turns") {
    // All pairs of 64 servers: no direction of a link carries more than 1.15 times the mean.
    std::uint32_t const n = 64;
    coin_change const coins(n, steps_t{1, 9});
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> load;
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b) {
            auto const path = coins.route(a, b);
            for (std::size_t i = 1; i < path.size(); ++i) ++load[{path[i - 1], path[i]}];
        }
    CHECK(load.size() == 4 * n);
    double sum = 0, most = 0;
    for (auto const& [hop, messages] : load) {
        sum += messages;
        most = std::max(most, static_cast<double>(messages));
    }
    MESSAGE("busiest direction / mean: ", most / (sum / static_cast<double>(load.size())));
    CHECK(most < 1.15 * sum / static_cast<double>(load.size()));
}

TEST_CASE("coin change: small cases and mistakes") {
    CHECK(coin_change(1, steps_t{}).route(0, 0) == steps_t{0});
    CHECK(coin_change(2, steps_t{1}).coins().size() == 1);
    CHECK_THROWS_WITH_AS(coin_change(0, steps_t{}), doctest::Contains("modulo 0"), invalid_input);
    CHECK_THROWS_WITH_AS(coin_change(5, steps_t{1, 5}), doctest::Contains("a step of 5: must be from 1 to 4"), invalid_input);
    CHECK_THROWS_WITH_AS(coin_change(5, steps_t{0}), doctest::Contains("a step of 0"), invalid_input);
}
