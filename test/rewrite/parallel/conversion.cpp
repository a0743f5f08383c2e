#include <parsearch/rewrite/parallel/conversion.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"
#include "support/random_split.hpp"
#include "support/refusal.hpp"
#include "support/same_value.hpp"

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
std::vector<space::configuration> in_place(graph::dense_graph const& g, std::vector<space::configuration> const& s, lifted_graph const& lifted,
                                           lowered_graph const& back) {
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
    auto const p = make_problem(model, topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm}),
                                cost::roofline(topology::nodes({.count = 2, .gpus_per_node = 4, .device = topology::h100_sxm})));
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
        repeats += std::ranges::any_of(back.graph.operations, [](auto const& op) {
            return ops::replica_dim(op, ops::dim_kind::copies) || ops::replica_dim(op, ops::dim_kind::sums);
        });
        // What was split again to the same degrees is the same graph.
        auto const again = lift(back.graph, back.strategy);
        CHECK(again.graph == lifted.graph);
    }
    CHECK(converted > support::cases(800));
    CHECK(repeats > support::cases(20));
    CHECK(refused > 0);
}

namespace {

/// Lifts and lowers the micro-batches of a pipeline, puts its stages and devices back, and simulates both.
template <class P> void check_pipeline(P const& p, pipeline::pipeline_plan const& plan) {
    auto const lifted = lift(p.graph(), plan.strategy, plan.how.micro_batches);
    auto const back = lower(lifted.graph);
    check_same(p.graph(), lifted, back);
    CHECK(back.micro_batches == plan.how.micro_batches);
    auto const q = with_graph(p, back.graph);
    auto how = plan.how;
    auto strategy = back.strategy;
    std::vector<std::uint32_t> order; // ours, of the operators of `p`
    for (std::size_t i = 0; i < p.size(); ++i) {
        auto const j = static_cast<std::size_t>(std::ranges::find(back.node, lifted.node[i]) - back.node.begin());
        order.push_back(static_cast<std::uint32_t>(j));
        if (p.graph().operations[i].work != ops::work_class::source) CHECK(back.strategy[j].degree == plan.strategy[i].degree);
        strategy[j] = plan.strategy[i];
        how.stage[j] = plan.how.stage[i];
        if (!how.segment.empty()) how.segment[j] = plan.how.segment[i];
    }
    how.micro_batches = back.micro_batches;
    REQUIRE(std::ranges::is_sorted(order)); // so that ties between tasks fall alike
    CHECK(pipeline::pipeline_simulator(q)(how, strategy) == pipeline::pipeline_simulator(p)(plan.how, plan.strategy));
    CHECK(lift(back.graph, strategy, back.micro_batches).graph == lifted.graph);
}

template <class M> void check_pipelines(M const& model, std::uint32_t micro_batches) {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 2, .device = topology::h100_sxm});
    auto const p = make_problem(model, cluster, cost::roofline(cluster));
    pipeline::detail::stage_builder builder(p);
    for (std::size_t stages = 1; stages <= 4; stages *= 2)
        for (auto const m : {1U, micro_batches})
            for (auto const t : builder.degrees(4 / stages)) {
                auto const c = builder.balanced(stages, 1, m, {.tensor = t});
                INFO(stages, " stages, ", m, " micro-batches, tensor parallel ", t);
                check_pipeline(p, builder.plan(c));
            }
}

} // namespace

TEST_CASE("conversion: pipelines of models, there and back, cost the same") {
    check_pipelines(models::mlp(), 4);
    check_pipelines(models::gpt({.layers = 2, .batch = 16}), 8);
    check_pipelines(models::bert({.layers = 2, .batch = 16}), 4);
    check_pipelines(models::dlrm(), 2);
    check_pipelines(models::moe(), 2);
    check_pipelines(models::nmt({.batch = 8}), 2);
    check_pipelines(models::inception_v3({.batch = 8}), 2);
}

