#include <parsearch/fabric/network/network.hpp>

#include <chrono>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::fabric;

TEST_CASE("networks are checked") {
    link_description const link{{1e9}, std::chrono::microseconds{1}};
    network const good{"", 3, 1, {{0, 3, link}, {3, 1, link}, {2, 1, link}, {2, 1, link}}, {{0, 2, 1}, {1, 2}}};
    CHECK_NOTHROW(validate(good));
    CHECK_NOTHROW(validate(network{"one", 1, 0, {}, {}}));
    auto const refused = [&](auto const& change, char const* why) {
        auto n = good;
        change(n);
        CAPTURE(why);
        CHECK_THROWS_WITH_AS(validate(n), doctest::Contains(why), invalid_input);
    };
    refused([](auto& n) { n.servers = 0; }, "network of 0 servers and 1 switches: must have a server");
    refused([](auto& n) { n.switches = ~0u; }, "at most 131072 of both together");
    refused(
        [](auto& n) {
            n.name = "mine";
            n.links[1].a = 4;
        },
        "network mine, link 1 joins 4 and 1: must join two different ones of 4 vertices");
    refused([](auto& n) { n.links[2].b = 2; }, "link 2 joins 2 and 2");
    refused([](auto& n) { n.links[3].each.rate = {0}; }, "link 3 has a bandwidth of 0");
    refused([](auto& n) { n.links[3].each.latency = picoseconds{-1}; }, "link 3 has a latency of -1 ps");
    refused([](auto& n) { n.links[1].wires = 0; }, "link 1 of 0 wires: must have at least one");
    refused([](auto& n) { n.switches = 2; }, "vertex 4 cannot be reached from server 0");
    refused([](auto& n) { n.rings[0] = {1}; }, "ring 0 has 1 servers");
    refused([](auto& n) { n.rings[1] = {1, 3}; }, "ring 1 passes server 3: there are 3 servers");
    refused([](auto& n) { n.rings[1] = {1, 2, 1}; }, "ring 1 passes server 1 twice");
}

TEST_CASE("bundles of wires: rates add up, and come apart again") {
    network_link const wire{0, 3, {{12.5e9}, std::chrono::microseconds{1}, {1e9}}};
    auto const three = bundle_of(wire, 3);
    CHECK(three == network_link{0, 3, {{37.5e9}, std::chrono::microseconds{1}, {3e9}}, 3});
    CHECK(one_wire_of(three) == wire);
    CHECK(bundle_of(wire, 1) == wire);
    CHECK(one_wire_of(wire) == wire);
}
