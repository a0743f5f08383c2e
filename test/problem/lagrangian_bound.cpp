#include <parsearch/problem/lagrangian_bound.hpp>

#include <cstdint>
#include <random>
#include <stop_token>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {
/// The cheapest strategy that a search from a random one finds.
template <class P> picoseconds found_in(P const& p, std::mt19937_64& rng) {
    space::flat_strategy s;
    for (std::size_t op = 0; op < p.size(); ++op) s.push_back(p.space()[op][static_cast<std::uint32_t>(uniform_index(rng, p.space()[op].size()))]);
    auto const settled = search::greedy(p, s, rng, {.evaluations = 400});
    return search::mcmc(p, settled.best, rng, {.evaluations = 200}).cost;
}
} // namespace

TEST_CASE("lagrangian_bound: no strategy costs less, whatever is simulated") {
    std::mt19937_64 rng{20261130};
    double tightness = 0;
    std::size_t problems = 0, finite = 0;
    for (; problems < support::cases(std::size_t{1500}); ++problems) {
        CAPTURE(problems);
        auto const p = support::random_problem_of_any_kind(rng);
        // Every third problem has edges that are left out.
        lagrangian_options limits{.rounds = 1 + uniform_index(rng, 30), .pairs = bernoulli(rng, 0.3) ? 200U : 1U << 20};
        auto const bound = lagrangian_bound(p, limits);
        auto const cost = found_in(p, rng);
        REQUIRE(bound <= cost);
        limits.parts = 1 + uniform_index(rng, 60);
        auto const of_parts = lagrangian_bound(p, limits);
        REQUIRE(bound <= of_parts);
        REQUIRE(of_parts <= cost);
        if (cost == picoseconds::zero() || cost == cost_traits<picoseconds>::infinity()) continue;
        tightness += static_cast<double>(bound.count()) / static_cast<double>(cost.count());
        ++finite;
    }
    MESSAGE("seed 20261130: " << problems << " problems; the bound is " << 100 * tightness / static_cast<double>(finite) << "% of what was found");
    CHECK(tightness / static_cast<double>(finite) > 0.5);
}

TEST_CASE("lagrangian_bound: resources work no less than is counted, and no chain is longer than an iteration") {
    std::mt19937_64 rng{20261201};
    double chain = 0, counted = 0;
    std::size_t strategies = 0;
    for (std::size_t problems = 0; problems < support::cases(std::size_t{1500}); ++problems) {
        CAPTURE(problems);
        auto const p = support::random_problem_of_any_kind(rng);
        detail::lagrangian const tables(p, {});
        REQUIRE(tables.known());
        auto simulator = p.simulator();
        for (int n = 0; n < 20; ++n) {
            std::vector<std::uint32_t> numbers;
            space::flat_strategy s;
            for (std::size_t op = 0; op < p.size(); ++op) {
                numbers.push_back(static_cast<std::uint32_t>(uniform_index(rng, p.space()[op].size())));
                s.push_back(p.space()[op][numbers.back()]);
            }
            auto const makespan = static_cast<double>(simulator.simulate(s).count());
            auto const takes = tables.takes(numbers, tables.longest_chain(numbers));
            std::vector<double> work(takes.size() - 1, 0), count(takes.size() - 1, 0);
            auto const& tasks = simulator.tasks();
            for (std::size_t t = 0; t < tasks.duration.size(); ++t)
                if (tasks.resource[t] < tables.kinds().size()) work[tables.kinds()[tasks.resource[t]]] += static_cast<double>(tasks.duration[t]);
            for (auto const kind : tables.kinds()) ++count[kind];
            for (std::size_t k = 0; k < work.size(); ++k) REQUIRE(takes[k] <= work[k] / count[k] * (1 + 1e-12));
            REQUIRE(takes.back() <= makespan);
            if (makespan <= 0) continue;
            chain += takes.back() / makespan;
            counted += work[0] > 0 ? takes[0] / (work[0] / count[0]) : 1;
            ++strategies;
        }
    }
    MESSAGE("seed 20261201: of " << strategies << " strategies the longest chain is " << 100 * chain / static_cast<double>(strategies)
                                 << "% of the makespan, and " << 100 * counted / static_cast<double>(strategies)
                                 << "% of the work of devices is counted");
    CHECK(chain / static_cast<double>(strategies) > 0.6);
    CHECK(counted / static_cast<double>(strategies) > 0.8);
}

TEST_CASE("lagrangian_bound: below the optimum, and where it is near") {
    auto const part_of = [](auto const& network, std::uint32_t nodes) {
        auto const cluster = topology::p100_cluster(nodes);
        auto const p = make_problem(network, cluster, cost::roofline{cluster});
        auto const bound = lagrangian_bound(p);
        std::mt19937_64 rng{1};
        auto const found = search::greedy(p, data_parallel(p), rng);
        CHECK(bound <= found.cost);
        CHECK(lagrangian_bound(p) == bound);
        CHECK(lagrangian_bound(p, {.rounds = 8}) <= bound);
        return static_cast<double>(bound.count()) / static_cast<double>(found.cost.count());
    };
    CHECK(part_of(models::lenet({}), 1) > 0.8);
    CHECK(part_of(models::mlp({}), 1) > 0.8);
    CHECK(part_of(models::bert({.layers = 1}), 1) > 0.8);
    // Resources or paths alone say little of small networks on many devices.
    auto const cluster = topology::p100_cluster(2);
    auto const p = make_problem(models::lenet({}), cluster, cost::roofline{cluster});
    CHECK(lagrangian_bound(p) > 2 * search::root_bound<space::flat_strategy>(p).value());
}

TEST_CASE("lagrangian_bound: one shard per operator, in training and inference") {
    auto const cluster = topology::p100_cluster(1);
    for (bool const training : {true, false}) {
        CAPTURE(training);
        auto const p = make_problem(models::mlp({.hidden = {64}}), cluster, cost::roofline{cluster},
                                    {.space = {.max_shards = 1}, .simulation = {.training = training}});
        space::flat_strategy first;
        for (std::size_t op = 0; op < p.size(); ++op) first.push_back(p.space()[op][0]);
        std::mt19937_64 rng{1};
        auto const least = search::exhaustive(p, first, rng).cost;
        auto const bound = lagrangian_bound(p);
        CHECK(bound <= least);
        CHECK(10 * bound > 9 * least);
        CHECK(lagrangian_bound(p, {.parts = 100'000}) == least);
    }
}

TEST_CASE("lagrangian_bound: stopped, it says what it knows; options out of range are refused") {
    auto const cluster = topology::p100_cluster(1);
    auto const p = make_problem(models::lenet({}), cluster, cost::roofline{cluster});
    std::stop_source stop;
    stop.request_stop();
    CHECK(lagrangian_bound(p.until(stop.get_token())) == picoseconds::zero());
    CHECK(support::refusal([&] { (void)lagrangian_bound(p, {.rounds = 0}); }) == "lagrangian_bound: option 'rounds' is 0: must be at least 1");
    CHECK(support::refusal([&] { (void)lagrangian_bound(p, {.parts = 0}); }) == "lagrangian_bound: option 'parts' is 0: must be at least 1");
}
