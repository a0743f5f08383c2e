#include <parsearch/pipeline/partition.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/space/read_configuration.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace search = parsearch::search;
namespace sim = parsearch::sim;
using ps::picoseconds;
using ps::stop_reason;
using support::refusal;

namespace {
std::mt19937_64 unused; // a partition draws nothing

auto gpt(std::int64_t layers, std::int64_t batch, sim::simulation_options const& simulation = {.optimizer = sim::optimizer::adam},
         std::int64_t hidden = 1024) {
    auto const cluster = ps::topology::summit(1);
    return ps::make_problem(
        ps::models::gpt({.layers = layers, .hidden = hidden, .heads = 16, .vocabulary = 50304, .batch = batch, .type = ps::ops::dtype::f16}), cluster,
        ps::cost::roofline{cluster}, {.simulation = simulation});
}

// The pipeline is legal, and costs what its result says.
template <class P> void check(P const& problem, pipeline::pipeline_result const& found) {
    pipeline::pipeline_simulator simulator(problem);
    REQUIRE(simulator(found.best.how, found.best.strategy) == found.cost);
    REQUIRE(!found.lower_bound);
}
template <class P> picoseconds best_expert(P const& problem) {
    pipeline::pipeline_simulator simulator(problem);
    auto best = picoseconds::max();
    for (auto const& s : problem.starts()) best = std::min(best, simulator(pipeline::unpipelined(problem.graph()), s));
    return best;
}
} // namespace

TEST_CASE("partition: a network that fits no single device runs as a pipeline that fits") {
    auto const problem = gpt(24, 24, {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}, 2048);
    auto const found = pipeline::partition(problem, {}, unused, {.evaluations = 400, .sharded_optimizer = false});
    check(problem, found);
    CHECK(found.cost < ps::cost_traits<picoseconds>::infinity());
    CHECK(best_expert(problem) == ps::cost_traits<picoseconds>::infinity());
    CHECK(found.best.how.micro_batches > 1);
    auto const written = to_string(problem, found.best);
    CHECK(written.starts_with(
        ps::text(found.best.how.stages, found.best.how.stages == 1 ? " stage, " : " stages, ", found.best.how.micro_batches, " micro-batches")));
    CHECK(written.find("stage 0: tokens ... ") != std::string::npos);
    auto const other = gpt(1, 6);
    CHECK(refusal([&] { return to_string(other, found.best); }) ==
          ps::text("pipeline: stages of ", problem.size(), " operators: the graph has ", other.size(), ", must be one each"));
    auto cut = found.best;
    cut.strategy.pop_back();
    CHECK(refusal([&] { return to_string(problem, cut); }).starts_with("a pipeline's strategy of "));
}

TEST_CASE("partition: a plan that fits is better than any that does not, whatever is missed costs") {
    // Almost nothing: by cost alone some plan would win that does not fit.
    auto const problem = gpt(24, 24, {.optimizer = sim::optimizer::adam, .memory_penalty = 1e-6}, 2048);
    for (std::uint64_t const evaluations : {30u, 120u, 400u}) {
        INFO(evaluations, " evaluations");
        auto fastest = ps::cost_traits<picoseconds>::infinity(), cheapest = fastest; // of those that fit, and of all
        auto const watch = [&](pipeline::simulated_pipeline const& e) {
            if (!e.cost) return;
            cheapest = std::min(cheapest, *e.cost);
            if (e.simulator.fits()) fastest = std::min(fastest, *e.cost);
        };
        auto const found = pipeline::partition(
            problem, {}, unused, {.evaluations = evaluations, .max_micro_batches = 4, .max_interleaved = 1, .sharded_optimizer = false}, watch);
        check(problem, found);
        CHECK(found.cost == fastest);
        CHECK(cheapest < fastest);
        pipeline::pipeline_simulator simulator(problem);
        (void)simulator(found.best.how, found.best.strategy);
        CHECK(simulator.fits());
    }
}

