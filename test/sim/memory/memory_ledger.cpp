#include <parsearch/sim/memory/memory_ledger.hpp>

#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

sim::memory_ledger::placed placed(sim::operator_blocks const& b) { return {&b.shape->memory, &b.parts.devices}; }

/// Bytes of each device.
std::vector<byte_count> bytes(sim::memory_ledger const& ledger, std::size_t devices) {
    std::vector<byte_count> out;
    for (std::size_t d = 0; d < devices; ++d) out.push_back(ledger.bytes(d));
    return out;
}

/// What the full simulator says of `s`.
template <class P, class S> std::vector<byte_count> expected(P const& p, S const& s) {
    auto simulator = p.simulator();
    (void)simulator.simulate(s);
    std::vector<byte_count> out;
    for (auto const& use : simulator.memory()) out.push_back(use.total());
    return out;
}

/// A ledger and the blocks of a current strategy.
template <class P> struct kept {
    P const& p;
    sim::block_graph graph;
    sim::block_cache cache;
    sim::memory_ledger ledger;
    std::vector<space::configuration> s;
    support::placed_blocks blocks;

    kept(P const& problem, std::vector<space::configuration> start)
        : p(problem), graph(support::block_graph_of(*p.work)), cache(p.work, false),
          ledger(p.graph(), p.topology().size(), p.work->classes.size(), p.work->options), s(std::move(start)),
          blocks(support::place_blocks(cache, graph, s)) {
        for (std::uint32_t op = 0; op < p.size(); ++op) ledger.set_operator(op, placed(*blocks.operators[op]));
        for (std::uint32_t c = 0; c < blocks.classes.size(); ++c) ledger.set_class(c, &blocks.classes[c]->parts.memory);
        ledger.settle();
    }
    /// Sets what differs between `blocks` and `next`.
    void change(support::placed_blocks const& next) {
        for (std::uint32_t op = 0; op < p.size(); ++op)
            if (next.operators[op] != blocks.operators[op]) ledger.set_operator(op, placed(*next.operators[op]));
        for (std::uint32_t c = 0; c < blocks.classes.size(); ++c)
            if (next.classes[c] != blocks.classes[c]) ledger.set_class(c, &next.classes[c]->parts.memory);
        ledger.settle();
        blocks = next;
    }
};

} // namespace

TEST_CASE("memory_ledger: two layers by hand") {
    // As "memory: two layers on one device by hand" in memory.cpp.
    graph::operator_graph g;
    g.add("relu", ops::relu{}, g.add("fc", ops::linear{.out = 8}, g.input("x", {{4, 4}})));
    auto const p = support::make_workload_problem(g, support::mesh(2), support::mixed_oracle{}, {.optimizer = sim::optimizer::adam});
    auto s = support::all_on_first(p.graph());
    kept k(p, s);
    CHECK(bytes(k.ledger, 2) == std::vector<byte_count>{160 + 160 + 320 + 192 + 512, 0});
    s[2].start = 1; // relu's output, kept and at work with its input
    auto const before = k.blocks;
    k.change(support::place_blocks(k.cache, k.graph, s));
    CHECK(bytes(k.ledger, 2) == std::vector<byte_count>{160 + 160 + 320 + 64 + 2 * (16 + 32) * 4, 128 + 512});
    k.change(before);
    CHECK(bytes(k.ledger, 2) == std::vector<byte_count>{160 + 160 + 320 + 192 + 512, 0});
    k.ledger.set_operator(1, {});
    k.ledger.set_operator(2, {});
    k.ledger.set_class(0, nullptr);
    k.ledger.settle();
    CHECK(bytes(k.ledger, 2) == std::vector<byte_count>{0, 0});
}

TEST_CASE("memory_ledger: the sums of the account, through random changes and back") {
    std::size_t differ = 0;
    for (std::uint64_t seed = 0; seed < support::cases(300u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const count = 1 + uniform_index(rng, 6);
        auto const p = support::random_workload(rng, support::random_options(rng), {.devices = static_cast<std::uint32_t>(count), .operators = 10});
        kept k(p, support::random_strategy(rng, p, 0.2));
        auto sums = bytes(k.ledger, count);
        REQUIRE(sums == expected(p, k.s));
        for (int step = 0; step < 12; ++step) {
            INFO("step ", step);
            auto next = k.s;
            for (std::size_t op = 0; op < next.size(); ++op)
                if (bernoulli(rng, 0.3))
                    next[op] = support::random_configuration(rng, p.graph().operations[op], p.space()[op], count, bernoulli(rng, 0.2));
            auto const before = k.blocks;
            k.change(support::place_blocks(k.cache, k.graph, next));
            auto const changed = bytes(k.ledger, count);
            REQUIRE(changed == expected(p, next));
            differ += changed != sums;
            if (bernoulli(rng, 0.5)) {
                k.s = next;
                sums = changed;
            } else {
                k.change(before);
                REQUIRE(bytes(k.ledger, count) == sums);
            }
        }
    }
    CHECK(differ > support::cases(1000));
}
