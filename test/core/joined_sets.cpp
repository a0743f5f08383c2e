#include <parsearch/core/joined_sets.hpp>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("joined_sets: the smallest member stands for its set") {
    joined_sets sets(6);
    CHECK(sets.size() == 6);
    CHECK(sets.root(5) == 5);
    CHECK(sets.join(5, 3));
    CHECK(sets.join(4, 2));
    CHECK(sets.join(3, 4));
    CHECK_FALSE(sets.join(5, 2));
    for (auto const v : {2u, 3u, 4u, 5u}) CHECK(sets.root(v) == 2);
    CHECK(sets.root(1) == 1);
}