TEST_CASE("partition: what the clock ended, its numbers of evaluations and of estimates repeat") {
    auto const problem = gpt(8, 16, {.optimizer = sim::optimizer::adam});
    std::set<std::uint64_t> estimated;
    for (int milliseconds = 1; milliseconds <= 256; milliseconds *= 4) {
        INFO(milliseconds, " ms");
        std::optional<std::uint64_t> divisions;
        auto const note = [&](pipeline::estimated_pipelines const& e) { divisions = e.divisions; };
        auto const timed = pipeline::partition(problem, {}, unused, {.time = std::chrono::milliseconds{milliseconds}}, note);
        REQUIRE(divisions);
        estimated.insert(*divisions);
        pipeline::partition_options again{.evaluations = timed.stats.evaluations, .estimates = divisions};
        if (timed.ended == stop_reason::exhausted) again.evaluations.reset();
        auto const repeated = pipeline::partition(problem, {}, unused, again, note);
        CHECK(repeated.stats.evaluations == timed.stats.evaluations);
        CHECK(repeated.stats.trajectory == timed.stats.trajectory);
        CHECK(repeated.cost == timed.cost);
        CHECK(repeated.best.how == timed.best.how);
        CHECK(repeated.best.strategy == timed.best.strategy);
    }
    std::uint64_t divisions = 0;
    (void)pipeline::partition(problem, {}, unused, {.evaluations = 2}, [&](pipeline::estimated_pipelines const& e) { divisions = e.divisions; });
    CHECK(*estimated.begin() < divisions); // the clock ended some among the estimates
    // One evaluation is not spent before there is one, but the clock ends estimates all the same.
    (void)pipeline::partition(problem, {}, unused, {.evaluations = 1},
                              [&](pipeline::estimated_pipelines const& e) { CHECK(e.divisions == divisions); });
    (void)pipeline::partition(problem, {}, unused, {.time = std::chrono::nanoseconds{1}, .evaluations = 1},
                              [&](pipeline::estimated_pipelines const& e) { CHECK(e.divisions < divisions); });
    divisions = 1;
    auto const none =
        pipeline::partition(problem, {}, unused, {.estimates = 0}, [&](pipeline::estimated_pipelines const& e) { divisions = e.divisions; });
    CHECK(divisions == 0);
    CHECK(none.ended == stop_reason::exhausted);
}

