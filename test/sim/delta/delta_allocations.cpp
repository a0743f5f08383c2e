// The delta simulator allocates nothing once it has met the configurations that it is asked for. Sanitizers have allocators of their own.
#include "support/cases.hpp"
#ifndef PARSEARCH_TEST_SANITIZED

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/allocations.hpp"

using namespace parsearch;
using support::allocations;

TEST_CASE("delta_simulator: nothing is allocated in the steady state") {
    auto const cluster = topology::p100_cluster(2);
    for (auto const movement : {sim::movement::pairwise, sim::movement::collective})
        for (auto const discipline : {sim::discipline::fifo, sim::discipline::in_order}) {
            INFO(name_of(movement), " ", name_of(discipline));
            auto const p = make_problem(models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128, .batch = 16}), cluster,
                                        cost::roofline{cluster}, {.simulation = {.movement = movement, .discipline = discipline}});
            std::mt19937_64 rng(1);
            auto const start = data_parallel(p);
            std::vector<change<space::configuration>> changes;
            for (int i = 0; i < 60; ++i) {
                auto const op = uniform_index(rng, p.size());
                changes.push_back({op, search::choice(p.space(), op, uniform_index(rng, search::choice_count(p.space(), op)))});
            }
            auto e = p.evaluator();
            auto const cost = e.reset(start);
            // Each proposal is dropped, then made current and taken back; bounds that hold and that do not.
            auto const round = [&] {
                std::int64_t within = 0;
                for (auto const& c : changes)
                    for (int bound = 0; bound < 2; ++bound) {
                        within += e.propose(c.op, c.configuration, bound ? cost : picoseconds::max()).has_value();
                        e.roll_back();
                        if (bound) continue;
                        (void)e.propose(c.op, c.configuration, picoseconds::max());
                        e.commit();
                        (void)e.propose(c.op, start[c.op], picoseconds::max());
                        e.commit();
                    }
                return within;
            };
            std::int64_t const within = round();
            std::size_t spent = 1;
            for (int again = 0; again < 5 && spent > 0; ++again) {
                auto const before = allocations;
                auto const same = round();
                spent = allocations - before;
                CHECK(same == within);
            }
            CHECK(spent == 0);
            CHECK(within >= 60);
        }
}

#endif
