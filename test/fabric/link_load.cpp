#include <parsearch/fabric/link_load.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

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