TEST_CASE("partition: never worse than the experts, the same for every run, and what it says is so") {
    int pipelines = 0;
    for (std::uint64_t seed = 0; seed < support::cases(60u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.memory = static_cast<sim::memory_policy>(ps::uniform_index(rng, 3));
        auto const problem = support::random_problem(
            rng, options, {.devices = 4, .operators = 10, .memory = static_cast<ps::byte_count>(500 + ps::uniform_index(rng, 8000))});
        bool const has_work = std::ranges::any_of(problem.graph().operations, [](auto const& op) { return op.work != ps::ops::work_class::source; });
        if (!has_work) continue;
        std::uint64_t proposals = 0;
        auto least = picoseconds::max();
        auto const found = pipeline::partition(problem, {}, unused, {}, [&](pipeline::simulated_pipeline const& e) {
            ++proposals;
            REQUIRE(e.evaluation == proposals);
            if (e.cost) least = std::min(least, *e.cost);
        });
        check(problem, found);
        CHECK(found.ended == stop_reason::exhausted);
        CHECK(found.stats.evaluations == proposals);
        CHECK(found.cost == least);
        CHECK(found.cost <= best_expert(problem));
        auto const again = pipeline::partition(problem, {}, unused, {});
        CHECK(again.best.how == found.best.how);
        CHECK(again.best.strategy == found.best.strategy);
        pipelines += found.best.how.stages > 1 || found.best.how.micro_batches > 1;
    }
    CHECK(pipelines > 0);
}

TEST_CASE("partition: devices of several kinds have stages of their own size") {
    // Ten even layers, a device that is four times as slow: it has two of them.
    ps::graph::operator_graph g;
    ps::graph::tensor_ref x = g.input("in", {{64, 4}});
    for (int i = 0; i < 10; ++i) x = g.add(ps::text("fc", i), ps::ops::linear{.out = 4}, x);
    auto topology = support::mesh(2, 1e9);
    topology.device[0].kind = "slow";
    auto const times = [](ps::ops::shard_work const& w, std::uint32_t d) {
        return picoseconds{static_cast<std::int64_t>(w.flops * (d == 0 ? 4 : 1))};
    };
    struct oracle {
        decltype(times) time;
        [[nodiscard]] picoseconds shard_time(ps::ops::shard_work const& w, std::uint32_t d) const { return time(w, d); }
        [[nodiscard]] picoseconds transfer_time(ps::byte_count, ps::link_description const&) const { return {}; }
    };
    auto const problem = ps::make_problem(g, topology, oracle{times});
    pipeline::detail::stage_builder builder(problem);
    CHECK(builder.balanced(2, 1, 1, {}).first == std::vector<std::size_t>{0, 2});
    auto const found = pipeline::partition(problem, {}, unused);
    check(problem, found);
    CHECK(found.best.how.launching().groups() == 2);
    CHECK(found.best.how.interleaved == 2); // the pipeline is filled sooner
    auto const once = pipeline::partition(problem, {}, unused, {.max_interleaved = 1});
    check(problem, once);
    CHECK(once.best.how.stages == 2);
    CHECK(found.cost < once.cost);
}

TEST_CASE("partition: a network that mixes samples is planned with one micro-batch") {
    ps::graph::operator_graph g;
    auto const x = g.input("x", {{4, 6}});
    g.add("y", ps::ops::concat{.axis = 0}, g.add("a", ps::ops::linear{.out = 6}, x), g.add("b", ps::ops::linear{.out = 6}, x));
    auto const problem = ps::make_problem(g, support::mesh(2), support::mixed_oracle{});
    auto const found = pipeline::partition(problem, {}, unused, {.max_micro_batches = 1'000'000'000'000});
    check(problem, found);
    CHECK(found.best.how.micro_batches == 1);
}

TEST_CASE("partition: a start that is better than all else is the answer") {
    // Work on the second device alone, which nobody expects to be the faster one: what experts split takes as long, and moves.
    struct second_is_faster : support::mixed_oracle {
        [[nodiscard]] ps::picoseconds shard_time(ps::ops::shard_work const&, std::uint32_t device) const {
            return ps::picoseconds{device == 1 ? 10 : 20};
        }
    };
    auto two = support::mesh(2, 1e-6);
    two.device[1].kind = "faster";
    auto const problem = ps::make_problem(ps::models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 4}), two, second_is_faster{});
    ps::space::flat_strategy alone;
    for (auto const& op : problem.graph().operations) alone.push_back(ps::space::whole(op, 1));
    auto const found = pipeline::partition(problem, {}, unused, {.starts = {alone}, .max_stages = 2, .max_micro_batches = 1});
    check(problem, found);
    CHECK(found.cost < problem.evaluator()(ps::space::one_device(problem.graph())));
    CHECK(found.best.strategy == alone);
}

TEST_CASE("partition: choices that are not allowed are not made") {
    auto const problem = gpt(4, 12, {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}, 2048);
    auto const found =
        pipeline::partition(problem, {}, unused, {.max_stages = 2, .max_micro_batches = 3, .recomputation = false, .sharded_optimizer = false});
    check(problem, found);
    CHECK(found.best.how.stages <= 2);
    CHECK(found.best.how.micro_batches <= 3);
    CHECK(found.best.how.sharded == pipeline::sharded_states::none);
    for (std::uint32_t s = 0; s < found.best.how.stages; ++s) CHECK(!found.best.how.recomputes(s));
}

TEST_CASE("partition: splits that are not allowed are in no pipeline") {
    auto const cluster = ps::topology::summit(1);
    auto const model = ps::models::gpt({.layers = 2, .hidden = 768, .heads = 12, .vocabulary = 5000, .batch = 12, .type = ps::ops::dtype::f16});
    auto const free = ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
    auto const& g = free.graph();
    auto const number = [&](std::string const& name) { return static_cast<std::size_t>(std::ranges::find(g.names, name) - g.names.begin()); };
    auto const attention = number("block1.attention"), loss = number("loss");
    REQUIRE(loss < g.size());
    int piped = 0;
    for (auto const* const split : {"heads3", "s3 heads2", "whole"}) {
        INFO(split);
        auto const wanted = ps::space::read_split(split, g.operations[attention]);
        ps::constraints_of<decltype(model), decltype(cluster)> rules;
        rules.pin(free.handle(attention), split).forbid(free.handle(loss), "whole");
        auto const problem =
            ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}}, rules);
        std::size_t seen = 0;
        auto const see = [&](pipeline::simulated_pipeline const& e) {
            auto const& c = e.plan.strategy[attention];
            REQUIRE(std::equal(wanted.begin(), wanted.begin() + c.rank, c.degree.begin()));
            REQUIRE(e.plan.strategy[loss].shards() > 1);
            piped += e.plan.how.stages > 1;
            ++seen;
        };
        auto const outside = ps::data_parallel(free); // is not considered
        auto const found = pipeline::partition(problem, {.how = pipeline::unpipelined(g), .strategy = outside}, unused, {.starts = {outside}}, see);
        check(problem, found);
        CHECK(seen > 5);
    }
    CHECK(piped > 0);
}

