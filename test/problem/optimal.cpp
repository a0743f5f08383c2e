// Small studies of optimality on real problems: exact search, enumeration and chains agree.
#include <parsearch/problem/problem.hpp>

#include <cstdint>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {
auto problem_on(graph::operator_graph const& g, std::uint32_t devices, sim::simulation_options const& o = {}) {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = devices, .device = topology::p100_sxm});
    return make_problem(g, cluster, cost::roofline{cluster}, {.simulation = o});
}
template <class P> space::flat_strategy first_strategy(P const& p) {
    space::flat_strategy s;
    for (std::size_t op = 0; op < p.size(); ++op) s.push_back(p.space()[op][0]);
    return s;
}
} // namespace

TEST_CASE("LeNet and two steps of RNNLM on two devices: the optimum is proved, and chains find it from each start") {
    for (bool const lenet : {true, false})
        for (auto const discipline : {sim::discipline::fifo, sim::discipline::in_order}) {
            if (support::sanitized && lenet) continue; // takes minutes
            CAPTURE(lenet);
            CAPTURE(static_cast<int>(discipline));
            auto const p = problem_on(lenet ? models::lenet({}) : models::rnnlm({.steps = 2}), 2, {.discipline = discipline});
            std::mt19937_64 rng{1};
            auto const proof = search::exact(p, data_parallel(p), rng);
            REQUIRE(proof.reason == stop_reason::proved_optimal);
            CHECK(proof.lower_bound == proof.cost);
            CHECK(proof.cost == p.simulator()(proof.best));
            CHECK(*search::root_bound<space::flat_strategy>(p) <= proof.cost);
            for (auto const& start : {data_parallel(p), one_weird_trick(p), first_strategy(p)}) {
                auto best = picoseconds::max();
                for (int chain = 0; chain < 4 && best > proof.cost; ++chain)
                    best = std::min(best, search::mcmc(p, start, rng, {.evaluations = 20'000}).cost);
                CHECK(best == proof.cost);
            }
        }
}

TEST_CASE("exact search finds what enumeration finds, and no bound is above it") {
    std::mt19937_64 rng{77};
    int compared = 0;
    for (int n = 0; compared < 25 && n < 400; ++n) {
        CAPTURE(n);
        auto options = support::random_options(rng);
        support::problem_shape shape{.devices = static_cast<std::uint32_t>(2 + uniform_index(rng, 2)), .operators = 5, .kinds = bernoulli(rng, 0.4)};
        if (bernoulli(rng, 0.3)) {
            options.memory = bernoulli(rng, 0.5) ? sim::memory_policy::reject : sim::memory_policy::penalise;
            shape.memory = static_cast<byte_count>(2000 + uniform_index(rng, 30'000));
        }
        auto const p = support::random_problem(rng, options, shape, support::mixed_oracle{.grain = bernoulli(rng, 0.5) ? 1 : 100});
        double strategies = 1;
        for (std::size_t op = 0; op < p.size(); ++op) strategies *= static_cast<double>(p.space()[op].size());
        if (strategies > 5000) continue;
        ++compared;
        auto const start = first_strategy(p);
        auto const all = search::exhaustive(p, start, rng, {.bound = false});
        REQUIRE(all.reason == stop_reason::proved_optimal);
        for (std::uint64_t const open : {1U, 50U, 100'000U}) {
            auto const proof = search::exact(p, start, rng, {.walk = 0, .sweeps = open % 2, .open = open},
                                             search::on<search::bound_raised>([&](auto const& e) { CHECK(e.bound <= all.cost); }));
            CHECK(proof.cost == all.cost);
            CHECK(proof.reason == stop_reason::proved_optimal);
        }
        auto const cut = search::exact(p, start, rng, {.evaluations = 3, .walk = 0, .sweeps = 0});
        CHECK(*cut.lower_bound <= all.cost);
        auto const drawn = search::random_search(p, start, rng, {.evaluations = 20});
        CHECK(*drawn.lower_bound <= all.cost);
        CHECK(drawn.cost >= all.cost);
    }
    CHECK(compared == 25);
}
