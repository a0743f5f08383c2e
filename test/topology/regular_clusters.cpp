#include <parsearch/topology/regular_clusters.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::topology;

namespace {
constexpr link_description gigabyte{{1e9}, std::chrono::microseconds{1}};
using route_t = std::vector<std::uint32_t>;

/// The devices that a route passes, from its first to its last.
route_t devices_on(cluster const& c, std::uint32_t a, std::uint32_t b) {
    route_t out{a};
    for (auto const l : c.route(a, b)) out.push_back(c.ends_of(l).to.number);
    return out;
}
} // namespace

TEST_CASE("fully connected: a link for every ordered pair") {
    auto const c = fully_connected({.devices = 5, .device = v100_sxm, .link = gigabyte});
    CHECK(c.links().size() == 20);
    for (std::uint32_t a = 0; a < 5; ++a)
        for (std::uint32_t b = 0; b < 5; ++b)
            if (a != b) CHECK(devices_on(c, a, b) == route_t{a, b});
    CHECK(c.node_of(4) == 4);
    CHECK(fully_connected({.devices = 1, .device = k80, .link = gigabyte}).links().empty());
    CHECK_THROWS_WITH_AS((void)fully_connected({.device = k80, .link = gigabyte}), doctest::Contains("0 devices: must be from 1"), invalid_input);
    CHECK_THROWS_WITH_AS((void)fully_connected({.devices = 2, .device = k80}), doctest::Contains("bandwidth of 0"), invalid_input);
}

TEST_CASE("torus: neighbours, wrap-around, dimension order") {
    auto const c = torus({.extents = {4, 5}, .device = v100_sxm, .link = gigabyte}); // device 5 * row + column
    CHECK(c.size() == 20);
    CHECK(c.links().size() == 80);
    CHECK(devices_on(c, 0, 7) == route_t{0, 5, 6, 7}); // rows first, then columns
    CHECK(devices_on(c, 7, 0) == route_t{7, 2, 1, 0});
    CHECK(devices_on(c, 0, 19) == route_t{0, 15, 19});        // around both dimensions
    CHECK(devices_on(c, 0, 13) == route_t{0, 5, 10, 14, 13}); // half of 4 either way: upwards; 3 of 5: downwards around
    for (std::uint32_t a = 0; a < 20; ++a)
        for (std::uint32_t b = 0; b < 20; ++b) {
            auto const distance = [](std::uint32_t x, std::uint32_t y, std::uint32_t n) {
                auto const d = (y + n - x) % n;
                return std::min(d, n - d);
            };
            CHECK(c.route(a, b).size() == distance(a / 5, b / 5, 4) + distance(a % 5, b % 5, 5));
        }
}

TEST_CASE("torus: three dimensions, extents of one and two") {
    auto const c = torus({.extents = {2, 3, 1}, .device = v100_sxm, .link = gigabyte});
    CHECK(c.size() == 6);
    CHECK(c.links().size() == 6 * 3); // one neighbour in the first dimension, two in the second, none in the third
    CHECK(devices_on(c, 0, 5) == route_t{0, 3, 5});
    auto const cube = torus({.extents = {3, 3, 3}, .device = v100_sxm, .link = gigabyte});
    CHECK(cube.links().size() == 27 * 6);
    CHECK(devices_on(cube, 0, 26) == route_t{0, 18, 24, 26});
}

TEST_CASE("torus: mistakes") {
    auto const refused = [](std::vector<std::uint32_t> extents, char const* what) {
        CHECK_THROWS_WITH_AS((void)torus({.extents = extents, .device = k80, .link = gigabyte}), doctest::Contains(what), invalid_input);
    };
    refused({}, "torus of 0 dimensions");
    refused({4, 0}, "extent 0: must be from 1");
    refused({4000000000u}, "extent 4000000000: must be from 1");
    refused({200, 200}, "more than 8192 devices");
}

TEST_CASE("fat tree of k = 4: sizes and routes") {
    auto const c = fat_tree({.k = 4, .device = v100_sxm, .link = gigabyte});
    CHECK(c.size() == 16);
    CHECK(c.switches().size() == 4 + 8 + 8);
    CHECK(c.links().size() == 2 * (16 + 16 + 16));
    CHECK(c.route(0, 1).size() == 2);  // one edge switch
    CHECK(c.route(0, 2).size() == 4);  // one pod
    CHECK(c.route(0, 15).size() == 6); // through a core
    auto const switch_at = [&](std::uint32_t a, std::uint32_t b, std::size_t hop) { return c.switches()[c.ends_of(c.route(a, b)[hop]).to.number]; };
    CHECK(switch_at(0, 2, 1) == "aggregation 0"); // device 2 is the first of its edge switch
    CHECK(switch_at(0, 3, 1) == "aggregation 1");
    CHECK(switch_at(0, 15, 0) == "edge 0");
    CHECK(switch_at(0, 15, 1) == "aggregation 1");
    CHECK(switch_at(0, 15, 2) == "core 3");
    CHECK(switch_at(0, 15, 3) == "aggregation 7");
    CHECK(switch_at(0, 15, 4) == "edge 7");
}

TEST_CASE("fat tree: messages to the devices of a pod spread evenly over the cores") {
    auto const c = fat_tree({.k = 6, .device = v100_sxm, .link = gigabyte});
    CHECK(c.size() == 54);
    std::map<std::string, int> messages;
    for (std::uint32_t b = 45; b < 54; ++b) ++messages[c.switches()[c.ends_of(c.route(0, b)[2]).to.number]];
    CHECK(messages.size() == 9);
    for (auto const& [core, count] : messages) CHECK(count == 1);
}

TEST_CASE("fat tree: mistakes") {
    for (std::uint32_t const k : {0u, 1u, 3u, 34u})
        CHECK_THROWS_WITH_AS((void)fat_tree({.k = k, .device = k80, .link = gigabyte}), doctest::Contains(text("k = ", k).c_str()), invalid_input);
    CHECK(fat_tree({.k = 2, .device = k80, .link = gigabyte}).size() == 2);
}

TEST_CASE("1,024 devices") {
    CHECK(torus({.extents = {16, 8, 8}, .device = k80, .link = gigabyte}).size() == 1024);
    CHECK(fat_tree({.k = 16, .device = k80, .link = gigabyte}).size() == 1024);
    CHECK(fully_connected({.devices = 1024, .device = k80, .link = gigabyte}).route(1023, 0).size() == 1);
}