TEST_CASE("partition: operators that are tied are split alike in every plan that is simulated") {
    auto const model = ps::models::mlp({.features = 256, .hidden = {256, 256, 256}, .classes = 64, .batch = 32});
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 8, .device = ps::topology::h100_sxm});
    // How many of the plans simulated split the second layer and the third otherwise.
    auto const apart = [&](ps::constraints_of<decltype(model), decltype(cluster)> const& wanted) {
        auto const problem = ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {}, wanted);
        int plans = 0;
        auto const watch = [&](pipeline::simulated_pipeline const& e) {
            auto const& s = e.plan.strategy;
            plans += !std::ranges::equal(s[3].degrees(), s[5].degrees());
        };
        auto const found = pipeline::partition(problem, {}, unused, {.evaluations = 300}, watch);
        check(problem, found);
        CHECK(found.stats.evaluations > 20);
        return plans;
    };
    CHECK(apart({}) > 0);
    CHECK(apart(ps::constraints_of<decltype(model), decltype(cluster)>{}.tie({3, 5})) == 0);
}

TEST_CASE("partition: splits that have no room in a stage, or in a small micro-batch, are in no pipeline either") {
    ps::graph::operator_graph g;
    ps::graph::tensor_ref x = g.input("in", {{64, 16}});
    for (int i = 0; i < 4; ++i) x = g.add(ps::text("fc", i), ps::ops::linear{.out = 16}, x);
    for (auto const devices : {8u, 16u}) {
        auto const topology = support::mesh(devices, 1e9);
        for (auto const* const name : {"fc0", "fc2"})
            for (auto const& pins : {std::vector<std::string>{"s8"}, {"s4", "o8"}, {"o16"}, {"s2 o4"}}) {
                INFO(devices, ' ', name, ' ', pins.front());
                auto const free = ps::make_problem(g, topology, support::mixed_oracle{});
                auto const op = static_cast<std::size_t>(std::ranges::find(free.graph().names, name) - free.graph().names.begin());
                ps::constraints_of<decltype(g), decltype(topology)> rules;
                for (auto const& pin : pins) rules.pin(free.handle(op), pin);
                if (pins.front() == "o16" && devices < 16) {
                    CHECK(refusal([&] { return ps::make_problem(g, topology, support::mixed_oracle{}, {}, rules).size(); }) ==
                          ps::text("configuration space of operator '", name, "': none of its ", free.space().of(op).splits(),
                                   " splits on 8 devices is allowed: it is pinned to 'o16'"));
                    continue;
                }
                auto const problem = ps::make_problem(g, topology, support::mixed_oracle{}, {}, rules);
                auto const see = [&](pipeline::simulated_pipeline const& e) {
                    auto const& c = e.plan.strategy[op];
                    REQUIRE(ps::space::allows(problem.space().options(), name, problem.graph().operations[op], c));
                    for (std::int64_t n = 0; n < c.shards(); ++n) {
                        auto const group = devices * e.plan.how.interleaved / e.plan.how.stages;
                        REQUIRE(static_cast<std::uint32_t>(c.device(n)) / group == e.plan.how.stage[op] % (devices / group));
                    }
                };
                check(problem, pipeline::partition(problem, {}, unused, {}, see));
            }
    }
}

