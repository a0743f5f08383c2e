#include <parsearch/problem/problem.hpp>

#include <cstdint>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/pipeline/partition.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

parallelization restricted_problem(std::mt19937_64& rng) {
    auto const topology = support::random_topology(rng, {.devices = 4});
    return make_problem(support::random_network(rng, 6), topology, support::mixed_oracle{},
                        {.space = support::random_restrictions(rng), .simulation = support::random_options(rng)});
}

} // namespace

TEST_CASE("restrictions: starts, answers and bounds of all searches are of the space") {
    for (std::uint64_t seed = 1; seed <= support::cases(400u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const problem = restricted_problem(rng);
        for (auto const& s : problem.named_starts()) {
            CAPTURE(s.name);
            REQUIRE(!problem.space().first_outside(s.strategy));
        }
        auto const start = problem.space().nearest(data_parallel(problem));
        auto const least = search::exact(problem, start, rng, {.evaluations = 300}).lower_bound;
        REQUIRE(least);
        auto const root = search::root_bound<space::flat_strategy>(problem);
        auto const check = [&](std::string const& name, auto const& found) {
            CAPTURE(name);
            REQUIRE(!problem.space().first_outside(found.best));
            REQUIRE(problem.evaluator()(found.best) == found.cost);
            REQUIRE(*least <= found.cost);
            if (root) REQUIRE(*root <= found.cost);
            if (found.lower_bound) REQUIRE(*found.lower_bound <= found.cost);
        };
        check("exact", search::exact(problem, start, rng, {.evaluations = 300}));
        check("mcmc", search::mcmc(problem, start, rng, {.evaluations = 100}));
        check("tempering", search::tempering(problem, start, rng, {.evaluations = 100}));
        check("greedy", search::greedy(problem, start, rng, {.evaluations = 300}));
        check("random", search::random_search(problem, start, rng, {.evaluations = 50}));
        check("dominator_dp", search::dominator_dp(problem, start, rng));
        check("portfolio", search::portfolio(problem, start, rng, {.evaluations = 200}));
    }
}

TEST_CASE("restrictions: of a restricted space are the stages of pipelines, too") {
    for (std::uint64_t seed = 1; seed <= support::cases(200u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 4});
        auto const problem = make_problem(support::random_network(rng, 6), topology, support::mixed_oracle{},
                                          {.space = support::random_restrictions(rng), .simulation = {.training = bernoulli(rng, 0.8)}});
        auto const found = pipeline::partition(problem, {}, rng, {.evaluations = 60}).best;
        auto const micro = pipeline::micro_batch_problem(problem, found.how.micro_batches);
        REQUIRE(!micro.space().first_outside(found.strategy));
    }
}