TEST_CASE("conversion: a pipeline's samples come in micro-batches, its weights and results whole") {
    auto const g = graph::read_graph(models::bert({.layers = 1, .batch = 16})).graph;
    space::flat_strategy s;
    for (auto const& op : g.operations) s.push_back(space::whole(op));
    auto const lifted = lift(g, s, 8);
    std::size_t pipelines = 0, batches = 0, once = 0;
    for (std::uint32_t n = 0; n < lifted.graph.bound(); ++n) {
        auto const& c = *lifted.graph[n].content;
        if (c.kind == node_kind::weight) CHECK(c.outputs[0].micro_batches == 1);
        pipelines += c.kind == node_kind::reshard && c.how == resharding::pipeline;
        batches += c.kind == node_kind::reshard && c.how == resharding::batch;
        if (c.kind == node_kind::reshard && c.how == resharding::pipeline)
            CHECK(lifted.graph[lifted.graph[n].inputs[0].producer]->kind == node_kind::input);
        once += c.kind == node_kind::compute && c.split.micro_batches == 1;
    }
    CHECK(pipelines > 0);
    CHECK(batches == lifted.graph.results().size());
    CHECK(once == 1); // positions
    for (auto const& t : lifted.graph.results()) CHECK(lifted.graph.tensor(t).micro_batches == 1);
    // Evaluators take it as it is: for them it is the network.
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::h100_sxm});
    auto const p = make_problem(lifted.graph, cluster, cost::roofline(cluster)), q = make_problem(g, cluster, cost::roofline(cluster));
    CHECK(p.evaluator()(data_parallel(p)) == q.evaluator()(data_parallel(q)));
}

TEST_CASE("conversion: operators in different numbers of micro-batches are refused by name") {
    auto const linear = ops::linear{.out = 4}.infer(std::vector<ops::tensor>{{{8, 4}}});
    parallel_graph g;
    auto const x = g.add_input("x", {{8, 4}});
    auto const layer = [&](std::string const& name, tensor_ref t) {
        return tensor_ref{g.add_operator(name, linear, {t, g.add_weight(name + ".w", {{4, 4}}), g.add_weight(name + ".b", {{4}})}), 0};
    };
    auto const first = layer("first", g.reshard(x, resharding::pipeline, 0, 2));
    auto const second = layer("second", g.reshard(first, resharding::pipeline, 0, 2));
    g.set_results({g.reshard(second, resharding::batch, 0, 4)});
    CHECK(support::refusal([&] { return lower(g); }) ==
          "operator 'second' of a parallel graph runs in 4 micro-batches, 'first' in 2: all that have samples must run in as many");
    auto const mlp = graph::read_graph(models::mlp()).graph;
    space::flat_strategy s;
    for (auto const& op : mlp.operations) s.push_back(space::whole(op));
    CHECK(support::refusal([&] { return lift(mlp, s, 7); }).find("micro-batches: linear has 64 samples: 7 micro-batches must divide them") !=
          std::string::npos);
    CHECK(support::refusal([&] { return lift(mlp, s, 0); }).find("0 micro-batches of a parallel graph: must be from 1") == 0);
}