TEST_CASE("partition: budgets end it, and it still answers") {
    auto const problem = gpt(2, 12);
    for (std::uint64_t const n : {1u, 2u, 5u, 20u}) {
        auto const found = pipeline::partition(problem, {}, unused, {.evaluations = n});
        CHECK(found.reason == stop_reason::evaluation_budget);
        CHECK(found.stats.evaluations == n);
        check(problem, found);
    }
    CHECK(pipeline::partition(problem, {}, unused, {.time = std::chrono::nanoseconds{0}}).reason == stop_reason::time_budget);
    std::stop_source stopped;
    stopped.request_stop();
    CHECK(pipeline::partition(problem, {}, unused, {.stop = stopped.get_token()}).reason == stop_reason::stop_requested);
    CHECK(refusal([&] {
              return pipeline::partition(problem, {}, unused, {.evaluations = 0}).cost;
          }).starts_with("partition: option 'evaluations' is 0"));
    CHECK(refusal([&] { return pipeline::partition(problem, {}, unused, {.max_stages = 0}).cost; }) ==
          "partition: option 'max_stages' is 0: must be at least 1");
    CHECK(refusal([&] { return pipeline::partition(problem, {}, unused, {.max_micro_batches = 0}).cost; }) ==
          "partition: option 'max_micro_batches' is 0: must be at least 1");
    CHECK(refusal([&] { return pipeline::partition(problem, {}, unused, {.beam = 0}).cost; }) == "partition: option 'beam' is 0: must be at least 1");
}

TEST_CASE("partition: one device, inference, networks without samples") {
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 1, .device = ps::topology::v100_sxm});
    auto const single = ps::make_problem(ps::models::resnet({.batch = 8}), cluster, ps::cost::roofline{cluster});
    auto const found = pipeline::partition(single, {}, unused);
    check(single, found);
    CHECK(found.best.how.stages == 1);

    auto const forward = gpt(2, 12, {.training = false});
    auto const inference = pipeline::partition(forward, {}, unused);
    check(forward, inference);
    CHECK(inference.best.how.recompute == std::vector<bool>(inference.best.how.recompute.size(), false));

    ps::graph::operator_graph g;
    g.input("in", {{4, 4}});
    auto const nothing = ps::make_problem(g, cluster, ps::cost::roofline{cluster});
    CHECK(refusal([&] { return pipeline::partition(nothing, {}, unused).cost; }) ==
          "partition: the graph has inputs only: at least one operator must have work");
}

TEST_CASE("partition: the best of each textbook family comes first, and in a few words") {
    auto const problem = gpt(4, 24);
    std::vector<pipeline::plan_family> families;
    std::vector<std::string> names;
    auto least = picoseconds::max();
    auto const found = pipeline::partition(problem, {}, unused, {}, [&](pipeline::simulated_pipeline const& e) {
        if (families.size() == 8) return;
        REQUIRE(e.cost.has_value());
        REQUIRE(!e.improves);
        families.push_back(pipeline::family_of(e.plan.how.stages, e.plan.most_tensor_parallel(), e.plan.expert_parallel, e.plan.context_parallel,
                                               e.plan.how.sharded));
        names.push_back(pipeline::short_name(e.plan, problem.topology().size()));
        least = std::min(least, *e.cost);
        pipeline::pipeline_simulator again(problem);
        CHECK(again(e.plan.how, e.plan.strategy) == *e.cost);
        CHECK(again.traffic() == e.simulator.traffic());
        CHECK(std::ranges::equal(again.memory(), e.simulator.memory(), {}, &sim::memory_use::total, &sim::memory_use::total));
    });
    CHECK(found.cost <= least);
    std::ranges::sort(families);
    using family = pipeline::plan_family;
    CHECK(families == std::vector{family::data, family::sharded_data, family::sharded_gradients, family::fully_sharded, family::tensor,
                                  family::pipeline, family::tensor_pipeline, family::context});
    CHECK(std::ranges::any_of(names, [](auto const& n) { return n.starts_with("data 6"); }));
    CHECK(std::ranges::any_of(names, [](auto const& n) { return n.starts_with("tensor ") && n.find(" x pipeline ") != n.npos; }));
    pipeline::pipeline_plan const written{
        .how = {.stages = 2, .micro_batches = 8, .recompute = {false, true}, .sharded = pipeline::sharded_states::optimizer},
        .strategy = {},
        .tensor_parallel = {1, 2}};
    CHECK(pipeline::short_name(written, 16) == "tensor up to 2 x pipeline 2 x data 4, 8 micro-batches, sharded optimizer, computed again in 1 stage");
    pipeline::pipeline_plan const again{.how = {.stages = 2, .recompute = {true, true}}, .strategy = {}, .tensor_parallel = {1, 1}};
    CHECK(pipeline::short_name(again, 2) == "pipeline 2, computed again");
    CHECK(pipeline::short_name({.how = {}, .strategy = {}, .tensor_parallel = {1}}, 1) == "one device");
    auto const with_states = [](pipeline::sharded_states states) { return pipeline::short_name({.how = {.sharded = states}, .strategy = {}}, 4); };
    CHECK(with_states(pipeline::sharded_states::optimizer) == "a strategy of its own, sharded optimizer");
    CHECK(with_states(pipeline::sharded_states::gradients) == "a strategy of its own, sharded gradients");
    CHECK(with_states(pipeline::sharded_states::parameters) == "a strategy of its own, fully sharded");
    CHECK(with_states(pipeline::sharded_states::parameters_within_nodes) == "a strategy of its own, sharded within nodes");
}

