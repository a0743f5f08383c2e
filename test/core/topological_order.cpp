#include <parsearch/core/topological_order.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace {

struct visited {
    std::vector<std::uint32_t> order, waits;
};

visited visit(std::size_t vertices, std::vector<std::pair<std::uint32_t, std::uint32_t>> const& edges) {
    visited out{{}, std::vector<std::uint32_t>(vertices, 0)};
    for (auto const& [from, to] : edges) ++out.waits[to];
    auto const each_next = [&](std::uint32_t v, auto const& f) {
        for (auto const& [from, to] : edges)
            if (from == v) f(to);
    };
    visit_topologically(std::span(out.waits), each_next, [&](std::uint32_t v) { out.order.push_back(v); });
    return out;
}

using numbers = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("topological order: the smallest number first among what is ready") {
    CHECK(visit(0, {}).order.empty());
    CHECK(visit(3, {}).order == numbers{0, 1, 2});
    CHECK(visit(4, {{3, 0}, {0, 1}}).order == numbers{2, 3, 0, 1});
    CHECK(visit(4, {{3, 0}, {3, 0}, {1, 0}}).order == numbers{1, 2, 3, 0}); // an edge that is there twice
}

TEST_CASE("topological order: what is on a cycle or behind one keeps waiting") {
    auto const found = visit(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}});
    CHECK(found.order == numbers{0, 4});
    CHECK(found.waits == numbers{0, 1, 1, 1, 0});
}
