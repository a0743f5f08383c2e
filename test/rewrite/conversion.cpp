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

#include "support/plain_topology.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/sanitized.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

/// `back` is `g` but for the order of operators, names of parameters and dims of copies and partial sums; the same operations, edges, sharing.
void check_same(graph::dense_graph const& g, lifted_graph const& lifted, lowered_graph const& back) {
    REQUIRE(back.graph.size() == g.size());
    std::vector<std::size_t> at(lifted.graph.bound());
    for (std::size_t i = 0; i < back.node.size(); ++i) at[back.node[i]] = i;
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const j = at[lifted.node[i]];
        CHECK(ops::without_replicas(back.graph.operations[j]) == ops::without_replicas(g.operations[i]));
        CHECK(back.graph.names[j] == g.names[i]);
        CHECK(at[lifted.node[g.sharing[i]]] == back.graph.sharing[j]);
        REQUIRE(back.graph.in(j).size() == g.in(i).size());
        for (std::size_t n = 0; n < g.in(i).size(); ++n) {
            CHECK(back.graph.in(j)[n].producer == at[lifted.node[g.in(i)[n].producer]]);
            CHECK(back.graph.in(j)[n].slot == g.in(i)[n].slot);
        }
    }
}

/// The degree of the dim of a kind that repeats work.
std::int32_t repeated(ops::operation const& op, space::configuration const& c, ops::dim_kind k) {
    auto const d = ops::replica_dim(op, k);
    return d ? c.degree[*d] : 1;
}
/// `back` splits operators as `s` does.
void check_degrees(graph::dense_graph const& g, std::vector<space::configuration> const& s, lifted_graph const& lifted, lowered_graph const& back) {
    for (std::size_t i = 0; i < g.size(); ++i) {
        if (g.operations[i].work == ops::work_class::source) continue;
        auto const j = static_cast<std::size_t>(std::ranges::find(back.node, lifted.node[i]) - back.node.begin());
        auto const& a = g.operations[i];
        auto const& b = back.graph.operations[j];
        for (std::size_t d = 0, e = 0; d < a.dims.size(); ++d)
            if (!ops::repeats_work(a.dims[d].kind)) CHECK(back.strategy[j].degree[e++] == s[i].degree[d]);
        for (auto const k : {ops::dim_kind::copies, ops::dim_kind::sums}) CHECK(repeated(b, back.strategy[j], k) == repeated(a, s[i], k));
    }
}
/// `s` for the operators of `back`, each shard where it was.
std::vector<space::configuration> in_place(graph::dense_graph const& g, std::vector<space::configuration> const& s, lifted_graph const& lifted, lowered_graph const& back) {
    std::vector<space::configuration> out(back.graph.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const j = static_cast<std::size_t>(std::ranges::find(back.node, lifted.node[i]) - back.node.begin());
        out[j] = back.strategy[j];
        if (g.operations[i].work == ops::work_class::source) continue;
        auto const& a = g.operations[i];
        // Dims that repeat work are behind the others, copies first.
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d < a.dims.size(); ++d)
            if (!ops::repeats_work(a.dims[d].kind)) order.push_back(d);
        for (auto const k : {ops::dim_kind::copies, ops::dim_kind::sums})
            if (auto const d = ops::replica_dim(a, k); d && s[i].degree[*d] > 1) order.push_back(*d);
        REQUIRE(order.size() == back.graph.operations[j].dims.size());
        out[j].listed.clear();
        for (std::int64_t n = 0; n < out[j].shards(); ++n) {
            std::vector<std::int64_t> index(a.dims.size(), 0);
            auto rest = n;
            for (std::size_t k = order.size(); k-- > 0; rest /= s[i].degree[order[k]]) index[order[k]] = rest % s[i].degree[order[k]];
            std::int64_t shard = 0;
            for (std::size_t d = 0; d < a.dims.size(); ++d) shard = shard * s[i].degree[d] + index[d];
            out[j].listed.push_back(s[i].device(shard));
        }
    }
    return out;
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
    int converted = 0, refused = 0, repeats = 0;
    for (int n = 0; n < support::cases(1500); ++n) {
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        std::vector<space::configuration> s;
        space::strategy_space const all(g, 8);
        for (std::size_t i = 0; i < g.size(); ++i) s.push_back(support::random_configuration(rng, g.operations[i], all[i], 8, false));
        // Copies that nobody reads are no parallel graph's: most operators run once, so that some graphs are.
        for (std::size_t i = 0; i < g.size(); ++i)
            if (auto const d = ops::replica_dim(g.operations[i], ops::dim_kind::copies); d && bernoulli(rng, 0.8)) s[i].degree[*d] = 1;
        lifted_graph lifted;
        try {
            lifted = lift(g, s);
        } catch (invalid_input const& e) {
            std::string const why = e.what();
            CAPTURE(why);
            bool const no_copies = why.find("copies") != std::string::npos, no_share = why.find("partial sums") != std::string::npos;
            CHECK((why.find("into no equal blocks") != std::string::npos || no_copies || no_share));
            refused += !no_copies && !no_share;
            continue;
        }
        ++converted;
        auto const back = lower(lifted.graph);
        check_same(g, lifted, back);
        check_degrees(g, s, lifted, back);
        // On the same devices it takes the same time, the same tasks, whichever graph they are read from.
        if (std::ranges::any_of(s, [](auto const& c) { return c.shards() > 8; })) continue;
        auto const original = make_problem(g, support::mesh(8, 3, 5), support::mixed_oracle{}, {.simulation = {.training = bernoulli(rng, 0.7)}});
        auto simulator = original.simulator();
        auto again_simulator = with_graph(original, back.graph).simulator();
        auto const whole_time = simulator.simulate(s);
        CHECK(again_simulator.simulate(in_place(g, s, lifted, back)) == whole_time);
        repeats += std::ranges::any_of(back.graph.operations, [](auto const& op) { return ops::replica_dim(op, ops::dim_kind::copies) || ops::replica_dim(op, ops::dim_kind::sums); });
        // What was split again to the same degrees is the same graph.
        auto const again = lift(back.graph, back.strategy);
        CHECK(again.graph == lifted.graph);
    }
    CHECK(converted > support::cases(800));
    CHECK(repeats > support::cases(50));
    CHECK(refused > 0);
}

