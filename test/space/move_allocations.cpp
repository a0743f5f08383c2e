// Moves allocate nothing once they are warm. Sanitizers have allocators of their own.
#include "support/cases.hpp"
#ifndef PARSEARCH_TEST_SANITIZED

#include <cstddef>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/gpt.hpp>
#include <parsearch/space/propagate.hpp>
#include <parsearch/space/repeat.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/allocations.hpp"

using namespace parsearch;
using support::allocations;

namespace {
template <class M> void stays_within_its_memory(M move, space::strategy_space const& space, space::flat_strategy const& start) {
    std::mt19937_64 rng(1);
    std::vector<change<space::configuration>> out;
    auto s = start;
    std::size_t proposed = 0;
    auto const walk = [&](int steps) {
        auto const before = allocations;
        for (int n = 0; n < steps; ++n) {
            out.clear();
            if (!move(space, s, rng, out)) continue;
            ++proposed;
            for (auto const& c : out) s[c.op] = c.configuration;
        }
        return allocations - before;
    };
    (void)walk(4000);
    s = start;
    out.reserve(space.size());
    CHECK(walk(2000) == 0);
    CHECK(proposed > 100);
}
} // namespace

TEST_CASE("moves: nothing is allocated in the steady state") {
    auto const g = graph::read_graph(models::gpt({.layers = 3, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128, .batch = 16})).graph;
    space::strategy_space const space(g, 8);
    std::mt19937_64 rng(3);
    space::flat_strategy mixed;
    for (std::size_t op = 0; op < g.size(); ++op) mixed.push_back(space.of(op)[uniform_index(rng, space.of(op).size())]);
    stays_within_its_memory(space::propagate_move(g), space, mixed);
    stays_within_its_memory(space::repeat_move(g), space, mixed);
}

#endif
