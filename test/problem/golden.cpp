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
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, 171802417, 2185073684238750337U, 162238116, 4246950227879534517U},
    {"alexnet", [] { return ps::models::alexnet({.batch = 64}); }, 7859212230, 13161446417037389978U, 7414057961, 6800180186693461713U},
    {"vgg", [] { return ps::models::vgg({.batch = 32}); }, 75523838794, 17616296303500571765U, 103272813397, 14695981039346656037U},
    {"resnet", [] { return ps::models::resnet({.batch = 32}); }, 25027456178, 3095462559644428321U, 25123213962, 14695981039346656037U},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, 33662480691, 8464895842414517288U, 33662288889, 15669406537286080196U},
    {"rnntc", [] { return ps::models::rnntc({.steps = 4, .batch = 64}); }, 4452437826, 9399410896471585438U, 22415845762, 9116275227260045709U},
    {"rnnlm", [] { return ps::models::rnnlm({.steps = 4, .batch = 64}); }, 8283046100, 303182215525161901U, 43683344273, 3415371817831780609U},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, 12810442642, 11514527521855948847U, 77648476976, 17103018147233021199U},
    {"bert", [] { return ps::models::bert({.layers = 2, .batch = 16}); }, 76004527688, 1594247190678672391U, 76003632387, 3158574226209753224U},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, 125972834745, 4864225851745318184U, 125968805893, 1228747138661638920U},
    {"mlp", [] { return ps::models::mlp({.batch = 64}); }, 126119378, 16314009633715756445U, 143588469, 12565291102496281855U},
// clang-format on
};

} // namespace

TEST_CASE("the same seed gives the same trajectory and cost everywhere, model by model") {
    auto const cluster = ps::topology::p100_cluster(2);
    for (auto const& g : goldens) {
        INFO(g.model);
        auto const problem = ps::make_problem(g.make(), cluster, ps::cost::roofline{cluster});
        std::mt19937_64 rng{2019};
        auto const mcmc = ps::search::mcmc(problem, ps::data_parallel(problem), rng, {.evaluations = 150});
        auto const greedy = ps::search::greedy(problem, ps::data_parallel(problem), rng, {.evaluations = 1500});
        CHECK(mcmc.cost.count() == g.mcmc_cost);
        CHECK(mcmc.stats.trajectory == g.mcmc_trajectory);
        CHECK(greedy.cost.count() == g.greedy_cost);
        CHECK(greedy.stats.trajectory == g.greedy_trajectory);
    }
}
