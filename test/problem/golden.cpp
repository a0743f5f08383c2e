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

#include "support/sanitized.hpp"

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
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, 166459281, 2185073684238750337U, 164730019, 14162503308950075230U},
    {"alexnet", [] { return ps::models::alexnet({.batch = 64}); }, 8461221313, 6447909742688711756U, 8069227302, 122428877851512988U},
    {"vgg", [] { return ps::models::vgg({.batch = 32}); }, 75565682595, 9242107698901085312U, 118459259852, 2900237982627510352U},
    {"resnet", [] { return ps::models::resnet({.batch = 32}); }, 25006621339, 948971645997337254U, 180894266908, 17208121081886691736U},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, 33662480691, 8951442454127283033U, 118143511521, 13780199026088732282U},
    {"rnntc", [] { return ps::models::rnntc({.steps = 4, .batch = 64}); }, 4480962469, 10541501050632112631U, 19279772785, 9995327808537545995U},
    {"rnnlm", [] { return ps::models::rnnlm({.steps = 4, .batch = 64}); }, 8213864979, 11819016017463580521U, 38342320133, 14695981039346656037U},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, 23220179324, 8501688251082156901U, 48560088267, 8183424826761910254U},
    {"bert", [] { return ps::models::bert({.layers = 2, .batch = 16}); }, 76027842531, 5109274191872151691U, 167804544914, 12733327662817679718U},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, 125962448953, 2672132742101773652U, 331664059357, 18047256015844099472U},
    {"mlp", [] { return ps::models::mlp({.batch = 64}); }, 122089720, 18397453417017317258U, 144894893, 2303404485278035373U},
    {"vit", [] { return ps::models::vit({.layers = 2, .batch = 16}); }, 11457739658, 12415287144045461187U, 10478632511, 11894476460822866504U},
    {"t5", [] { return ps::models::t5({.layers = 1, .batch = 16}); }, 53981498119, 12022689850591855278U, 151411609886, 1508378658902499821U},
    {"llama", [] { return ps::models::llama({.layers = 2, .hidden = 1024, .feed_forward = 4096, .sequence = 512, .vocabulary = 32000, .batch = 16}); }, 78140739495, 3288955036208475717U, 210282625770, 1773869568688191753U},
    {"moe", [] { return ps::models::moe({.layers = 2, .hidden = 1024, .feed_forward = 2048, .sequence = 512, .batch = 16}); }, 120659666397, 17696470606757577597U, 212722283175, 1500202613956664315U},
    {"dlrm", [] { return ps::models::dlrm({.tables = {100'000, 100'000, 100'000, 100'000}, .batch = 256}); }, 14199089798, 10949004855413060568U, 24696987651, 11637029156414845846U},
    {"candle_uno", [] { return ps::models::candle_uno({.tower = {1024, 1024}, .dense = {1024, 1024}, .batch = 64}); }, 2143381096, 6258090737140468522U, 1845774863, 10547228923446899076U},
    {"ncf", [] { return ps::models::ncf({.batch = 256}); }, 405937790, 6722741235080087580U, 382776844, 15480752010797267391U},
    {"xdl", [] { return ps::models::xdl({.tables = {100'000, 100'000}, .batch = 256}); }, 234561245, 8770145506236664621U, 198619472, 8191639221718065854U},
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
    {"lenet", [] { return ps::models::lenet({.batch = 64}); }, {175963763, 89856859807728898U}, {162238116, 6444786988633530374U}, {170012178, 5115116117716229273U}, {160409812, 8797343520454171635U}},
    {"inception_v3", [] { return ps::models::inception_v3({.batch = 32}); }, {33662480691, 4424585493006306193U}, {33662288889, 6369873998866725225U}, {33662480691, 7785776789187165846U}, {33662417740, 4858051187291269792U}},
    {"nmt", [] { return ps::models::nmt({.steps = 4, .batch = 64}); }, {13507133610, 2221499955406690482U}, {77855410346, 13779169941289637575U}, {19336953513, 15362468394647755322U}, {11593594770, 12677405399293562469U}},
    {"gpt", [] { return ps::models::gpt({.layers = 2, .batch = 16}); }, {125962448953, 707364234028278866U}, {125962448953, 14695981039346656037U}, {125942308177, 3861356432268554453U}, {125962448953, 6581313332309934904U}},
    {"dlrm", [] { return ps::models::dlrm({.tables = {100'000, 100'000, 100'000, 100'000}, .batch = 256}); }, {12731798694, 17072048177482998009U}, {36146369050, 11030074221569588490U}, {15820877181, 483932302352348096U}, {7175919506, 8980613442584686199U}},
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
