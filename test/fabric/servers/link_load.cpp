#include <parsearch/fabric/servers/link_load.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/regular_networks.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using bytes_t = std::vector<byte_count>;

TEST_CASE("load: a ring of three, both ways, and messages") {
    demand d(3);
    d.add_all_reduce({0, 1, 2}, 600);
    auto const t = topology_finder(d, 3, 2);
    REQUIRE(t.links.size() == 3);
    // 300 bytes each way round: 2 * 2/3 of them per link and direction.
    auto load = load_of(t, d);
    CHECK(load.all_reduce == bytes_t{400, 400, 400, 400, 400, 400});
    CHECK(load.point_to_point == bytes_t(6, 0));
    CHECK(load.busiest() == 400);
    CHECK(load.demanded == 2400);
    d.add(2, 0, 50); // link 2 leads from 2 to 0
    load = load_of(t, d);
    CHECK(load.point_to_point == bytes_t{0, 0, 0, 0, 50, 0});
    CHECK(load.total(4) == 450);
    CHECK(load.bandwidth_tax() == 1);
}

TEST_CASE("load: a pair exchanges the bytes over each of its links") {
    demand d(2);
    d.add_all_reduce({0, 1}, 900);
    auto const t = topology_finder(d, 2, 3);
    CHECK(load_of(t, d).all_reduce == bytes_t(6, 300)); // half of 300 in the reduce-scatter, half in the all-gather
}

TEST_CASE("load: a hop without a link takes the way round") {
    demand d(4);
    d.add_all_reduce({0, 2}, 10);
    d.add(0, 1, 1'000'000);
    d.add(1, 2, 1'000'000);
    d.add(2, 3, 1'000'000);
    d.add(3, 0, 1'000'000);
    auto const t = topology_finder(d, 4, 2, {.all_reduce_degree = 0});
    REQUIRE(t.rings.size() == 1);
    CHECK_FALSE(t.rings[0].wired());
    auto const load = load_of(t, d);
    byte_count sum = 0;
    for (auto const b : load.all_reduce) sum += b;
    CHECK(sum == 2 * d.all_reduce_bytes()); // two hops instead of one
    CHECK(load.bandwidth_tax() > 1);
}

TEST_CASE("load of networks: rings of the network, groups without, detours") {
    link_description const each{{1e9}, {}};
    auto const n = circulant(6, {1}, each);
    demand d(6);
    d.add_all_reduce({0, 1, 2, 3, 4, 5}, 600);
    auto load = load_of(n, path_table(n), d);
    CHECK(load.all_reduce == bytes_t(12, 500)); // 300 each way round, 2 * 5/6 of them
    CHECK(load.bandwidth_tax() == 1);
    d.add_all_reduce({0, 2}, 100); // no ring: 100 bytes each way, over two hops
    d.add(0, 3, 7);
    load = load_of(n, path_table(n), d);
    CHECK(load.demanded == 10 * 600 + 200 + 7);
    CHECK(load.bandwidth_tax() == doctest::Approx((6000.0 + 400 + 21) / 6207).epsilon(1e-15));
    auto const star = ideal_switch(6, each);
    load = load_of(star, path_table(star), d); // one ring in ascending order, two hops from server to server
    CHECK(load.bandwidth_tax() == 2);
    CHECK(load.all_reduce[0] == 1000 + 100);
    CHECK_THROWS_WITH_AS((void)load_of(star, path_table(n), demand(5)), doctest::Contains("demand of 5 servers on a fabric of 6"), invalid_input);
    CHECK_THROWS_WITH_AS((void)load_of(circulant(5, {1}, each), path_table(n), demand(5)), doctest::Contains("routes between 6"), invalid_input);
}

TEST_CASE("load of networks: rings that repeat a hop take turns on parallel links") {
    auto const n = circulant(5, {1, 1}, {{1e9}, {}});
    REQUIRE(n.rings.size() == 4);
    demand d(5);
    d.add_all_reduce({0, 1, 2, 3, 4}, 1000);
    CHECK(load_of(n, path_table(n), d).all_reduce == bytes_t(20, 400)); // 250 on each of four directed rings, 2 * 4/5 of them
}
