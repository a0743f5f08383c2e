#include <parsearch/fabric/wiring/wirings.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/cases.hpp"
#include "support/networks.hpp"

using namespace parsearch;

TEST_CASE("wirings: valid, different, within the interfaces, the same each time") {
    for (std::uint64_t seed = 0; seed < support::cases<std::uint64_t>(200); ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const servers = static_cast<std::uint32_t>(2 + uniform_index(rng, 20)), degree = static_cast<std::uint32_t>(2 + uniform_index(rng, 6));
        fabric::demand d(servers);
        if (uniform_index(rng, 4) > 0) {
            std::vector<std::uint32_t> all;
            for (std::uint32_t s = 0; s < servers; ++s) all.push_back(s);
            d.add_all_reduce(all, 1'000'000);
        }
        for (std::uint64_t n = uniform_index(rng, 10); n > 0; --n) {
            auto const a = static_cast<std::uint32_t>(uniform_index(rng, servers)), b = static_cast<std::uint32_t>(uniform_index(rng, servers));
            if (a != b) d.add(a, b, 1'000'000);
        }
        fabric::wirings const wire{.degree = degree, .link = support::ten_gigabit, .seed = seed};
        auto const made = wire(d);
        CHECK_FALSE(made.empty());
        for (std::size_t i = 0; i < made.size(); ++i) {
            CHECK_NOTHROW(fabric::validate(made[i]));
            CHECK(made[i].servers == servers);
            auto const used = support::degrees(made[i]);
            CHECK(*std::max_element(used.begin(), used.end()) <= degree);
            for (std::size_t j = 0; j < i; ++j) CHECK_FALSE((made[i].rings == made[j].rings && fabric::same_wiring(made[i], made[j])));
        }
        CHECK(made == wire(d));
        auto const random = [](fabric::network const& n) { return n.name.starts_with("random"); };
        auto const count = std::count_if(made.begin(), made.end(), random);
        if (degree < servers) CHECK(count == (degree > 2));
        else CHECK(count <= (servers > 2)); // where all pairs are joined others may be wired so, too
    }
}

TEST_CASE("wirings: what a demand does not ask for is not tried") {
    fabric::wirings const wire{.degree = 4, .link = support::ten_gigabit};
    fabric::demand none(12), reduces(12), messages(12);
    reduces.add_all_reduce({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 1'000'000);
    messages.add(0, 5, 1'000'000);
    CHECK(wire(none).size() == 3); // a ring, at random, bonded
    CHECK(wire(reduces).size() >= 2);
    CHECK(wire(messages).size() >= 2);
    CHECK(wire(reduces).size() <= 5);
}
