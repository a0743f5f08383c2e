#include <parsearch/fabric/cooptimize/usual_starts.hpp>

#include <algorithm>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/network_price.hpp>

#include "support/networks.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::literals;

TEST_CASE("usual starts: a switch, a random network, a fat tree that costs as much") {
    for (std::uint32_t const servers : {5U, 16U, 33U})
        for (std::uint32_t const degree : {2U, 3U, 4U}) {
            CAPTURE(servers);
            CAPTURE(degree);
            link_description const link{100_Gbps, picoseconds{1'000'000}};
            auto const starts = fabric::usual_starts(servers, degree, link, 7);
            REQUIRE(starts.size() >= 2);
            CHECK(starts[0].wired.switches == 1);
            CHECK_FALSE(starts[0].final);
            CHECK(starts[0].wired.links.front().each.rate.bytes_per_second == doctest::Approx(degree * 12.5e9));
            CHECK(starts[1].final);
            CHECK(starts[1].wired.switches == 0);
            auto const used = support::degrees(starts[1].wired);
            CHECK(*std::ranges::max_element(used) == degree);
            if (servers >= 16 && degree == 4) CHECK(starts.size() == 3);
            if (starts.size() == 2) continue; // the cheapest tree costs more
            CHECK(starts[2].final);
            CHECK(fabric::price_of(starts[2].wired).total() ==
                  doctest::Approx(fabric::price_of(starts[1].wired, fabric::cabling::patch_panel).total()));
        }
    CHECK(fabric::usual_starts(16, 4, {100_Gbps, {}}).size() == 3);
    CHECK(fabric::usual_starts(16, 4, {1_Gbps, {}}).size() == 2); // no price
    CHECK(fabric::usual_starts(4, 1, {100_Gbps, {}}).size() == 1);
    CHECK(fabric::usual_starts(4, 4, {100_Gbps, {}}).size() == 3); // link beside link
    CHECK(fabric::usual_starts(2, 4, {100_Gbps, {}}).size() == 1);
    CHECK(support::refusal([&] { return fabric::usual_starts(0, 4, {100_Gbps, {}}).size(); }) != "");
    CHECK(support::refusal([&] {
              return fabric::usual_starts(4, 0, {100_Gbps, {}}).size();
          }) == "usual starts: degree is 0: a server must have an interface at least");
}
