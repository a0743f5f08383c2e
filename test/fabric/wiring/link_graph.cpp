#include <parsearch/fabric/wiring/link_graph.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
void ring(link_graph& g, std::uint32_t first, std::uint32_t last) {
    for (auto v = first; v <= last; ++v) g.add(v, v == last ? first : v + 1, link_purpose::ring);
}
} // namespace

TEST_CASE("links take interfaces") {
    link_graph g(3, 2);
    CHECK(g.add(0, 1, link_purpose::joint) == 0);
    CHECK(g.add(1, 0, link_purpose::joint) == 1);
    CHECK(g.free(0) == 0);
    CHECK(g.free(2) == 2);
    CHECK_FALSE(g.connected());
    CHECK_THROWS_WITH_AS(g.add(0, 2, link_purpose::joint), "fabric: a link of servers 0 and 2 with 0 and 2 free interfaces", std::logic_error);
    CHECK_THROWS_AS(g.add(2, 2, link_purpose::joint), std::logic_error);
    g.move(1, 1, 2);
    CHECK(g.free(0) == 1);
    CHECK(g.connected());
}

TEST_CASE("connecting: free interfaces first, then links that are no ring's, then rings") {
    link_graph open(6, 3);
    ring(open, 0, 2);
    ring(open, 3, 5);
    open.connect();
    CHECK(open.links().size() == 7);
    CHECK(open.links()[6] == fabric_link{0, 3, link_purpose::joint});

    link_graph full(8, 3); // two rings of four, their diagonals, and no interface left
    ring(full, 0, 3);
    ring(full, 4, 7);
    for (std::uint32_t const v : {0u, 1u, 4u, 5u}) full.add(v, v + 2, link_purpose::point_to_point);
    full.connect();
    CHECK(full.connected());
    CHECK(full.links().size() == 12);
    for (std::uint32_t l = 0; l < 8; ++l) CHECK(full.links()[l].purpose == link_purpose::ring);
    CHECK(full.links()[8].purpose == link_purpose::point_to_point);
    CHECK(full.links()[9] == fabric_link{1, 5, link_purpose::joint}); // the last diagonals exchange their ends
    CHECK(full.links()[11] == fabric_link{3, 7, link_purpose::joint});

    link_graph rings(6, 2);
    ring(rings, 0, 2);
    ring(rings, 3, 5);
    rings.connect();
    CHECK(rings.connected());
    CHECK(rings.links().size() == 6);
    int cut = 0;
    for (auto const& l : rings.links()) cut += l.purpose != link_purpose::ring;
    CHECK(cut == 2);
}

TEST_CASE("random links: connected without breaking the degree, then filled") {
    std::uint64_t const seed = 20260804;
    MESSAGE("seed ", seed);
    split_mix rng(seed);
    for (int i = 0; i < 5000; ++i) {
        auto const n = static_cast<std::uint32_t>(3 + uniform_index(rng, 30)), degree = static_cast<std::uint32_t>(2 + uniform_index(rng, 5));
        link_graph g(n, degree);
        for (auto k = uniform_index(rng, n * degree); k > 0; --k) {
            auto const a = static_cast<std::uint32_t>(uniform_index(rng, n)), near = static_cast<std::uint32_t>(uniform_index(rng, 4));
            auto const b = (a / 4 * 4 + near) % n; // mostly inside blocks of four
            if (a != b && g.free(a) > 0 && g.free(b) > 0) g.add(a, b, uniform_index(rng, 2) ? link_purpose::ring : link_purpose::point_to_point);
        }
        auto const before = g.links().size();
        g.connect();
        REQUIRE(g.connected());
        REQUIRE(g.links().size() >= before);
        g.fill();
        REQUIRE(g.connected());
        std::vector<std::uint32_t> used(n, 0);
        for (auto const& l : g.links()) {
            ++used[l.a];
            ++used[l.b];
        }
        int open = 0;
        for (std::uint32_t v = 0; v < n; ++v) {
            REQUIRE(used[v] + g.free(v) == degree);
            open += g.free(v) > 0;
        }
        REQUIRE(open <= 1);
    }
}

TEST_CASE("filling: interfaces left go far") {
    link_graph g(10, 3);
    ring(g, 0, 9);
    g.fill();
    CHECK(g.links().size() == 15);
    CHECK(g.links()[10] == fabric_link{0, 5, link_purpose::joint});
    link_graph impossible(3, 1);
    CHECK_THROWS_AS(impossible.connect(), std::logic_error);
}