TEST_CASE("partition: long sequences are split where there are fewer samples than devices") {
    auto const cluster = ps::topology::dgx_h100(1);
    auto const long_context = [&](std::int64_t batch, ps::space::space_options const& space = {}) {
        return ps::make_problem(ps::models::llama({.layers = 2,
                                                   .hidden = 2048,
                                                   .heads = 16,
                                                   .kv_heads = 8,
                                                   .feed_forward = 5632,
                                                   .sequence = 32768,
                                                   .vocabulary = 32000,
                                                   .batch = batch,
                                                   .type = ps::ops::dtype::bf16}),
                                cluster, ps::cost::roofline{cluster}, {.space = space, .simulation = {.optimizer = sim::optimizer::adam}});
    };
    auto const problem = long_context(2);
    int by_queries = 0, by_heads = 0;
    auto const found = pipeline::partition(problem, {}, unused, {}, [&](pipeline::simulated_pipeline const& e) {
        if (e.plan.context_parallel == 1) return;
        ++(e.plan.context_heads == 1 ? by_queries : by_heads);
        if (e.improves) return;
        // A replica has one sample of a micro-batch.
        CHECK(8 / e.plan.how.launching().groups() / e.plan.most_tensor_parallel() / e.plan.context_parallel * e.plan.how.micro_batches == 2);
    });
    check(problem, found);
    CHECK(by_queries > 0);
    CHECK(by_heads > 0);
    CHECK(found.best.context_parallel > 1);
    auto const name = pipeline::short_name(found.best, 8);
    CHECK(name.find(ps::text("context ", found.best.context_parallel)) != name.npos);
    CHECK((name.find(", heads ") != name.npos) == (found.best.context_heads > 1));
    CHECK(to_string(problem, found.best).find(ps::text("context parallel ", found.best.context_parallel)) != std::string::npos);
    if (support::sanitized) return;
    auto const without = pipeline::partition(problem, {}, unused, {.context_parallel = false},
                                             [&](pipeline::simulated_pipeline const& e) { CHECK(e.plan.context_parallel == 1); });
    CHECK(found.cost < without.cost);
    // Nor where the space lets nothing be split along sequences.
    (void)pipeline::partition(long_context(2, {.attribute = false}), {}, unused, {},
                              [&](pipeline::simulated_pipeline const& e) { CHECK(e.plan.context_parallel == 1); });
    // Where there are samples enough, they are split.
    CHECK(pipeline::partition(long_context(8), {}, unused).best.context_parallel == 1);
}

TEST_CASE("partition: gradients of weights fill the bubbles of few micro-batches, unless they may not") {
    ps::link_description const ethernet{{1.25e9}, std::chrono::microseconds(10)};
    auto const cluster = ps::topology::nodes({.count = 4, .gpus_per_node = 1, .device = ps::topology::v100_sxm, .nic = ethernet});
    auto const network = ps::models::gpt({.layers = 8, .hidden = 512, .heads = 8, .vocabulary = 512, .batch = 8, .type = ps::ops::dtype::f16});
    auto const problem = ps::make_problem(network, cluster, ps::cost::roofline{cluster});
    auto const all = pipeline::partition(problem, {}, unused);
    bool seen = false;
    auto const whole = pipeline::partition(problem, {}, unused, {.zero_bubble = false},
                                           [&](pipeline::simulated_pipeline const& e) { seen = seen || pipeline::cuts_backward(e.plan.how.order); });
    CHECK(all.cost <= whole.cost);
    CHECK(pipeline::cuts_backward(all.best.how.order));
    CHECK_FALSE(seen);
    // What is cut is improved step by step, too: bounds of whole backward passes do not leave it out.
    bool improved = false;
    (void)pipeline::partition(problem, {}, unused, {}, [&](pipeline::simulated_pipeline const& e) {
        improved = improved || (e.improves && pipeline::cuts_backward(e.plan.how.order));
    });
    CHECK(improved);
}

