#include <parsearch/core/collective.hpp>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("collective: every kind has a name of its own") {
    CHECK(name_of(collective_kind::all_reduce) == "all_reduce");
    CHECK(name_of(collective_kind::all_gather) == "all_gather");
    CHECK(name_of(collective_kind::reduce_scatter) == "reduce_scatter");
    CHECK(name_of(collective_kind::all_to_all) == "all_to_all");
    CHECK(name_of(collective_kind::broadcast) == "broadcast");
    CHECK(name_of(collective_kind::reduce) == "reduce");
}

TEST_CASE("collective: a group is one device unless it says more, and compares by all its members") {
    collective_group const alone;
    CHECK(alone.size == 1);
    CHECK(alone.nodes == 1);
    CHECK(alone.per_node == 1);
    collective_group other;
    CHECK(other == alone);
    other.between_latency = picoseconds{1};
    CHECK_FALSE(other == alone);
}
