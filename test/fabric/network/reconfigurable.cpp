#include <parsearch/fabric/network/reconfigurable.hpp>

#include <chrono>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/regular_networks.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

TEST_CASE("rewiring takes time where links differ") {
    link_description const each{{12.5e9}, std::chrono::microseconds{1}};
    auto const ring = circulant(5, {1}, each);
    auto same = circulant(5, {4}, each); // the same links from their other ends
    CHECK(same_wiring(ring, same));
    same.rings.clear();
    CHECK(same_wiring(ring, same));
    CHECK_FALSE(same_wiring(ring, circulant(5, {2}, each)));
    CHECK_FALSE(same_wiring(ring, circulant(5, {1, 1}, each)));
    CHECK_FALSE(same_wiring(ring, circulant(5, {1}, {{25e9}, each.latency})));
    reconfigurable_options const o{std::chrono::milliseconds{10}, 3};
    CHECK(rewiring_time(o, ring, same) == picoseconds{0});
    CHECK(rewiring_time(o, ring, circulant(5, {2}, each)) == picoseconds{3'333'333'334});
    CHECK_THROWS_WITH_AS((void)rewiring_time({picoseconds{-1}, 1}, ring, ring), doctest::Contains("reconfiguration time of -1 ps"), invalid_input);
    CHECK_THROWS_WITH_AS((void)rewiring_time({picoseconds{1}, 0}, ring, ring), doctest::Contains("kept for 0 iterations"), invalid_input);
}
