#include <parsearch/topology/route_table.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using parsearch::topology::route_table;

TEST_CASE("route_table: routes of all pairs; copies share them") {
    route_table const table(2, {0, 0, 2, 3, 3}, {4, 5, 6});
    CHECK(table(0, 0).empty());
    CHECK(std::ranges::equal(table(0, 1), std::vector<std::uint32_t>{4, 5}));
    CHECK(std::ranges::equal(table(1, 0), std::vector<std::uint32_t>{6}));
    auto const copy = table;
    CHECK(copy(0, 1).data() == table(0, 1).data());
    CHECK(copy == table);
    CHECK(table == route_table(2, {0, 0, 2, 3, 3}, {4, 5, 6}));
    CHECK(!(table == route_table(2, {0, 0, 2, 3, 3}, {4, 5, 7})));
    CHECK(!(table == route_table{}));
    CHECK(route_table{} == route_table{});
    CHECK(route_table{}(0, 0).empty());
}