TEST_CASE("partition: on several nodes states are shared within nodes, too") {
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 4, .device = ps::topology::v100_sxm});
    auto const problem =
        ps::make_problem(ps::models::gpt({.layers = 4, .hidden = 512, .heads = 8, .vocabulary = 8192, .batch = 32, .type = ps::ops::dtype::f16}),
                         cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
    auto const shared = [&](pipeline::partition_options options) {
        std::vector<bool> seen(pipeline::all_sharded_states.size(), false);
        options.evaluations = 60;
        (void)pipeline::partition(problem, {}, unused, options,
                                  [&](pipeline::simulated_pipeline const& e) { seen[static_cast<std::size_t>(e.plan.how.sharded)] = true; });
        return seen;
    };
    CHECK(shared({}) == std::vector{true, true, true, true, true});
    CHECK(shared({.sharded_within_nodes = false}) == std::vector{true, true, true, true, false});
    CHECK(shared({.sharded_parameters = false}) == std::vector{true, true, true, false, false});
    CHECK(shared({.sharded_gradients = false}) == std::vector{true, true, false, true, true});
    CHECK(shared({.sharded_optimizer = false}) == std::vector{true, false, false, false, false});
}

TEST_CASE("partition: the first plan that fits is waited for, but not where a token ends the search") {
    auto const problem = gpt(24, 24, {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}, 2048);
    for (bool const recomputation : {true, false}) {
        auto const found = pipeline::partition(problem, {}, unused, {.time = std::chrono::nanoseconds{1}, .recomputation = recomputation});
        check(problem, found);
        CHECK(found.cost < ps::cost_traits<picoseconds>::infinity());
        CHECK(found.ended == stop_reason::time_budget);
        CHECK(found.stats.evaluations == 1);
    }
    std::stop_source stopped;
    stopped.request_stop();
    auto const found = pipeline::partition(problem, {}, unused, {.time = std::chrono::nanoseconds{1}, .stop = stopped.get_token()});
    CHECK(found.ended == stop_reason::stop_requested);
    CHECK(found.stats.evaluations <= 1);
}

TEST_CASE("partition: of stages that do not fit, only some compute again") {
    auto const network = ps::models::gpt({.layers = 16, .hidden = 1024, .heads = 16, .vocabulary = 50304, .batch = 64, .type = ps::ops::dtype::f16});
    auto device = ps::topology::v100_sxm;
    device.memory = ps::byte_count{2} << 30;
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 4, .device = device});
    auto const problem = ps::make_problem(network, cluster, ps::cost::roofline{cluster},
                                          {.simulation = {.optimizer = sim::optimizer::adam, .memory = sim::memory_policy::reject}});
    int some = 0;
    pipeline::partition_options const no_sharding{.sharded_optimizer = false};
    (void)pipeline::partition(problem, {}, unused, no_sharding, [&](pipeline::simulated_pipeline const& e) {
        auto const again = std::ranges::count(e.plan.how.recompute, true);
        some += !e.improves && again > 0 && again < static_cast<std::ptrdiff_t>(e.plan.how.recompute.size()) && e.simulator.fits();
    });
    CHECK(some > 0);
}

