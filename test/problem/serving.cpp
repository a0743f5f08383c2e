#include <parsearch/problem/serving.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

TEST_CASE("batches_within: the largest of what was asked, from whichever batch it begins") {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const fixed = static_cast<std::int64_t>(uniform_index(rng, 1000)), each = static_cast<std::int64_t>(1 + uniform_index(rng, 50));
        auto const limit = picoseconds{static_cast<std::int64_t>(uniform_index(rng, 20000))};
        auto const room = static_cast<std::int64_t>(1 + uniform_index(rng, 300)); // samples that fit
        auto const first = static_cast<std::int64_t>(1 + uniform_index(rng, 500)), steps = static_cast<std::int64_t>(1 + uniform_index(rng, 6));
        auto const takes = [&](std::int64_t batch) {
            return batch <= room ? picoseconds{fixed + each * batch} : cost_traits<picoseconds>::infinity();
        };
        std::set<std::int64_t> asked;
        auto const tried = batches_within(
            limit, first,
            [&](std::int64_t batch) {
                CHECK(asked.insert(batch).second); // once each
                return takes(batch);
            },
            steps);
        CHECK(tried.size() == asked.size());
        CHECK(std::ranges::is_sorted(tried, {}, &served_batch::batch));
        for (auto const& t : tried) {
            CHECK(t.latency == takes(t.batch));
            CHECK(t.within == (t.latency <= limit));
        }
        auto const largest = limit.count() < fixed ? std::int64_t{0} : std::min(room, (limit.count() - fixed) / each);
        auto const* const best = best_of(tried);
        REQUIRE((best != nullptr) == (largest >= 1));
        if (!best) continue;
        CHECK(best->within);
        CHECK(best->batch <= largest);
        CHECK(static_cast<double>(best->batch) >= static_cast<double>(largest) / (1 + 1.0 / static_cast<double>(steps)) - 1);
        CHECK(tried.size() <= 40);
    }
}

TEST_CASE("batches_within: of those within the limit the one that serves most, which need not be the largest") {
    auto const tried = batches_within(picoseconds{100}, 8, [](std::int64_t batch) { return picoseconds{batch >= 16 ? 99 : batch}; });
    REQUIRE(best_of(tried));
    CHECK(tried.back().batch == std::int64_t{1} << 28); // as many as a model may have
    CHECK(best_of(std::vector<served_batch>{{1, picoseconds{10}, true}, {2, picoseconds{15}, true}, {3, picoseconds{60}, true}})->batch == 2);
    CHECK(best_of({}) == nullptr);
}

TEST_CASE("batches_within: what is wrong is refused") {
    auto const never = [](std::int64_t) { return picoseconds{1}; };
    CHECK(support::refusal([&] { return batches_within(picoseconds{1}, 0, never); }) == "batches_within: the first batch is 0: must be at least 1");
    CHECK(support::refusal([&] { return batches_within(picoseconds{1}, 1, never, 0); }) ==
          "batches_within: a doubling in 0 steps: must be at least 1");
}
