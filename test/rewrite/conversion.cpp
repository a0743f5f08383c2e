#include <parsearch/rewrite/conversion.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/sanitized.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

/// `back` is `g` but for the order of operators and names of parameters; the same operations, edges, sharing.
void check_same(graph::dense_graph const& g, lifted_graph const& lifted, lowered_graph const& back) {
    REQUIRE(back.graph.size() == g.size());
    std::vector<std::size_t> at(lifted.graph.bound());
    for (std::size_t i = 0; i < back.node.size(); ++i) at[back.node[i]] = i;
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const j = at[lifted.node[i]];
        CHECK(back.graph.operations[j] == g.operations[i]);
        CHECK(back.graph.names[j] == g.names[i]);
        CHECK(at[lifted.node[g.sharing[i]]] == back.graph.sharing[j]);
        REQUIRE(back.graph.in(j).size() == g.in(i).size());
        for (std::size_t n = 0; n < g.in(i).size(); ++n) {
            CHECK(back.graph.in(j)[n].producer == at[lifted.node[g.in(i)[n].producer]]);
            CHECK(back.graph.in(j)[n].slot == g.in(i)[n].slot);
        }
    }
}

template <class M> void check_model(M const& model) {
    auto const p = make_problem(model, topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm}), cost::roofline(topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm})));
    for (auto const& start : p.named_starts()) {
        INFO(start.name);
        auto const lifted = lift(p.graph(), start.strategy);
        auto const back = lower(lifted.graph);
        check_same(p.graph(), lifted, back);
        for (std::size_t i = 0; i < p.size(); ++i)
            if (p.graph().operations[i].work != ops::work_class::source) {
                auto const j = static_cast<std::size_t>(std::ranges::find(back.node, lifted.node[i]) - back.node.begin());
                CHECK(back.strategy[j].degree == start.strategy[i].degree);
            }
    }
}

} // namespace

TEST_CASE("conversion: models with the strategies of experts, there and back") {
    check_model(models::mlp());
    check_model(models::inception_v3());
    check_model(models::gpt({.layers = 2}));
    check_model(models::dlrm());
    check_model(models::moe());
}

TEST_CASE("conversion: parameters that operators share are one weight") {
    auto const g = graph::read_graph(models::nmt()).graph;
    auto const lifted = lift(g);
    check_same(g, lifted, lower(lifted.graph));
}

TEST_CASE("conversion: every searcher runs on a parallel graph") {
    auto const g = graph::read_graph(models::mlp()).graph;
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto const p = make_problem(lift(g).graph, cluster, cost::roofline(cluster));
    auto const original = make_problem(models::mlp(), cluster, cost::roofline(cluster));
    std::mt19937_64 rng(1), same(1);
    auto const found = search::mcmc(p, data_parallel(p), rng, {.evaluations = 200});
    CHECK(found.cost == search::mcmc(original, data_parallel(original), same, {.evaluations = 200}).cost);
    CHECK(simulate(p, found.best).makespan == found.cost);
}

TEST_CASE("conversion: random graphs and strategies, there and back") {
    constexpr std::uint64_t seed = 3;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int converted = 0, refused = 0;
    for (int n = 0; n < support::cases(1000); ++n) {
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        std::vector<space::configuration> s;
        space::strategy_space const all(g, 8);
        for (std::size_t i = 0; i < g.size(); ++i) s.push_back(support::random_configuration(rng, g.operations[i], all[i], 8, false));
        lifted_graph lifted;
        try {
            lifted = lift(g, s);
        } catch (invalid_input const& e) {
            CHECK(std::string(e.what()).find("into no equal blocks") != std::string::npos);
            ++refused;
            continue;
        }
        ++converted;
        auto const back = lower(lifted.graph);
        check_same(g, lifted, back);
        for (std::size_t i = 0; i < g.size(); ++i) {
            auto const j = static_cast<std::size_t>(std::ranges::find(back.node, lifted.node[i]) - back.node.begin());
            if (g.operations[i].work != ops::work_class::source) CHECK(back.strategy[j].degree == s[i].degree);
        }
        // What was split again to the same degrees is the same graph.
        auto const again = lift(back.graph, back.strategy);
        CHECK(again.graph == lifted.graph);
    }
    CHECK(converted > support::cases(800));
    CHECK(refused > 0);
}

TEST_CASE("conversion: copies and partial sums are refused by a strategy") {
    parallel_graph g;
    auto const x = g.reshard(g.add_input("x", {{8, 4}}), resharding::replicate, 0, 2);
    static_cast<void>(g.add_operator("relu", ops::relu{}.infer(std::vector<ops::tensor>{{{8, 4}}}), {x}));
    CHECK(support::refusal([&] { return lower(g); }) == "operator 'relu' of a parallel graph runs in 2 copies: a strategy says no such thing");
    CHECK(support::refusal([&] { return lift(graph::read_graph(models::mlp()).graph, std::vector<operator_split>{}); }).find("must be one each") != std::string::npos);
}

TEST_CASE("conversion: operators of one name have weights of their own") {
    auto g = graph::read_graph(models::mlp()).graph;
    for (auto& name : g.names) name = "same";
    auto const lifted = lift(g);
    std::size_t parameters = 0, weights = 0;
    for (auto const& op : g.operations) parameters += op.weights.size();
    for (std::uint32_t n = 0; n < lifted.graph.bound(); ++n) weights += lifted.graph[n]->kind == node_kind::weight;
    CHECK(weights == parameters);
    CHECK(lower(lifted.graph).graph.operations.size() == g.size());
    CHECK(support::refusal([&] { return lift(g, std::vector<space::configuration>{}); }).find("a strategy of 0 operators") == 0);
}
