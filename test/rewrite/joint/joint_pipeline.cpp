#include <parsearch/rewrite/joint/joint_pipeline.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

std::mt19937_64 unused; // a partition draws nothing

joint_options with_rules(joint_options options, std::vector<graph_rule> const& rules) {
    options.rules = rules;
    return options;
}
joint_pipeline_options with_rules(joint_pipeline_options options, std::vector<graph_rule> const& rules) {
    options.joint.rules = rules;
    return options;
}

template <class M> auto problem_of(M const& model, std::uint32_t nodes_used, sim::simulation_options const& simulation = {}, byte_count memory = 0) {
    auto device = topology::v100_sxm;
    if (memory > 0) device.memory = memory;
    link_description const slow{{1.25e9}, std::chrono::microseconds(10)}; // 10 Gb/s
    auto const cluster = topology::nodes({.count = nodes_used, .gpus_per_node = 1, .device = device, .nic = slow});
    return make_problem(model, cluster, cost::roofline(cluster), {.simulation = simulation});
}
auto bert(std::int64_t batch = 32) { return models::bert({.layers = 4, .hidden = 1024, .heads = 16, .sequence = 128, .batch = batch}); }

/// The cost that is told is that of the plan.
template <class P> void check(P const& p, joint_pipeline_result const& found) {
    auto const after = with_graph(p, found.best.joint.operators);
    if (auto const& how = found.best.pipeline) {
        pipeline::pipeline_simulator simulator(after);
        CHECK(simulator(how->how, how->strategy) == found.cost);
        CHECK(after.evaluator()(found.best.joint.strategy) >= found.cost);
    } else {
        CHECK(after.evaluator()(found.best.joint.strategy) == found.cost);
    }
    CHECK_FALSE(found.lower_bound.has_value());
}

} // namespace

TEST_CASE("joint pipeline: on slow links a transformer is rewritten and runs as a pipeline, faster than either alone") {
    auto const p = problem_of(bert(64), 4);
    std::mt19937_64 a(1), b(1), values(2);
    joint_pipeline_options const options{.joint = {.segment_graphs = 8}, .pipeline = {.max_micro_batches = 8, .beam = 1}};
    std::uint64_t proposals = 0, graphs = 0;
    auto least = picoseconds::max();
    struct {
        std::uint64_t &proposals, &graphs;
        picoseconds& least;
        void operator()(rewritten_graph const& e) { CHECK(e.evaluation >= proposals++); }
        void operator()(pipeline::simulated_pipeline const& e) { CHECK(e.evaluation >= proposals++); }
        void operator()(search::improved<picoseconds> const& e) {
            CHECK(e.cost < e.before);
            CHECK(e.cost < least);
            least = e.cost;
        }
        void operator()(simulated_graph const& e) { graphs += e.cost > picoseconds{0}; }
    } observer{proposals, graphs, least};
    auto const found = joint_pipeline(p, {}, a, with_rules(options, algebraic_rules()), observer);
    check(p, found);
    CHECK(found.reason == stop_reason::exhausted);
    auto const joined = joint(p, {}, b, with_rules(options.joint, algebraic_rules()));
    auto const cut = pipeline::partition(p, {}, unused, options.pipeline);
    CHECK(found.cost < joined.cost);
    CHECK(found.cost < cut.cost);
    REQUIRE(found.best.pipeline.has_value());
    CHECK(found.best.pipeline->how.micro_batches > 1);
    CHECK_FALSE(found.best.joint.applied.empty());
    CHECK(graphs >= 2);
    CHECK(proposals == found.stats.proposals);
    CHECK(found.stats.trajectory == joined.stats.trajectory);
    // What runs in micro-batches computes what the model does.
    auto const& plan = *found.best.pipeline;
    auto const in_micro_batches = lift(found.best.joint.operators, plan.strategy, plan.how.micro_batches);
    CHECK(lower(in_micro_batches.graph).micro_batches == plan.how.micro_batches);
}

TEST_CASE("joint pipeline: where memory is scarce, a pipeline fits and nothing else does") {
    auto const p = problem_of(models::gpt({.layers = 6, .hidden = 512, .heads = 8, .sequence = 256, .vocabulary = 1000, .batch = 16}), 2,
                              {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}, 350'000'000);
    std::mt19937_64 a(1), b(1);
    joint_pipeline_options const options{.joint = {.segment_graphs = 4}, .pipeline = {.max_micro_batches = 8, .beam = 1}, .rewritten = 1};
    auto const found = joint_pipeline(p, {}, a, with_rules(options, algebraic_rules()));
    check(p, found);
    CHECK(joint(p, {}, b, with_rules(options.joint, algebraic_rules())).cost == cost_traits<picoseconds>::infinity());
    CHECK(found.cost < cost_traits<picoseconds>::infinity());
    CHECK(found.best.pipeline.has_value());
}

