#include <parsearch/fabric/network/link_index.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/network.hpp>

using namespace parsearch::fabric;

TEST_CASE("links are found by their ends, parallel ones in turn") {
    std::vector<network_link> const links{{0, 1, {}}, {2, 1, {}}, {1, 0, {}}, {0, 1, {}}};
    link_index const index(4, links);
    CHECK(index.vertices() == 4);
    CHECK(index.all_between(0, 1).size() == 3);
    CHECK(index.between(0, 1, 0) == 0);
    CHECK(index.between(0, 1, 1) == 5); // link 2, from its end b
    CHECK(index.between(0, 1, 2) == 6);
    CHECK(index.between(0, 1, 3) == 0);
    CHECK(index.between(1, 0, 1) == 4);
    CHECK(index.between(1, 2) == 3);
    CHECK(index.all_between(0, 2).empty());
    CHECK(index.out_of(1).size() == 4);
    CHECK(index.out_of(3).empty());
}
