#include <parsearch/fabric/network/rings.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::fabric;

TEST_CASE("rings: every step visits every member once, and no other step does") {
    for (std::uint32_t g = 2; g <= 300; ++g) {
        auto const steps = ring_steps(g);
        std::vector<std::uint32_t> members(g);
        std::iota(members.begin(), members.end(), 1000u);
        for (std::uint32_t p = 1; p < g; ++p) {
            // Walked, not computed: the walk from 0 comes back after g hops or sooner.
            std::uint32_t hops = 0;
            for (std::uint32_t at = 0; hops == 0 || at != 0; at = (at + p) % g) ++hops;
            REQUIRE((hops == g) == std::binary_search(steps.begin(), steps.end(), p));
            if (hops < g) continue;
            auto order = ring_order(members, p);
            REQUIRE(order[0] == 1000);
            REQUIRE(order[1 % g] == 1000 + p % g);
            std::sort(order.begin(), order.end());
            REQUIRE(order == members);
        }
    }
    CHECK(ring_steps(0).empty());
    CHECK(ring_steps(1).empty());
    CHECK(ring_steps(12) == std::vector<std::uint32_t>{1, 5, 7, 11});
    CHECK(ring_steps(16, step_set::prime) == std::vector<std::uint32_t>{1, 3, 5, 7, 11, 13});
    CHECK(ring_steps(10, step_set::prime) == std::vector<std::uint32_t>{1, 3, 7});
    CHECK(same_ring(3, 13, 16));
    CHECK_FALSE(same_ring(3, 5, 16));
    CHECK_THROWS_WITH_AS((void)ring_order(std::vector<std::uint32_t>{1, 2, 3, 4}, 2), doctest::Contains("step 2 through 4 members"), invalid_input);
}

TEST_CASE("rings: an all-reduce moves 2(g-1)/g of the bytes per member, exactly in all") {
    for (std::size_t g = 2; g <= 40; ++g)
        for (byte_count const bytes : {byte_count{0}, byte_count{1}, byte_count{7}, byte_count{1000}, byte_count{999'983}}) {
            auto const sent = ring_traffic(bytes, g);
            CHECK(sent.size() == g);
            CHECK(std::accumulate(sent.begin(), sent.end(), byte_count{0}) == static_cast<byte_count>(2 * (g - 1)) * bytes);
            double const formula = 2.0 * static_cast<double>(g - 1) / static_cast<double>(g) * static_cast<double>(bytes);
            for (auto const s : sent) {
                CHECK(static_cast<double>(s) > formula - 2);
                CHECK(static_cast<double>(s) < formula + 2);
            }
        }
    CHECK(ring_traffic(10, 1) == std::vector<byte_count>{0});
    CHECK(split_evenly(11, 4) == std::vector<byte_count>{3, 3, 3, 2});
    CHECK(ring_interfaces(1) == 0);
    CHECK(ring_interfaces(2) == 1);
    CHECK(ring_interfaces(3) == 2);
}

TEST_CASE("rings: traffic as a simulated ring all-reduce has it") {
    for (std::size_t g = 2; g <= 12; ++g) {
        byte_count const bytes = 1003;
        auto const chunk = split_evenly(bytes, g);
        std::vector<byte_count> sent(g, 0);
        // parts[i][c]: whose addends of chunk c position i holds, as bits.
        std::vector<std::vector<unsigned>> parts(g, std::vector<unsigned>(g));
        for (std::size_t i = 0; i < g; ++i) std::fill(parts[i].begin(), parts[i].end(), 1u << i);
        unsigned const all = (1u << g) - 1;
        for (std::size_t round = 0; round < 2 * (g - 1); ++round) {
            auto const before = parts;
            for (std::size_t i = 0; i < g; ++i) {
                auto const c = round < g - 1 ? (i + g - round) % g : (i + 1 + 2 * g - (round - (g - 1))) % g;
                auto& there = parts[(i + 1) % g][c];
                if (round < g - 1) REQUIRE((there & before[i][c]) == 0); // nothing is added twice
                there |= before[i][c];
                sent[i] += chunk[c];
            }
        }
        for (auto const& held : parts)
            for (auto const c : held) REQUIRE(c == all);
        CHECK(sent == ring_traffic(bytes, g));
    }
}

TEST_CASE("rings: a collective that goes round once") {
    using parsearch::collective_kind;
    std::vector<parsearch::byte_count> const part{1, 10, 100};
    auto const sends = [&](collective_kind kind, std::size_t root) { return parsearch::fabric::ring_sends(kind, part, root); };
    using bytes = std::vector<parsearch::byte_count>;
    CHECK(sends(collective_kind::all_gather, 0) == bytes{101, 11, 110});
    CHECK(sends(collective_kind::reduce_scatter, 0) == bytes{110, 101, 11});
    CHECK(sends(collective_kind::broadcast, 1) == bytes{0, 111, 111});
    CHECK(sends(collective_kind::reduce, 1) == bytes{111, 0, 111});
    CHECK(sends(collective_kind::all_reduce, 0) == parsearch::fabric::ring_traffic(111, 3));
    CHECK(parsearch::fabric::ring_sends(collective_kind::all_gather, bytes{5}, 0) == bytes{0});
}