TEST_CASE("joint pipeline: the same for the same seed, never worse than its parts, on random networks") {
    constexpr std::uint64_t seed = 12;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int pipelines = 0, unpipelined = 0;
    for (int n = 0; n < support::cases(100); ++n) {
        auto const p = problem_of(support::random_network(rng, 8), 4);
        if (std::ranges::all_of(p.graph().operations, [](auto const& op) { return op.work == ops::work_class::source; })) continue;
        joint_pipeline_options options{
            .joint = {.segment_operators = 1 + uniform_index(rng, 12), .segment_graphs = 8, .refinement = 20 * uniform_index(rng, 2)},
            .rewritten = uniform_index(rng, 4)};
        if (bernoulli(rng, 0.3)) options.pipeline.evaluations = 1 + uniform_index(rng, 40);
        auto const draw = static_cast<std::uint64_t>(n);
        std::mt19937_64 a(draw), b(draw), c(draw);
        auto const first = joint_pipeline(p, {}, a, with_rules(options, algebraic_rules())),
                   second = joint_pipeline(p, {}, b, with_rules(options, algebraic_rules()));
        check(p, first);
        CHECK(first.cost == second.cost);
        CHECK(first.best.joint.graph == second.best.joint.graph);
        CHECK(first.best.joint.strategy == second.best.joint.strategy);
        CHECK(first.best.pipeline.has_value() == second.best.pipeline.has_value());
        if (first.best.pipeline) {
            CHECK(first.best.pipeline->how == second.best.pipeline->how);
            CHECK(first.best.pipeline->strategy == second.best.pipeline->strategy);
        }
        CHECK(first.stats.evaluations == second.stats.evaluations);
        auto const joined = joint(p, {}, c, with_rules(options.joint, algebraic_rules()));
        auto const cut = pipeline::partition(p, {}, unused, options.pipeline);
        CHECK(first.cost <= joined.cost);
        CHECK(first.cost <= cut.cost);
        CHECK(first.stats.evaluations >= joined.stats.evaluations + cut.stats.evaluations);
        if (options.pipeline.evaluations) CHECK(first.stats.evaluations <= joined.stats.evaluations + *options.pipeline.evaluations);
        if (first.best.pipeline) CHECK(first.cost < joined.cost);
        else CHECK(first.cost == joined.cost);
        CHECK(support::same_value(lift(p.graph()).graph, first.best.joint.graph, rng));
        pipelines += first.best.pipeline.has_value();
        unpipelined += !first.best.pipeline;
    }
    CHECK(pipelines > 0);
    CHECK(unpipelined > 0);
}

TEST_CASE("joint pipeline: it ends by budget, time and token with what it has") {
    auto const p = problem_of(bert(8), 2);
    std::mt19937_64 rng(1);
    auto const few = joint_pipeline(p, {}, rng, {.joint = {.rules = algebraic_rules(), .evaluations = 10}, .pipeline = {.evaluations = 3}});
    check(p, few);
    CHECK(few.reason == stop_reason::evaluation_budget);
    CHECK(few.stats.evaluations <= 13);
    auto const quick = joint_pipeline(
        p, {}, rng, {.joint = {.rules = algebraic_rules(), .time = std::chrono::nanoseconds{0}}, .pipeline = {.time = std::chrono::nanoseconds{0}}});
    check(p, quick);
    CHECK(quick.reason == stop_reason::time_budget);
    std::stop_source source;
    source.request_stop();
    auto const stopped =
        joint_pipeline(p, {}, rng, {.joint = {.rules = algebraic_rules(), .stop = source.get_token()}, .pipeline = {.stop = source.get_token()}});
    check(p, stopped);
    CHECK(stopped.reason == stop_reason::stop_requested);
    // A start is never left for worse, however little may be tried.
    auto const again = joint_pipeline(p, quick.best, rng, {.joint = {.evaluations = 1}, .pipeline = {.evaluations = 1}});
    CHECK(again.cost <= quick.cost);
    // An observer that ends it at the first pipeline: only what no answer can do without comes after.
    auto const ended =
        joint_pipeline(p, {}, rng, {.joint = {.rules = algebraic_rules()}}, [](pipeline::simulated_pipeline const&) { return search::verdict::end; });
    CHECK(ended.reason == stop_reason::observer);
    CHECK(ended.stats.evaluations <= 3);
    CHECK(support::refusal([&] { return joint_pipeline(p, {}, rng, {.joint = {.beam = 0}}).cost; }) ==
          "joint: option 'beam' is 0: must be at least 1");
    CHECK(support::refusal([&] { return joint_pipeline(p, {}, rng, {.pipeline = {.beam = 0}}).cost; }) ==
          "partition: option 'beam' is 0: must be at least 1");
}

TEST_CASE("joint pipeline: graphs are partitioned within one budget, the first first, and a bound spares what can not be better") {
    auto const p = problem_of(bert(8), 2);
    auto const own = lift(p.graph()).graph;
    known_graph const as_it_is{{own, p.graph(), data_parallel(p), {}}, p.evaluator()(data_parallel(p))};
    std::vector<known_graph> const twice{as_it_is, as_it_is};
    pipeline::partition_options const options{.max_micro_batches = 4, .beam = 1};
    auto const found = partition_graphs(p, twice, unused, options);
    REQUIRE(found.best.has_value());
    CHECK(found.best->graph == 0);
    CHECK(found.best->cost == pipeline::pipeline_simulator(p)(found.best->plan.how, found.best->plan.strategy));
    auto const once = partition_graphs(p, std::span(twice).first(1), unused, options);
    CHECK(once.best->cost == found.best->cost);
    auto cut = options;
    cut.evaluations = once.stats.evaluations;
    CHECK(partition_graphs(p, twice, unused, cut).stats.evaluations == once.stats.evaluations);
    CHECK(partition_graphs(p, twice, unused, cut).reason == stop_reason::evaluation_budget);
    CHECK_FALSE(partition_graphs(p, {}, unused, options).best.has_value());
    auto bounded = options;
    bounded.bound = picoseconds{1};
    CHECK(partition_graphs(p, twice, unused, bounded).stats.evaluations < found.stats.evaluations);
}
