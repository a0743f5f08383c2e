#include <parsearch/fabric/network/network_price.hpp>

#include <cstdint>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/network/random_regular.hpp>

using namespace parsearch;
using namespace parsearch::fabric;
using namespace parsearch::literals;

TEST_CASE("prices by parts, by hand") {
    link_description const each{100_Gbps, {}};
    auto const ring = circulant(8, {1}, each); // 8 links, 16 ends
    auto p = price_of(ring);
    CHECK(p.interfaces == 16 * 659);
    CHECK(p.transceivers == 16 * 99);
    CHECK(p.switch_ports == 0);
    CHECK(p.optical_ports == 0);
    CHECK(p.cables == 8 * 150);
    CHECK(p.total() == 16 * 659 + 16 * 99 + 8 * 150);
    p = price_of(ring, cabling::patch_panel);
    CHECK(p.optical_ports == 16 * 100);
    CHECK(p.cables == 16 * 150);
    CHECK(price_of(ring, cabling::optical_switch).optical_ports == 16 * 520);
    // Two bonded wires are two wires, and two interfaces at either end.
    auto doubled = ring, bonded = ring;
    doubled.links.insert(doubled.links.end(), ring.links.begin(), ring.links.end());
    for (auto& l : bonded.links) l = bundle_of(l, 2);
    for (auto const through : {cabling::fixed, cabling::patch_panel, cabling::optical_switch})
        CHECK(price_of(bonded, through).total() == price_of(doubled, through).total());
    CHECK(degrees_of(8, bonded.links) == degrees_of(8, doubled.links));
    p = price_of(fat_tree(16, each), cabling::patch_panel); // 48 links, 96 ends, 16 of servers; nothing between two servers
    CHECK(p.interfaces == 16 * 659);
    CHECK(p.switch_ports == 80 * 187);
    CHECK(p.transceivers == 96 * 99);
    CHECK(p.optical_ports == 0);
    price_list const list;
    CHECK(list.at(150_Gbps).interface == doctest::Approx((659 + 1079) / 2.0));
    CHECK(list.at(800_Gbps).switch_port == 1400);
}

TEST_CASE("a fat tree of similar price costs the same") {
    for (std::uint32_t const degree : {2u, 3u, 4u, 6u, 8u})
        for (auto const rate : {25_Gbps, 100_Gbps}) {
            CAPTURE(degree);
            auto const direct = random_regular(32, degree, 1, {rate, {}});
            auto const panel = price_of(direct, cabling::patch_panel).total();
            if (panel < price_of(fat_tree(32, {10_Gbps, {}})).total()) {
                CHECK_THROWS_WITH_AS((void)fat_tree_rate_of_similar_price(direct), doctest::Contains("one of 1.25e+09 B/s costs"), invalid_input);
                continue;
            }
            auto const tree = fat_tree_rate_of_similar_price(direct);
            MESSAGE("32 servers, d = ", degree, ", B = ", rate.bytes_per_second * 8e-9, " Gb/s: fat tree of ", tree.bytes_per_second * 8e-9);
            CHECK(price_of(fat_tree(32, {tree, {}})).total() == doctest::Approx(panel).epsilon(1e-12));
            CHECK(tree.bytes_per_second < degree * rate.bytes_per_second);
        }
    auto const at_listed = fat_tree(32, {200_Gbps, {}}); // its own price
    CHECK(fat_tree_rate_of_similar_price(at_listed) == bandwidth{200_Gbps});
}

TEST_CASE("prices: mistakes") {
    auto const ring = circulant(8, {1}, {100_Gbps, {}});
    CHECK_THROWS_WITH_AS((void)price_of(circulant(8, {1}, {1_Gbps, {}})), doctest::Contains("the list has prices from 1.25e+09"), invalid_input);
    CHECK_THROWS_WITH_AS((void)price_of(ring, cabling::fixed, {.by_rate = {}}), doctest::Contains("without rates"), invalid_input);
    CHECK_THROWS_WITH_AS((void)price_of(ring, cabling::fixed, {.by_rate = {{100_Gbps, 1, 1, 1}, {100_Gbps, 1, 1, 1}}}), doctest::Contains("entry 1"),
                         invalid_input);
    CHECK_THROWS_WITH_AS((void)price_of(ring, cabling::fixed, {.by_rate = {{100_Gbps, 1, -1, 1}}}), doctest::Contains("a price of -1"),
                         invalid_input);
    CHECK_THROWS_WITH_AS((void)price_of(ring, cabling::fixed, {.cable = -2}), doctest::Contains("a price of -2"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fat_tree_rate_of_similar_price(network{"", 1, 0, {}, {}}), doctest::Contains("without links"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fat_tree_rate_of_similar_price(fully_connected(100, {800_Gbps, {}})), doctest::Contains("one of 1e+11 B/s costs"),
                         invalid_input);
}
