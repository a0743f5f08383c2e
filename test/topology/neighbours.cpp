#include <parsearch/topology/neighbours.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"

using namespace parsearch;

namespace {
topology::dense_topology on_nodes(std::vector<std::uint32_t> node) {
    auto t = support::mesh(static_cast<std::uint32_t>(node.size()));
    t.node = std::move(node);
    return topology::read_topology(t).topology;
}
using numbers = std::vector<std::size_t>;
} // namespace

TEST_CASE("neighbours: on as few and as full nodes as there are") {
    auto const t = on_nodes({0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
    std::vector<bool> free(11, true);
    CHECK(topology::take_neighbours(t, free, 4) == numbers{3, 4, 5, 6}); // a whole node, not the first four devices
    CHECK(std::ranges::count(free, true) == 7);
    CHECK(topology::take_neighbours(t, free, 2) == numbers{0, 1});           // of the node with the fewest
    CHECK(topology::take_neighbours(t, free, 5) == numbers{2, 7, 8, 9, 10}); // no run is as long
    CHECK(std::ranges::count(free, true) == 0);
}

TEST_CASE("neighbours: of what is free, ascending, in a run where there is one") {
    for (std::uint64_t seed = 1; seed <= support::cases(500u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::vector<std::uint32_t> node;
        for (std::uint32_t n = 0; node.size() < 12; ++n)
            node.insert(node.end(), std::min<std::size_t>(1 + uniform_index(rng, 4), 12 - node.size()), n);
        auto const t = on_nodes(node);
        std::vector<bool> free(12, true);
        for (std::size_t d = 1; d < 12; ++d) free[d] = bernoulli(rng, 0.7);
        auto const before = free;
        auto const all = static_cast<std::size_t>(std::ranges::count(free, true));
        auto const count = 1 + uniform_index(rng, all);
        auto const taken = topology::take_neighbours(t, free, count);
        REQUIRE(taken.size() == count);
        REQUIRE(std::ranges::is_sorted(taken));
        for (std::size_t d = 0; d < 12; ++d) REQUIRE(free[d] == (before[d] && !std::ranges::binary_search(taken, d)));
        // The free devices of the nodes that a run touches.
        auto const touched = [&](numbers const& run) {
            std::map<std::uint32_t, std::size_t> nodes;
            for (auto const d : run) nodes[node[d]] = 0;
            std::size_t out = 0;
            for (std::size_t d = 0; d < 12; ++d) out += before[d] && nodes.contains(node[d]);
            return out;
        };
        // As full as can be: no more free devices on its nodes than on the fullest.
        std::map<std::uint32_t, std::size_t> on;
        for (std::size_t d = 0; d < 12; ++d) on[node[d]] += before[d];
        numbers fullest;
        for (auto const& [n, devices] : on) fullest.push_back(devices);
        std::ranges::sort(fullest, std::greater<>{});
        std::size_t most = 0;
        for (std::size_t n = 0, taken_so_far = 0; taken_so_far < count; ++n) {
            taken_so_far += fullest[n];
            most += fullest[n];
        }
        REQUIRE(touched(taken) <= most);
        bool const is_run = taken.back() - taken.front() + 1 == count;
        for (std::size_t first = 0; first + count <= 12; ++first) {
            numbers run;
            for (auto d = first; d < first + count; ++d)
                if (before[d]) run.push_back(d);
            if (run.size() < count) continue;
            REQUIRE((is_run || touched(run) > most));
            REQUIRE((touched(taken) <= touched(run)));
        }
    }
}
