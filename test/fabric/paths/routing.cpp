#include <parsearch/fabric/paths/routing.hpp>

#include <cstdint>
#include <set>

#include <doctest/doctest.h>

using namespace parsearch::fabric;

TEST_CASE("flows hash the same on every platform, places apart") {
    CHECK(flow_between(1, 2) != flow_between(2, 1));
    std::set<std::uint64_t> seen;
    for (std::uint64_t place = 0; place < 10'000; ++place) seen.insert(flow_hash(1, flow_between(3, 4), place));
    CHECK(seen.size() == 10'000);
    CHECK(flow_hash(0, 0, 0) == 2558736989570252433u); // by an implementation in Python
    CHECK(flow_hash(1, flow_between(3, 4), 5) == 16975667088558502343u);
    CHECK(flow_hash(1, 2, 3) != flow_hash(2, 2, 3));
    CHECK(flow_hash(1, 2, 3) != flow_hash(1, 3, 3));
    CHECK(name_of(routing::k_shortest) == "k_shortest");
}
