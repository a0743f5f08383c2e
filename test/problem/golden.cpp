#include <parsearch/problem/problem.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/all.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

namespace {

struct golden {
    char const* model;
    std::function<ps::graph::operator_graph()> make;
    std::int64_t mcmc_cost;        // picoseconds
    std::uint64_t mcmc_trajectory; // hash of what was proposed and accepted
    std::int64_t greedy_cost;
    std::uint64_t greedy_trajectory;
};

std::vector<golden> const goldens{
// clang-format off
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, 0, 0, 0, 0},
    {"alexnet", [] { return ps::models::alexnet({.batch = 64}); }, 0, 0, 0, 0},
    {"vgg", [] { return ps::models::vgg({.batch = 32}); }, 0, 0, 0, 0},
    {"resnet", [] { return ps::models::resnet({.batch = 32}); }, 0, 0, 0, 0},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, 0, 0, 0, 0},
    {"rnntc", [] { return ps::models::rnntc({.steps = 4, .batch = 64}); }, 0, 0, 0, 0},
    {"rnnlm", [] { return ps::models::rnnlm({.steps = 4, .batch = 64}); }, 0, 0, 0, 0},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, 0, 0, 0, 0},
    {"bert", [] { return ps::models::bert({.layers = 2, .batch = 16}); }, 0, 0, 0, 0},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, 0, 0, 0, 0},
    {"mlp", [] { return ps::models::mlp({.batch = 64}); }, 0, 0, 0, 0},
// clang-format on
};

} // namespace

TEST_CASE("the same seed gives the same trajectory and cost everywhere, model by model") {
    auto const cluster = ps::topology::p100_cluster(2);
    for (auto const& g : goldens) {
        CAPTURE(g.model);
        auto const problem = ps::make_problem(g.make(), cluster, ps::cost::roofline{cluster});
        std::mt19937_64 rng{2019};
        auto const mcmc = ps::search::mcmc(problem, ps::data_parallel(problem), rng, {.evaluations = 150});
        auto const greedy = ps::search::greedy(problem, ps::data_parallel(problem), rng, {.evaluations = 150});
        CHECK(mcmc.cost.count() == g.mcmc_cost);
        CHECK(mcmc.stats.trajectory == g.mcmc_trajectory);
        CHECK(greedy.cost.count() == g.greedy_cost);
        CHECK(greedy.stats.trajectory == g.greedy_trajectory);
    }
}
