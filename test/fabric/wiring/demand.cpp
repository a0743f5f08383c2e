#include <parsearch/fabric/wiring/demand.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::fabric;

TEST_CASE("demand: what was added, summed up") {
    demand d(4);
    d.add(0, 1, 10);
    d.add(0, 1, 5);
    d.add(1, 0, 3);
    d.add_all_reduce({3, 1, 2}, 100);
    d.add_all_reduce({0, 1}, 7);
    d.add_all_reduce({1, 2, 3}, 20); // the first group again
    CHECK(d.servers() == 4);
    CHECK(d.between(0, 1) == 15);
    CHECK(d.between(1, 0) == 3);
    CHECK(d.between(2, 3) == 0);
    CHECK(d.groups() == std::vector<all_reduce_demand>{{{1, 2, 3}, 120}, {{0, 1}, 7}});
    CHECK(d.point_to_point_bytes() == 18);
    CHECK(d.all_reduce_bytes() == 4 * 120 + 2 * 7);
}

TEST_CASE("demand: mistakes change nothing") {
    demand d(3);
    d.add(0, 1, 1);
    auto const before = d;
    auto const refused = [&](auto const& add, char const* what) {
        CHECK_THROWS_WITH_AS(add(), doctest::Contains(what), invalid_input);
        CHECK(d == before);
    };
    refused([&] { d.add(0, 3, 1); }, "point-to-point demand of server 3: there are 3 servers");
    refused([&] { d.add(2, 2, 1); }, "of server 2 with itself");
    refused([&] { d.add(0, 2, -1); }, "of -1 bytes: bytes must be from 0");
    refused([&] { d.add(0, 2, demand::max_bytes); }, "on the wire in all");
    refused([&] { d.add_all_reduce({1}, 1); }, "all-reduce of 1 servers: needs at least two");
    refused([&] { d.add_all_reduce({1, 4}, 1); }, "all-reduce of server 4");
    refused([&] { d.add_all_reduce({1, 0, 1}, 1); }, "names server 1 twice");
    refused([&] { d.add_all_reduce({1, 0}, -5); }, "of -5 bytes");
    refused([&] { d.add_all_reduce({1, 0}, std::numeric_limits<byte_count>::max()); }, "on the wire in all");
    refused([&] { d.add_all_reduce({1, 0}, demand::max_bytes / 2); }, "on the wire in all");
    CHECK_THROWS_WITH_AS(demand(0), doctest::Contains("demand of 0 servers: must be from 1"), invalid_input);
    CHECK_THROWS_WITH_AS(demand(4097), doctest::Contains("demand of 4097 servers"), invalid_input);
}
