#include <parsearch/fabric/network/random_regular.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
constexpr link_description cable{{12.5e9}, std::chrono::microseconds{1}};
} // namespace

TEST_CASE("random regular networks: simple, connected and regular for 10,000 seeds") {
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const servers = static_cast<std::uint32_t>(3 + uniform_index(rng, 22));
        auto const degree = static_cast<std::uint32_t>(2 + uniform_index(rng, servers - 2));
        auto const n = random_regular(servers, degree, seed, cable);
        std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
        std::vector<std::uint32_t> degrees(servers, 0);
        for (auto const& l : n.links) {
            pairs.insert(std::minmax(l.a, l.b));
            ++degrees[l.a];
            ++degrees[l.b];
        }
        REQUIRE(pairs.size() == n.links.size());
        REQUIRE(connected(n));
        auto const shorter = std::count(degrees.begin(), degrees.end(), degree - 1), full = std::count(degrees.begin(), degrees.end(), degree);
        REQUIRE(shorter == (servers * degree) % 2);
        REQUIRE(shorter + full == servers);
    }
}

TEST_CASE("random regular networks: every one of four servers and degree 2 as often") {
    // The three rings through four servers; 0 is joined with all but one.
    std::vector<int> apart(4, 0);
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
        std::uint32_t sum = 0;
        for (auto const& l : random_regular(4, 2, seed, cable).links)
            if (l.a == 0 || l.b == 0) sum += l.a + l.b;
        ++apart[6 - sum];
    }
    for (std::size_t v = 1; v < 4; ++v) CHECK(std::abs(apart[v] - 1000) < 130); // five standard deviations
}

TEST_CASE("random links: every pair about as often, where there are more interfaces than other servers") {
    for (std::uint32_t servers = 3; servers < 9; ++servers)
        for (std::uint32_t degree = 2; degree < 30; ++degree) {
            CAPTURE(servers);
            CAPTURE(degree);
            auto const n = random_links(servers, degree, 5, cable);
            CHECK(n.links == random_links(servers, degree, 5, cable).links);
            std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs;
            std::vector<std::uint32_t> degrees(servers, 0);
            for (auto const& l : n.links) {
                ++pairs[std::minmax(l.a, l.b)];
                ++degrees[l.a];
                ++degrees[l.b];
            }
            auto const short_by_one = static_cast<std::uint32_t>(std::ranges::count(degrees, degree - 1));
            CHECK(short_by_one == servers * degree % 2);
            CHECK(std::ranges::count(degrees, degree) + short_by_one == servers);
            if (degree < servers) continue;
            for (auto const& [pair, count] : pairs) {
                CHECK(count >= degree / (servers - 1));
                CHECK(count <= degree / (servers - 1) + 1);
            }
            CHECK(pairs.size() == servers * (servers - 1) / 2);
        }
    CHECK(random_links(2, 3, 1, cable).links.size() == 3);
}

TEST_CASE("random regular networks: the same for the same seed, large ones, mistakes") {
    CHECK(random_regular(128, 4, 7, cable) == random_regular(128, 4, 7, cable));
    CHECK_FALSE(random_regular(128, 4, 7, cable) == random_regular(128, 4, 8, cable));
    CHECK(connected(random_regular(1024, 2, 1, cable)));
    CHECK(random_regular(1, 0, 1, cable).links.empty());
    CHECK(random_regular(2, 1, 1, cable).links.size() == 1);
    for (auto const& [servers, degree] : {std::pair{0u, 0u}, {4u, 4u}, {4u, 1u}, {3u, 1u}, {5u, 0u}, {2u, 0u}, {1u, 1u}, {100000u, 60000u}}) {
        CAPTURE(servers);
        CHECK_THROWS_WITH_AS((void)random_regular(servers, degree, 1, cable), doctest::Contains("random network of"), invalid_input);
    }
}
