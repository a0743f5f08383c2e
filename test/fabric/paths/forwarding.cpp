#include <parsearch/fabric/paths/forwarding.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/wiring/link_graph.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using steps_t = std::vector<std::uint32_t>;
using links_t = std::vector<fabric_link>;

namespace {
links_t circulant(std::uint32_t n, steps_t const& steps) {
    links_t out;
    for (auto const p : steps)
        for (std::uint32_t v = 0; v < (2 * p == n ? n / 2 : n); ++v) out.push_back({(v + p) % n, v});
    return out;
}
} // namespace

TEST_CASE("circulants are recognised by their links") {
    CHECK(circulant_steps(12, circulant(12, {1, 5})) == steps_t{1, 5});
    CHECK(circulant_steps(12, circulant(12, {6, 11})) == steps_t{1, 6});
    CHECK(circulant_steps(12, circulant(12, {1, 11})) == steps_t{1}); // two links each
    CHECK(circulant_steps(2, circulant(2, {1})) == steps_t{1});
    CHECK(circulant_steps(1, links_t{}) == steps_t{});
    auto links = circulant(12, {1, 5});
    links.pop_back();
    CHECK_FALSE(circulant_steps(12, links).has_value());
    links.push_back({0, 2});
    CHECK_FALSE(circulant_steps(12, links).has_value());
    CHECK_FALSE(circulant_steps(4, links_t{{0, 1}, {0, 1}, {2, 3}, {2, 3}}).has_value());
}

TEST_CASE("routes: coin change on circulants, shortest elsewhere") {
    forwarding_table const ring(6, circulant(6, {1}));
    CHECK(ring.steps() == steps_t{1});
    CHECK(ring.route(5, 1) == steps_t{5, 0, 1});
    CHECK(ring.route(3, 3) == steps_t{3});
    links_t const square{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}};
    forwarding_table const t(5, square);
    CHECK_FALSE(t.steps().has_value());
    CHECK(t.route(4, 2).size() == 4);
    CHECK(t.route(0, 2) == steps_t{0, 1, 2}); // (0 + 2) mod 2: the first of 1 and 3
    CHECK(t.next(1, 3) == 0);
    CHECK(t.route(4, 0) == steps_t{4, 0});
}

TEST_CASE("routes: mistakes") {
    CHECK_THROWS_WITH_AS(forwarding_table(4, circulant(4, {2})), doctest::Contains("routes to vertex 0: 2 vertices are not connected"),
                         invalid_input);
    CHECK_THROWS_WITH_AS(forwarding_table(3, links_t{}), doctest::Contains("routes to vertex 0: 2 vertices"), invalid_input);
    CHECK_THROWS_WITH_AS(forwarding_table(3, links_t{{0, 3}}), doctest::Contains("a link joins 0 and 3"), invalid_input);
    CHECK_THROWS_WITH_AS(forwarding_table(3, links_t{{1, 1}}), doctest::Contains("a link joins 1 and 1"), invalid_input);
    CHECK(forwarding_table(1, links_t{}).route(0, 0) == steps_t{0});
}
