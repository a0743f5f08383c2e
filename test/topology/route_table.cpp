#include <parsearch/topology/route_table.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include <doctest/doctest.h>

using parsearch::topology::link_lists;
using parsearch::topology::route_links;
using parsearch::topology::route_table;
using links = std::vector<std::uint32_t>;

namespace {
link_lists lists(std::vector<links> const& all) {
    link_lists out;
    for (auto const& one : all) out.add_all(one);
    return out;
}
links of(route_links const& r) { return {r.begin(), r.end()}; }

// Devices 0 and 2 are in group 0, 1 in group 1.
route_table through_a_switch() { return {{0, 1, 0}, lists({{}, {10, 11}, {}, {12, 13}, {}}), lists({{1}, {2, 3}, {4}}), lists({{5}, {6}, {7, 8}})}; }
// The same, as a list for each pair.
route_table all_pairs() { return {3, lists({{}, {1, 6}, {10, 11}, {2, 3, 5}, {}, {2, 3, 7, 8}, {12, 13}, {4, 6}, {}})}; }
} // namespace

static_assert(std::forward_iterator<route_links::iterator>);

TEST_CASE("route_table: routes of all pairs; copies share them") {
    route_table const table(2, lists({{}, {4, 5}, {6}, {}}));
    CHECK(table(0, 0).empty());
    CHECK(of(table(0, 1)) == links{4, 5});
    CHECK(of(table(1, 0)) == links{6});
    auto const copy = table;
    CHECK(&*copy(0, 1).begin() == &*table(0, 1).begin());
    CHECK(copy == table);
    CHECK(table == route_table(2, lists({{}, {4, 5}, {6}, {}})));
    CHECK(!(table == route_table(2, lists({{}, {4, 5}, {7}, {}}))));
    CHECK(!(table == route_table{}));
    CHECK(route_table{} == route_table{});
    CHECK(route_table{}(0, 0).empty());
    CHECK(table.groups() == 1);
    CHECK(table.up(1).empty());
}

TEST_CASE("route_table: between groups a route is one to the switch and one from it") {
    auto const t = through_a_switch();
    CHECK(t.groups() == 2);
    CHECK(t.group(2) == 0);
    CHECK(of(t(0, 2)) == links{10, 11});
    CHECK(of(t(2, 0)) == links{12, 13});
    CHECK(of(t(1, 2)) == links{2, 3, 7, 8});
    CHECK(of(t(0, 1)) == links{1, 6});
    CHECK(t(1, 1).empty());
    auto const r = t(1, 2);
    CHECK(r.size() == 4);
    CHECK(r.front() == 2);
    CHECK(r.back() == 8);
    CHECK(r[1] == 3);
    CHECK(r[2] == 7);
    CHECK(*std::ranges::min_element(r) == 2);
    CHECK(t == all_pairs());
    CHECK(all_pairs() == t);
    CHECK(!(t == route_table(3, lists({{}, {1, 6}, {10, 11}, {2, 3, 5}, {}, {2, 3, 7, 9}, {12, 13}, {4, 6}, {}}))));
}

TEST_CASE("route_table: parts, and other numbers of links") {
    for (auto const& t : {through_a_switch(), all_pairs()}) {
        std::vector<std::size_t> const kept{1, 2};
        auto const part = t.part(kept);
        CHECK(of(part(0, 1)) == links{2, 3, 7, 8});
        CHECK(of(part(1, 0)) == links{4, 6});
        CHECK(part(0, 0).empty());
        links number;
        for (std::uint32_t l = 0; l < 14; ++l) number.push_back(100 + l);
        CHECK(of(part.with_links(number)(1, 0)) == links{104, 106});
        std::vector<bool> met(14, false);
        part.for_each_link([&](auto l) { met[l] = true; });
        CHECK(met[3]);
        CHECK_FALSE(met[10]);
        CHECK_FALSE(met[1]);
    }
}
