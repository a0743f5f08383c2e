#include <parsearch/ops/device_shares.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;

TEST_CASE("device_shares: one device three times as fast as each of three has half") {
    std::vector<double> const share{1, 1, 1, 3};
    ops::device_shares const s(share);
    CHECK(s.cut(12, 4));
    CHECK(s.part(12, 4, 0) == ops::interval{0, 2});
    CHECK(s.part(12, 4, 3) == ops::interval{6, 12});
    CHECK(s.part(12, 2, 0) == ops::interval{0, 4}); // two devices each
    CHECK(!s.cut(12, 3));                           // does not divide the devices
    CHECK(!s.cut(12, 1));
    CHECK(!s.cut(5, 4)); // a sixth of 5 is none
}

TEST_CASE("device_shares: parts are consecutive, none is empty, and each is its share to within a position") {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::vector<double> share(1 + uniform_index(rng, 24));
        double all = 0;
        for (auto& x : share) all += x = 0.1 + static_cast<double>(uniform_index(rng, 1000)) / 100;
        ops::device_shares const s(share);
        auto const devices = static_cast<std::int64_t>(share.size());
        for (std::int64_t parts = 1; parts <= devices + 1; ++parts) {
            auto const extent = static_cast<std::int64_t>(1 + uniform_index(rng, std::size_t{1} << (1 + uniform_index(rng, 39))));
            if (!s.cut(extent, parts)) {
                CHECK((parts == 1 || devices % parts != 0 || static_cast<double>(extent) * 0.1 / all < 1.01));
                continue;
            }
            std::int64_t at = 0;
            for (std::int64_t i = 0; i < parts; ++i) {
                auto const part = s.part(extent, parts, i);
                REQUIRE(part.begin == at);
                REQUIRE(part.size() >= 1);
                double of_run = 0;
                for (auto d = i * devices / parts; d < (i + 1) * devices / parts; ++d) of_run += share[static_cast<std::size_t>(d)];
                auto const wanted = static_cast<double>(extent) * of_run / all;
                REQUIRE(std::abs(static_cast<double>(part.size()) - wanted) <= 1.01 + 1e-4 * static_cast<double>(extent));
                at = part.end;
            }
            CHECK(at == extent);
        }
    }
}