TEST_CASE("conversion: copies and partial sums are simulated") {
    // Megatron's layer and what follows it: features of fc1 split, so that fc2 leaves partial sums; these are scaled as they are, and added up for copies of relu.
    parallel_graph g;
    auto const linear = [](std::int64_t in, std::int64_t out) { return ops::linear{.out = out, .bias = false}.infer(std::vector<ops::tensor>{{{8, in}}}); };
    auto const relu = ops::relu{}.infer(std::vector<ops::tensor>{{{8, 4}}});
    auto const x = g.add_input("x", {{8, 4}});
    auto const w1 = g.add_weight("w1", {{16, 4}}, "w1"), w2 = g.add_weight("w2", {{4, 16}}, "w2");
    auto const fc1 = g.add_operator("fc1", linear(4, 16), {g.reshard(x, resharding::replicate, 0, 4), g.reshard(w1, resharding::partition, 0, 4)});
    auto const fc2 = g.add_operator("fc2", linear(16, 4), {{fc1, 0}, g.reshard(w2, resharding::partition, 1, 4)});
    auto const scaled = g.add_operator("scale", ops::unary{ops::function::scale}.infer(std::vector<ops::tensor>{{{8, 4}}}), {{fc2, 0}});
    REQUIRE(to_string(g.tensor({scaled, 0})) == "f32[8,4] 4 sums");
    auto const sum = g.reshard({scaled, 0}, resharding::reduce, 0, 4);
    auto const last = g.add_operator("relu", relu, {g.reshard(sum, resharding::replicate, 0, 4)});
    g.set_results({{last, 0}});
    auto const low = lower(g);
    std::vector<std::string> configurations;
    for (std::size_t i = 0; i < low.graph.size(); ++i) configurations.push_back(to_string(low.strategy[i], low.graph.operations[i]));
    CHECK(configurations == std::vector<std::string>{"whole @0", "o4 @0+1", "k4 @0+1", "sums4 @0+1", "copies4 @0+1"});

    auto const p = make_problem(low.graph, support::mesh(4, 1, 1), support::mixed_oracle{}, {.simulation = {.movement = sim::movement::collective, .training = false}});
    auto simulator = p.simulator();
    (void)simulator.simulate(low.strategy);
    // One all-reduce, of the partial sums that relu's copies read: 2 (n - 1) times the tensor's 128 bytes.
    auto const& moved = simulator.traffic();
    CHECK(moved[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] == 2 * 3 * 128);
    CHECK(moved[static_cast<std::size_t>(sim::traffic_kind::activation)] == 0);
    // And back.
    auto const again = lift(low.graph, low.strategy);
    CHECK(again.graph == g);
    // Searches and other evaluators take it as any other problem.
    std::mt19937_64 rng(1);
    auto const found = search::mcmc(p, low.strategy, rng, {.evaluations = 300});
    CHECK(found.cost <= p.evaluator()(low.strategy));
    CHECK(simulate(p, found.best).makespan == found.cost);
}

TEST_CASE("conversion: what no parallel graph says is refused") {
    CHECK(support::refusal([&] { return lift(graph::read_graph(models::mlp()).graph, std::vector<operator_split>{}); }).find("must be one each") != std::string::npos);
    graph::operator_graph net;
    auto const copied = ops::with_copies(ops::relu{}.infer(std::vector<ops::tensor>{{{8, 4}}}), 2);
    auto const x = net.add("relu", copied, net.input("x", {{8, 4}}));
    net.add("softmax", ops::softmax{}, x);
    auto const g = graph::read_graph(net).graph;
    std::vector<space::configuration> s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    s[1].degree[2] = 2;
    CHECK(support::refusal([&] { return lift(g, s); }).find("copies") != std::string::npos); // one copy is not read
    parallel_graph with_dim;
    CHECK(support::refusal([&] { return with_dim.add_operator("relu", copied, {with_dim.add_input("x", {{8, 4}})}); }).find("the split says how often") != std::string::npos);
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
