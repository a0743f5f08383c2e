#include <parsearch/sim/bounds/work_bound.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <type_traits>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

/// The definition, over all configurations.
template <class Planner> std::int64_t naive_bound(Planner& planner, space::strategy_space const& space) {
    auto const& w = planner.input();
    std::int64_t sum = 0;
    for (std::uint32_t op = 0; op < w.graph.size(); ++op) {
        auto least = std::numeric_limits<std::int64_t>::max();
        for (auto const& c : space[op]) {
            sim::operator_plan plan;
            planner.plan_operator(op, c, plan);
            for (std::size_t kind = 0; kind < plan.forward.size(); ++kind)
                least = std::min(least, c.shards() * (plan.forward[kind] + plan.backward[kind]));
        }
        sum += least;
    }
    return sum / static_cast<std::int64_t>(w.topology.size());
}

} // namespace

TEST_CASE("work bound: the least work over all configurations, and no strategy of the space is faster") {
    constexpr std::uint64_t seed = 31;
    CAPTURE(seed);
    std::mt19937_64 rng{seed};
    int positive = 0;
    for (int n = 0; n < support::cases(600); ++n) {
        CAPTURE(n);
        auto const options = support::random_options(rng);
        auto const p = support::random_problem(
            rng, options, {.devices = static_cast<std::uint32_t>(1 + uniform_index(rng, 4)), .operators = 8, .kinds = bernoulli(rng, 0.5)});
        auto evaluate = p.simulator();
        sim::planner planner(std::make_shared<std::remove_cvref_t<decltype(evaluate.input())> const>(evaluate.input()));
        auto const bound = sim::work_bound(planner, p.space());
        CHECK(bound.count() == naive_bound(planner, p.space()));
        for (int draw = 0; draw < 5; ++draw) {
            space::flat_strategy s;
            for (std::size_t op = 0; op < p.size(); ++op)
                s.push_back(p.space()[op][static_cast<std::uint32_t>(uniform_index(rng, p.space()[op].size()))]);
            CHECK(bound <= evaluate(s));
        }
        positive += bound > picoseconds::zero();
    }
    CHECK(positive > support::cases(400));
}

TEST_CASE("work bound: durations near 64 bits do not overflow") {
    struct oracle {
        picoseconds shard_time(ops::shard_work const&, std::uint32_t) const { return picoseconds{std::int64_t{1} << 60}; }
        picoseconds transfer_time(byte_count, link_description const&) const { return picoseconds{1}; }
    };
    std::mt19937_64 rng{2};
    auto const p = support::random_problem(rng, {}, {.devices = 3, .operators = 30}, oracle{});
    sim::planner planner(p.workload());
    CHECK(sim::work_bound(planner, p.space()).count() == std::numeric_limits<std::int64_t>::max() / 3);
}

TEST_CASE("work bound: a network on hundreds of devices is bounded, and not far below data parallelism") {
    auto const cluster = topology::nodes({.count = 32, .gpus_per_node = 8, .device = topology::h100_sxm});
    auto const p =
        make_problem(models::bert({.layers = 2, .hidden = 1024, .heads = 16, .sequence = 512, .batch = 2048}), cluster, cost::roofline{cluster});
    auto const bound = *search::root_bound<space::flat_strategy>(p);
    auto const cost = p.evaluator()(data_parallel(p));
    CHECK(bound <= cost);
    CHECK(2 * bound > cost);
}
