#include <parsearch/fabric/wiring/found_network.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::fabric;

TEST_CASE("a found fabric as a network: links keep their numbers, wired rings go both ways") {
    link_description const each{{1e9}, std::chrono::microseconds{1}};
    demand d(5);
    d.add_all_reduce({0, 1, 2, 3, 4}, 1000);
    auto const t = topology_finder(d, 5, 2);
    auto const n = network_of(t, each);
    CHECK_NOTHROW(validate(n));
    REQUIRE(n.links.size() == t.links.size());
    for (std::size_t l = 0; l < n.links.size(); ++l) CHECK(n.links[l] == network_link{t.links[l].a, t.links[l].b, each});
    CHECK(n.rings == std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}});

    demand pair(2);
    pair.add_all_reduce({0, 1}, 10);
    CHECK(network_of(topology_finder(pair, 2, 1), each).rings == std::vector<std::vector<std::uint32_t>>{{0, 1}});

    // A group without interfaces has a ring without links: the network has none for it.
    demand routed(4);
    routed.add_all_reduce({0, 2}, 10);
    routed.add(0, 1, 1000);
    routed.add(1, 2, 1000);
    routed.add(2, 3, 1000);
    routed.add(3, 0, 1000);
    auto const without = topology_finder(routed, 4, 2, {.all_reduce_degree = 0});
    REQUIRE_FALSE(without.rings[0].wired());
    CHECK(network_of(without, each).rings.empty());
}
