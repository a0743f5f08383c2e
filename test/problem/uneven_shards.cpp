#include <parsearch/problem/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/problem/adapted.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

std::size_t uneven_operators(parallelization const& p, space::flat_strategy const& s) {
    std::size_t out = 0;
    for (std::size_t op = 0; op < p.size(); ++op) out += ops::is_uneven(p.graph().operations[op], s[op].degrees());
    return out;
}
} // namespace

TEST_CASE("uneven shards: without one of sixteen devices an iteration takes little more than the rest of the work would") {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 8, .device = topology::h100_sxm});
    auto const check = [&](auto const& model) {
        constraints_of<std::remove_cvref_t<decltype(model)>, std::remove_cvref_t<decltype(cluster)>> without;
        without.leave_out(5);
        auto const time = [](parallelization const& p, space::flat_strategy const& s) { return static_cast<double>(p.simulator()(s).count()); };
        problem_options options;
        auto const all = make_problem(model, cluster, cost::roofline{cluster}, options);
        auto const equal = make_problem(model, cluster, cost::roofline{cluster}, options, without);
        options.space.uneven = true;
        auto const uneven = make_problem(model, cluster, cost::roofline{cluster}, options, without);
        auto const before = data_parallel(all), start = adapted(all, before, uneven).strategy;
        CHECK(start == data_parallel(uneven));
        CHECK(!uneven.space().first_outside(start));
        CHECK(time(equal, data_parallel(equal)) > 1.7 * time(all, before));
        CHECK(time(uneven, start) <= 1.10 * 16 / 15 * time(all, before));
        std::mt19937_64 rng{1};
        auto const found = search::mcmc(uneven, start, rng, {.evaluations = 100});
        CHECK(!uneven.space().first_outside(found.best));
        CHECK(uneven_operators(uneven, found.best) > 0);
    };
    check(models::gpt({.layers = 2, .hidden = 1024, .heads = 16, .sequence = 512, .batch = 256}));
    check(models::resnet({.batch = 1024}));
}

TEST_CASE("uneven shards: exact search finds what enumeration finds") {
    std::size_t proved = 0, uneven = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 3});
        auto const options = support::random_options(rng);
        auto const p = make_problem(support::random_network(rng, 3), topology, support::mixed_oracle{}, {{.uneven = true}, options});
        double all = 1;
        for (std::size_t op = 0; op < p.size(); ++op) all *= static_cast<double>(p.space()[op].size());
        if (all > 20'000) continue;
        auto const start = data_parallel(p);
        auto const exact = search::exact(p, start, rng);
        auto const whole = search::exhaustive(p, start, rng);
        REQUIRE(exact.reason == stop_reason::proved_optimal);
        REQUIRE(exact.cost == whole.cost);
        ++proved;
        uneven += uneven_operators(p, exact.best) > 0;
    }
    CHECK(proved > 20);
    CHECK(uneven > 3);
}

TEST_CASE("uneven shards: surrogates and elimination stay in the space") {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 5, .device = topology::p100_sxm});
    auto const model = models::gpt({.layers = 1, .hidden = 256, .heads = 8, .sequence = 128, .vocabulary = 1000, .batch = 24});
    auto const p = make_problem(model, cluster, cost::roofline{cluster}, {.space = {.uneven = true}});
    auto const found = [&] {
        std::mt19937_64 rng{1};
        return search::dominator_dp(p, data_parallel(p), rng);
    }();
    CHECK(!p.space().first_outside(found.best));
    CHECK(found.cost <= p.simulator()(data_parallel(p)));
    CHECK(uneven_operators(p, found.best) > 0);
}
