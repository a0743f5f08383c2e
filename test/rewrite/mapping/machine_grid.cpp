#include <parsearch/rewrite/mapping/machine_grid.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

topology::dense_topology machine(std::vector<std::uint32_t> const& nodes) {
    auto t = support::mesh(static_cast<std::uint32_t>(nodes.size()));
    t.node = nodes;
    return topology::read_topology(t).topology;
}
topology::dense_topology regular(std::uint32_t nodes, std::uint32_t each) {
    std::vector<std::uint32_t> node;
    for (std::uint32_t d = 0; d < nodes * each; ++d) node.push_back(d / each);
    return machine(node);
}

} // namespace

TEST_CASE("machine grid: as fine as the cells allow, nodes first") {
    auto const size = [](topology::dense_topology const& t, std::size_t cells) {
        auto const box = machine_grid(t, cells).machine();
        CHECK(box.first_node == 0);
        CHECK(box.first_device == 0);
        return std::pair(box.nodes, box.devices);
    };
    auto const four_by_six = regular(4, 6);
    CHECK(size(four_by_six, 24) == std::pair(4, 6));
    CHECK(size(four_by_six, 1000) == std::pair(4, 6));
    CHECK(size(four_by_six, 23) == std::pair(4, 3));
    CHECK(size(four_by_six, 12) == std::pair(4, 3));
    CHECK(size(four_by_six, 8) == std::pair(4, 2));
    CHECK(size(four_by_six, 4) == std::pair(4, 1));
    CHECK(size(four_by_six, 3) == std::pair(2, 1));
    CHECK(size(four_by_six, 1) == std::pair(1, 1));
    CHECK(size(regular(7, 2), 6) == std::pair(1, 2)); // a prime number of nodes is not cut, but theirs is
    // Nodes that differ, and devices that are not numbered node by node, are one node.
    CHECK(size(machine({0, 0, 1, 1, 1, 1}), 6) == std::pair(1, 6));
    CHECK(size(machine({0, 1, 0, 1}), 4) == std::pair(1, 4));
    CHECK(topology::devices_per_node(four_by_six) == 6);
    CHECK(topology::devices_per_node(machine({0, 0, 1, 1, 1, 1})) == 0);
    CHECK(topology::devices_per_node(machine({0, 1, 0, 1})) == 0);
    CHECK(support::refusal([&] { return machine_grid(four_by_six, 0); }) == "machine grid: 0 cells: must be at least 1");
    CHECK(support::refusal([] { return machine_grid(topology::dense_topology{}, 1); }) == "machine grid: a topology without devices");
}

TEST_CASE("machine grid: devices of boxes and boxes of configurations") {
    machine_grid const grid(regular(4, 6), 8); // cells of three devices
    CHECK(grid.devices() == 24);
    CHECK(grid.per_node() == 6);
    CHECK(grid.devices_of({.first_node = 1, .nodes = 2, .first_device = 1, .devices = 1}) == std::vector{9, 10, 11, 15, 16, 17});
    auto const all = grid.devices_of(grid.machine());
    std::vector<std::int32_t> counted(24);
    std::iota(counted.begin(), counted.end(), 0);
    CHECK(all == counted);
    split_mix rng{3};
    int over_nodes = 0;
    for (int n = 0; n < 300; ++n) {
        space::configuration c{.rank = 2, .degree = {1, 1}};
        c.degree[0] = static_cast<std::int32_t>(1 + uniform_index(rng, 4));
        c.degree[1] = static_cast<std::int32_t>(1 + uniform_index(rng, 3));
        for (std::int64_t s = 0; s < c.shards(); ++s) c.listed.push_back(static_cast<std::int32_t>(uniform_index(rng, 24)));
        auto const box = grid.footprint(c);
        // All of it within the box, and nothing along any of its sides without a shard.
        auto const holds = [&](resource_box const& b) {
            auto const within = grid.devices_of(b);
            return std::ranges::all_of(c.listed, [&](auto d) { return std::ranges::find(within, d) != within.end(); });
        };
        REQUIRE(grid.machine().contains(box));
        CHECK(holds(box));
        for (std::size_t k = 0; k < box.cuts(); ++k) {
            CHECK_FALSE(holds(box.lower(k)));
            CHECK_FALSE(holds(box.upper(k)));
        }
        over_nodes += box.nodes > 1;
    }
    CHECK(over_nodes > 50);
}
