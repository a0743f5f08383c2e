#include <parsearch/sim/schedule/task_graph.hpp>

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

TEST_CASE("task_graph: predecessors of each task; clear keeps nothing") {
    sim::task_graph g;
    for (int round = 0; round < 2; ++round) {
        g.clear(4);
        CHECK(g.size() == 0);
        CHECK(g.resources == 4);
        CHECK(g.add(3, 7, sim::task_kind::forward, {1, 2}) == 0);
        g.after(0);
        CHECK(g.add(0, 9, sim::task_kind::transfer, {5, 6}) == 1);
        g.after(1);
        g.after(0);
        CHECK(g.add(1, 0, sim::task_kind::barrier, {}) == 2);
        CHECK(g.before(0).empty());
        CHECK(std::vector<std::uint32_t>(g.before(1).begin(), g.before(1).end()) == std::vector<std::uint32_t>{0});
        CHECK(std::vector<std::uint32_t>(g.before(2).begin(), g.before(2).end()) == std::vector<std::uint32_t>{1, 0});
        CHECK(g.duration == std::vector<std::int64_t>{7, 9, 0});
        CHECK(g.resource == std::vector<std::uint32_t>{3, 0, 1});
        CHECK(g.label[1].op == 5);
        CHECK(g.label[1].number == 6);
    }
}

TEST_CASE("task_graph: names") {
    std::set<std::string_view> kinds, traffic;
    for (int k = 0; k < 6; ++k) kinds.insert(sim::name_of(static_cast<sim::task_kind>(k)));
    for (std::size_t k = 0; k < sim::traffic_kinds; ++k) traffic.insert(sim::name_of(static_cast<sim::traffic_kind>(k)));
    CHECK(kinds == std::set<std::string_view>{"forward", "backward", "update", "transfer", "collective", "barrier"});
    CHECK(traffic == std::set<std::string_view>{"activation", "gradient", "partial_sum", "weight_gradient"});
}
