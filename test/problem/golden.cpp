#include <parsearch/problem/problem.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/all_models.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"

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
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, 165563557, 2185073684238750337U, 155640525, 4479151568736201962U},
    {"alexnet", [] { return ps::models::alexnet({.batch = 64}); }, 6232396571, 6447909742688711756U, 4541537271, 9579049566512966810U},
    {"vgg", [] { return ps::models::vgg({.batch = 32}); }, 37545075168, 1749707905235155978U, 36600371336, 14642763473972218206U},
    {"resnet", [] { return ps::models::resnet({.batch = 32}); }, 26155100540, 14695981039346656037U, 26109371392, 6444520080559837488U},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, 36018629455, 1835738541184070591U, 35971780306, 4751910263372067526U},
    {"rnntc", [] { return ps::models::rnntc({.steps = 4, .batch = 64}); }, 4480962906, 10541501050632112631U, 1983200010, 11835028761233010933U},
    {"rnnlm", [] { return ps::models::rnnlm({.steps = 4, .batch = 64}); }, 8984539677, 9166392131496877790U, 4481859058, 7941150681577330868U},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, 24028492832, 11741386913796212199U, 4951881624, 10162693549699295024U},
    {"bert", [] { return ps::models::bert({.layers = 2, .batch = 16}); }, 65960166576, 2934428479255468574U, 65960166576, 809722127181352901U},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, 102731594492, 6896128571785839676U, 102731594492, 1390208370667984885U},
    {"mlp", [] { return ps::models::mlp({.batch = 64}); }, 131487680, 18397453417017317258U, 128758964, 937734337797505366U},
    {"vit", [] { return ps::models::vit({.layers = 2, .batch = 16}); }, 11463264876, 12415287144045461187U, 10771728712, 8761699754471034835U},
    {"t5", [] { return ps::models::t5({.layers = 1, .batch = 16}); }, 49415005510, 13940733882810460174U, 49585107929, 8918762561425092819U},
    {"llama", [] { return ps::models::llama({.layers = 2, .hidden = 1024, .feed_forward = 4096, .sequence = 512, .vocabulary = 32000, .batch = 16}); }, 71014517221, 15581389689014014906U, 71141394004, 8744598353627834108U},
    {"moe", [] { return ps::models::moe({.layers = 2, .hidden = 1024, .feed_forward = 2048, .sequence = 512, .batch = 16}); }, 108968606175, 14099054641749604387U, 100085863893, 18445916753572329336U},
    {"dlrm", [] { return ps::models::dlrm({.tables = {100'000, 100'000, 100'000, 100'000}, .batch = 256}); }, 16052368361, 13301515190899867315U, 7952487615, 13184788062064905751U},
    {"candle_uno", [] { return ps::models::candle_uno({.tower = {1024, 1024}, .dense = {1024, 1024}, .batch = 64}); }, 2212292033, 11863518092493034834U, 897576701, 14453640194422316693U},
    {"ncf", [] { return ps::models::ncf({.batch = 256}); }, 424544766, 12549379997420319022U, 543825752, 4861145756844161604U},
    {"xdl", [] { return ps::models::xdl({.tables = {100'000, 100'000}, .batch = 256}); }, 233372120, 15638884423011712902U, 189608259, 5569848578830998853U},
    // clang-format on
};

/// What a search finds: picoseconds, and the hash of what was proposed and accepted.
struct found {
    std::int64_t cost;
    std::uint64_t trajectory;
};

/// Searches whose options are the defaults but for the evaluations.
struct golden_defaults {
    char const* model;
    std::function<ps::graph::operator_graph()> make;
    found mcmc, greedy, tempering, portfolio;
};

std::vector<golden_defaults> const defaults{
    // clang-format off
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, {166169605, 14695981039346656037U}, {156548434, 5595890856054083009U}, {166169605, 9296144749669847996U}, {156548434, 10671354917452987115U}},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, {36018629455, 16526721649603110001U}, {35971780306, 3856311613146026976U}, {36015508798, 13988423047967319212U}, {35974424241, 17983747393587856846U}},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, {11989050633, 10512772605788988819U}, {4907685135, 7568914588363566406U}, {17034530012, 18333549219806751188U}, {6172305361, 13438299846171466437U}},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, {102731594492, 5119640030795971445U}, {102731594492, 14695981039346656037U}, {102731594492, 3617143382111731571U}, {102731594492, 8971153210816118274U}},
    {"dlrm", [] { return ps::models::dlrm({.tables = {100'000, 100'000, 100'000, 100'000}, .batch = 256}); }, {10535376715, 2855843926352909605U}, {8115774015, 7473461657737152520U}, {10597717982, 16932926504676003146U}, {8007245490, 4120590580928266278U}},
    // clang-format on
};

template <class Result> void check(Result const& result, found const& expected) {
    CHECK(result.cost.count() == expected.cost);
    CHECK(result.stats.trajectory == expected.trajectory);
}

} // namespace

TEST_CASE("the same seed gives the same trajectory and cost everywhere, model by model") {
    auto const cluster = ps::topology::p100_cluster(2);
    for (std::size_t n = 0; n < std::size(goldens); n += support::sanitized ? 5 : 1) {
        auto const& g = goldens[n];
        INFO(g.model);
        auto const problem = ps::make_problem(g.make(), cluster, ps::cost::roofline{cluster});
        std::mt19937_64 rng{2019};
        auto const mcmc = ps::search::mcmc(problem, ps::data_parallel(problem), rng,
                                           {.evaluations = 150, .target_acceptance = std::nullopt, .problem_starts = false});
        auto const greedy =
            ps::search::greedy(problem, ps::operation_parallel(problem), rng, {.evaluations = 1500, .order = ps::search::visit_order::numbered});
        CHECK(mcmc.cost.count() == g.mcmc_cost);
        CHECK(mcmc.stats.trajectory == g.mcmc_trajectory);
        CHECK(greedy.cost.count() == g.greedy_cost);
        CHECK(greedy.stats.trajectory == g.greedy_trajectory);
    }
}

TEST_CASE("the same seed gives the same with the default options") {
    auto const cluster = ps::topology::p100_cluster(2);
    for (std::size_t n = 0; n < std::size(defaults); n += support::sanitized ? 5 : 1) {
        auto const& g = defaults[n];
        INFO(g.model);
        auto const problem = ps::make_problem(g.make(), cluster, ps::cost::roofline{cluster});
        auto const start = ps::data_parallel(problem);
        std::mt19937_64 rng{2019};
        check(ps::search::mcmc(problem, start, rng, {.evaluations = 150}), g.mcmc);
        check(ps::search::greedy(problem, start, rng, {.evaluations = 1500}), g.greedy);
        check(ps::search::tempering(problem, start, rng, {.evaluations = 300}), g.tempering);
        check(ps::search::portfolio(problem, start, rng, {.evaluations = 600}), g.portfolio);
    }
}