TEST_CASE("conversion: random graphs in random micro-batches compute the same, forward and backward") {
    constexpr std::uint64_t seed = 11;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int converted = 0, mixed = 0;
    std::size_t divided = 0, joined = 0;
    for (int n = 0; n < support::cases(3000); ++n) {
        auto const g = graph::read_graph(support::random_network(rng, 8, 0)).graph;
        // Either all operators in as many micro-batches as a pipeline has, or each in a number of its own.
        bool const own = bernoulli(rng, 0.5);
        auto const all = static_cast<std::int32_t>(2 << uniform_index(rng, 2));
        std::vector<operator_split> splits;
        for (auto const& op : g.operations) {
            splits.push_back(support::random_split(op, rng));
            auto& s = splits.back();
            if (!ops::sample_dim(op)) continue;
            s.micro_batches = own ? static_cast<std::int32_t>(1 << uniform_index(rng, 3)) : all;
            try {
                validate(s, op);
            } catch (invalid_input const&) {
                auto const n_of = s.micro_batches;
                s = unsplit(op); // samples are too few for both
                s.micro_batches = n_of;
            }
        }
        lifted_graph lifted;
        try {
            lifted = lift(g, splits);
        } catch (invalid_input const& e) {
            std::string const why = e.what();
            CHECK((why.find("into no equal blocks") != std::string::npos || why.find("micro-batches: ") != std::string::npos));
            continue;
        }
        ++converted;
        for (std::uint32_t k = 0; k < lifted.graph.bound(); ++k) {
            divided += lifted.graph[k]->kind == node_kind::reshard && lifted.graph[k]->how == resharding::pipeline;
            joined += lifted.graph[k]->kind == node_kind::reshard && lifted.graph[k]->how == resharding::batch;
        }
        // The same results, held alike: in one part.
        auto const plain = lift(g).graph;
        auto in_parts = lifted.graph;
        std::vector<tensor_ref> results;
        bool copied = false;
        for (auto const& t : in_parts.results()) {
            auto const held = in_parts.tensor(t);
            copied = copied || held.copies > 1;
            results.push_back(copied ? t : in_parts.reshard_to(t, in_one_part(held.whole)));
        }
        REQUIRE_FALSE(copied);
        in_parts.set_results(std::move(results));
        CHECK(support::same_value(plain, in_parts, rng));
        try {
            auto const back = lower(lifted.graph);
            check_same(g, lifted, back);
            CHECK(lift(back.graph, back.strategy, back.micro_batches).graph == lifted.graph);
        } catch (invalid_input const& e) {
            CHECK(own);
            CHECK(std::string(e.what()).find("all that have samples must run in as many") != std::string::npos);
            ++mixed;
        }
    }
    CHECK(converted > support::cases(1500));
    CHECK(mixed > support::cases(100));
    CHECK(divided > static_cast<std::size_t>(converted));
    CHECK(joined > static_cast<std::size_t>(converted));
}

TEST_CASE("conversion: copies and partial sums are simulated") {
    // Megatron's layer and what follows it: features of fc1 split, so that fc2 leaves partial sums; these are scaled as they are, and added up for
    // copies of relu.
    parallel_graph g;
    auto const linear = [](std::int64_t in, std::int64_t out) {
        return ops::linear{.out = out, .bias = false}.infer(std::vector<ops::tensor>{{{8, in}}});
    };
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

    auto const p = make_problem(low.graph, support::mesh(4, 1, 1), support::mixed_oracle{},
                                {.simulation = {.movement = sim::movement::collective, .training = false}});
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
    CHECK(support::refusal([&] { return lift(graph::read_graph(models::mlp()).graph, std::vector<operator_split>{}); }).find("must be one each") !=
          std::string::npos);
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
    // Partial maxima are no sums, alone or beside sums.
    parallel_graph maxima;
    auto const reduced = [](ops::reduction_mode m) {
        return ops::reduce{.mode = m, .axes = {1}, .keep = true}.infer(std::vector<ops::tensor>{{{8, 4}}});
    };
    auto const parts = maxima.reshard(maxima.add_input("x", {{8, 4}}), resharding::partition, 1, 2);
    tensor_ref const sum{maxima.add_operator("sum", reduced(ops::reduction_mode::sum), {parts}), 0},
        max{maxima.add_operator("max", reduced(ops::reduction_mode::max), {parts}), 0};
    auto const added = ops::add{}.infer(std::vector<ops::tensor>{{{8, 1}}, {{8, 1}}});
    static_cast<void>(maxima.add_operator("sums", added, {sum, sum}));
    CHECK(support::refusal([&] {
              return maxima.add_operator("mixed", added, {sum, max});
          }) == "operator 'mixed' of a parallel graph: runs on partial results of 'max' (reduce_max), which are no sums: must be joined before");
    CHECK(support::refusal([&] {
              return with_dim.add_operator("relu", copied, {with_dim.add_input("x", {{8, 4}})});
          }).find("the split says how often") != std::string::npos);
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
