// The chain of mcmc on a real problem is the same for any number of threads, and so is replica exchange.
#include <parsearch/problem/problem.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/all_models.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"

namespace ps = parsearch;

namespace {
template <class Search, class P, class Options> auto run(Search const& search, P const& problem, Options options, std::uint64_t threads) {
    options.threads = threads;
    std::mt19937_64 rng{7};
    std::vector<std::tuple<std::uint64_t, std::optional<std::size_t>, std::size_t, std::optional<ps::picoseconds>>> proposals;
    auto const found = search(problem, ps::data_parallel(problem), rng, options,
                              [&](ps::search::proposed<ps::picoseconds> const& e) { proposals.emplace_back(e.evaluation, e.op, e.move, e.cost); });
    CHECK(problem.simulator()(found.best) == found.cost);
    auto const& s = found.stats;
    return std::tuple(found.best, found.cost, s.evaluations, s.proposals, s.accepted, s.improved, s.trajectory, found.reason, proposals, rng());
}
template <class Search, class P, class Options> void check_same(Search const& search, P const& problem, Options const& options) {
    auto const one = run(search, problem, options, 1);
    for (std::uint64_t const threads : {2u, 4u}) {
        CAPTURE(threads);
        CHECK((one == run(search, problem, options, threads)));
    }
}
} // namespace

TEST_CASE("threads: searches of real problems are the same for any number of threads") {
    auto const cluster = ps::topology::p100_cluster(2);
    auto const check = [&](auto const& graph) {
        auto const problem = ps::make_problem(graph, cluster, ps::cost::roofline{cluster});
        check_same(ps::search::mcmc, problem, ps::search::mcmc_options{.evaluations = support::cases(800u)});
        check_same(ps::search::mcmc, problem,
                   ps::search::mcmc_options{.evaluations = support::cases(400u), .temperature = 0, .reset_interval = 30, .random_starts = 2});
        check_same(ps::search::tempering, problem, ps::search::tempering_options{.evaluations = support::cases(600u), .replicas = 4});
    };
    check(ps::models::lenet({.batch = 64}));
    check(ps::models::rnntc({.steps = 4, .batch = 64}));
    check(ps::models::inception_v3({.batch = 32}));
}
