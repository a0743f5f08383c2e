#include <parsearch/fabric/wiring/bonded_links.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>

#include "support/networks.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using fabric::bonded_links;
using support::ten_gigabit;

namespace {

/// How many interfaces join two servers.
std::uint32_t wires(fabric::network const& n, std::uint32_t a, std::uint32_t b) {
    for (auto const& l : n.links)
        if ((l.a == a && l.b == b) || (l.a == b && l.b == a))
            return static_cast<std::uint32_t>(l.each.rate.bytes_per_second / ten_gigabit.rate.bytes_per_second + 0.5);
    return 0;
}

/// A network that uses no interface twice, and all but one where all may be used.
void check(fabric::network const& n, std::uint32_t servers, std::uint32_t degree) {
    validate(n);
    std::uint32_t left = 0;
    for (std::uint32_t a = 0; a < servers; ++a) {
        std::uint32_t used = 0;
        for (std::uint32_t b = 0; b < servers; ++b)
            if (a != b) used += wires(n, a, b);
        REQUIRE(used <= degree);
        left += used < degree;
    }
    CHECK(left <= 1);
    for (auto const& l : n.links) CHECK(l.each.latency == ten_gigabit.latency);
}

} // namespace

TEST_CASE("bonded links: interfaces go where the bytes are, by hand") {
    fabric::demand d(6);
    d.add(0, 1, 300);
    d.add(1, 0, 100); // of both directions the larger counts
    d.add(0, 2, 100);
    d.add_all_reduce({3, 4}, 1000);
    auto const n = bonded_links(d, 4, ten_gigabit);
    check(n, 6, 4);
    // 300 : 100 over four interfaces; the two that all-reduce lose one for the way to the others.
    CHECK(wires(n, 0, 1) == 3);
    CHECK(wires(n, 0, 2) == 1);
    CHECK(wires(n, 3, 4) == 3);
    CHECK(n.rings == std::vector<std::vector<std::uint32_t>>{{3, 4}});
    CHECK(n.name == "bonded links");

    fabric::demand ring(4);
    ring.add_all_reduce({0, 1, 2, 3}, 1000);
    auto const square = bonded_links(ring, 4, ten_gigabit);
    for (std::uint32_t a = 0; a < 4; ++a) CHECK(wires(square, a, (a + 1) % 4) == 2);
    CHECK(square.rings == std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {3, 2, 1, 0}});

    CHECK(wires(bonded_links(fabric::demand(2), 3, ten_gigabit), 0, 1) == 3);
    CHECK(bonded_links(fabric::demand(1), 0, ten_gigabit).links.empty());
}

TEST_CASE("bonded links: any demand is connected") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const servers = static_cast<std::uint32_t>(2 + uniform_index(rng, 12)), degree = static_cast<std::uint32_t>(2 + uniform_index(rng, 5));
        fabric::demand d(servers);
        auto const server = [&] { return static_cast<std::uint32_t>(uniform_index(rng, servers)); };
        for (auto more = uniform_index(rng, 20); more > 0; --more)
            if (auto const a = server(), b = server(); a != b) d.add(a, b, static_cast<byte_count>(uniform_index(rng, 1000)));
        for (auto more = uniform_index(rng, 4); more > 0; --more) {
            std::vector<std::uint32_t> members;
            for (std::uint32_t a = 0; a < servers; ++a)
                if (bernoulli(rng, 0.4)) members.push_back(a);
            if (members.size() > 1) d.add_all_reduce(members, static_cast<byte_count>(uniform_index(rng, 1000)));
        }
        auto const n = bonded_links(d, degree, ten_gigabit);
        check(n, servers, degree);
        for (auto const& r : n.rings)
            for (std::size_t i = 0; i < r.size(); ++i) CHECK(wires(n, r[i], r[(i + 1) % r.size()]) > 0);
        CHECK(bonded_links(d, degree, ten_gigabit) == n);
        auto const all = fabric::wirings{.degree = degree, .link = ten_gigabit}(d);
        CHECK(std::ranges::any_of(all, [&](fabric::network const& other) { return other.rings == n.rings && same_wiring(other, n); }));
    }
}

TEST_CASE("bonded links: mistakes are named") {
    CHECK(support::refusal([] { return bonded_links(fabric::demand(3), 1, ten_gigabit); }) ==
          "bonded links of 3 servers with 1 interfaces: must be at least 2");
    CHECK(support::refusal([] { return bonded_links(fabric::demand(2), 0, ten_gigabit); }) ==
          "bonded links of 2 servers with 0 interfaces: must be at least 1");
}