TEST_CASE("partition: activations wait on hosts where nothing else fits, or where it is faster than to compute them again") {
    auto const network =
        ps::models::gpt({.layers = 12, .hidden = 2048, .heads = 16, .sequence = 8192, .vocabulary = 8192, .batch = 1, .type = ps::ops::dtype::f16});
    auto const on = [&](ps::bandwidth host_rate) {
        auto device = ps::topology::v100_sxm;
        device.host_rate = host_rate;
        device.memory = ps::byte_count{14} << 30;
        auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 1, .device = device});
        return ps::make_problem(network, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
    };
    auto const problem = on(ps::topology::v100_sxm.host_rate);
    auto const with = [&](auto const& p, bool recomputation, bool offload, bool fits = true) {
        auto const found = pipeline::partition(p, {}, unused, {.recomputation = recomputation, .offload = offload});
        check(p, found);
        REQUIRE((offload || !found.best.how.offloads()));
        pipeline::pipeline_simulator simulator(p);
        (void)simulator.simulate(found.best.how, found.best.strategy);
        REQUIRE(simulator.fits() == fits);
        return found;
    };
    (void)with(problem, false, false, false);
    auto const kept = with(problem, false, true);
    CHECK(kept.best.how.offloads());
    CHECK(pipeline::short_name(kept.best, 1).find(", offloaded") != std::string::npos);
    CHECK(to_string(problem, kept.best).find(", offloads ") != std::string::npos);
    auto const again = with(problem, true, false), any = with(problem, true, true);
    CHECK(any.cost <= std::min(again.cost, kept.cost));
    CHECK(any.cost < again.cost);
    // Devices that do not say how fast they copy to hosts keep all.
    (void)with(on({}), false, true, false);
}

TEST_CASE("partition: experts of mixtures are split within stages where that pays") {
    auto const network =
        ps::models::moe({.layers = 2, .hidden = 1024, .heads = 8, .feed_forward = 8192, .sequence = 128, .vocabulary = 1000, .batch = 16});
    auto const cluster = ps::topology::dgx_h100(1);
    auto const problem = ps::make_problem(network, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
    bool split = false, alone = false; // among what is tried first
    std::uint64_t tried = 0;
    auto const found = pipeline::partition(problem, {}, unused, {.evaluations = 60}, [&](pipeline::simulated_pipeline const& e) {
        if (++tried > 8) return;
        split = split || e.plan.expert_parallel == 8;
        alone = alone || (e.plan.expert_parallel == 1 && !e.plan.tensor_parallel.empty());
    });
    CHECK(split);
    CHECK(alone);
    CHECK(found.best.expert_parallel > 1);
    CHECK(pipeline::short_name(found.best, 8).find(ps::text("experts ", found.best.expert_parallel)) != std::string::npos);
    auto whole = found.best;
    whole.strategy = ps::space::split_among_neighbours(pipeline::micro_batch(problem.graph(), whole.how.micro_batches), 8 / whole.how.stages,
                                                       {.tensor = whole.most_tensor_parallel()});
    for (std::size_t op = 0; op < whole.strategy.size(); ++op)
        whole.strategy[op].start += static_cast<std::int32_t>(whole.how.stage[op] * 8 / whole.how.stages);
    CHECK(found.cost < pipeline::pipeline_simulator(problem)(whole.how, whole.strategy));
}

TEST_CASE("partition: a start is never left for worse; observers end it and grant more") {
    auto const problem = gpt(4, 16);
    auto const best = pipeline::partition(problem, {}, unused, {.beam = 1});
    auto const from = pipeline::partition(problem, best.best, unused, {.evaluations = 1});
    CHECK(from.cost == best.cost);
    CHECK(from.best.how == best.best.how);
    CHECK(from.stats.evaluations == 1);
    auto const ended = pipeline::partition(problem, {}, unused, {}, [](pipeline::simulated_pipeline const& e) {
        return e.evaluation == 3 ? search::verdict::end : search::verdict::go_on;
    });
    CHECK(ended.reason == stop_reason::observer);
    CHECK(ended.stats.evaluations == 3);
    auto const once = pipeline::partition(problem, {}, unused, {.evaluations = 12});
    int asked = 0;
    auto const twice = pipeline::partition(problem, {}, unused, {.evaluations = 5}, search::on<search::budget_spent>([&](auto const&) {
                                               return ++asked == 1 ? std::optional(search::extension{.evaluations = 7}) : std::nullopt;
                                           }));
    CHECK(asked == 2);
    CHECK(twice.cost == once.cost);
    CHECK(twice.best.how == once.best.how);
    CHECK(twice.stats.evaluations == once.stats.evaluations);
}
