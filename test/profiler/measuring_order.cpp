#include "profiler/measuring_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using parsearch::uniform_index;
using parsearch::profiler::measuring_order;
using parsearch::profiler::order_item;

TEST_CASE("measuring order: families take turns by what they contribute, the greatest members first") {
    // a has 12, b 5, c 1: claims 12 6 4 3, 5 2.5, 1.
    std::vector<order_item> const items{{"c", 1}, {"a", 2}, {"b", 1}, {"a", 5}, {"a", 2}, {"b", 4}, {"a", 3}};
    CHECK(measuring_order(items) == std::vector<std::size_t>{3, 6, 5, 1, 4, 2, 0});
    CHECK(measuring_order({}).empty());
    // Ties, of 1 / 1 and 2 / 2: the order in which they are given.
    CHECK(measuring_order({{"x", 1}, {"y", 1}, {"x", 1}, {"z", 0}}) == std::vector<std::size_t>{0, 2, 1, 3});
}

TEST_CASE("measuring order: every prefix gives each family at least the turns that its part of the time makes") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::vector<order_item> items;
        auto const count = 1 + uniform_index(rng, 60), families = 1 + uniform_index(rng, 6);
        std::map<std::string, double> weight;
        std::map<std::string, std::size_t> members;
        double total = 0;
        for (std::size_t i = 0; i < count; ++i) {
            items.push_back({std::string(1, static_cast<char>('a' + uniform_index(rng, families))), static_cast<double>(uniform_index(rng, 1000))});
            weight[items.back().family] += items.back().contribution;
            total += items.back().contribution;
            ++members[items.back().family];
        }
        auto const order = measuring_order(items);
        auto sorted = order;
        std::ranges::sort(sorted);
        for (std::size_t i = 0; i < count; ++i) REQUIRE(sorted[i] == i);
        std::map<std::string, std::size_t> taken;
        std::map<std::string, double> last;
        for (std::size_t n = 0; n < count; ++n) {
            auto const& item = items[order[n]];
            auto const at = last.try_emplace(item.family, item.contribution).first;
            REQUIRE(item.contribution <= at->second);
            at->second = item.contribution;
            ++taken[item.family];
            // D'Hondt's rule meets the lower quota (M. Balinski, H. P. Young, Fair Representation, 1982), short of families that are used up.
            for (auto const& [name, w] : weight) {
                auto const quota = static_cast<std::size_t>(static_cast<double>(n + 1) * w / std::max(total, 1.0) * (1 - 1e-12));
                REQUIRE(taken[name] >= std::min(quota, members[name]));
            }
        }
    }
}
