#include <parsearch/pipeline/plans/one_replica.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
namespace topology = parsearch::topology;

namespace {
topology::cluster nodes(std::uint32_t count, std::uint32_t gpus, topology::device_spec const& device = topology::h100_sxm) {
    return topology::nodes({.count = count, .gpus_per_node = gpus, .device = device});
}
ps::graph::operator_graph small_gpt(std::int64_t batch) {
    return ps::models::gpt({.layers = 2, .hidden = 128, .heads = 4, .sequence = 32, .vocabulary = 200, .batch = batch, .type = ps::ops::dtype::bf16});
}
ps::parallelization problem_of(ps::graph::operator_graph const& g, topology::cluster const& c, sim::simulation_options const& o) {
    return ps::make_problem(g, c, ps::cost::roofline{c}, {.simulation = o});
}
std::vector<double> bytes(std::vector<sim::memory_use> const& use) {
    std::vector<double> out;
    for (auto const& u : use) out.push_back(static_cast<double>(u.total()));
    std::ranges::sort(out);
    return out;
}
// Those of one replica, as often as there are replicas.
std::vector<double> repeated(std::vector<double> const& one, std::uint32_t replicas) {
    std::vector<double> out;
    for (auto const b : one) out.insert(out.end(), replicas, b);
    return out;
}
void check_same(pipeline::pipeline_simulator& one, pipeline::pipeline_simulator& whole, ps::parallelization const& problem,
                pipeline::pipeline_plan const& plan, std::uint32_t replicas) {
    auto const all = pipeline::on_all_replicas(problem, plan, replicas);
    REQUIRE(one(plan.how, plan.strategy) == whole(all.how, all.strategy));
    REQUIRE(one.simulate(plan.how, plan.strategy) == whole.simulate(all.how, all.strategy));
    REQUIRE(repeated(bytes(one.memory()), replicas) == bytes(whole.memory()));
    auto const a = one.traffic(), b = whole.traffic();
    for (std::size_t k = 0; k < a.size(); ++k)
        REQUIRE((k == static_cast<std::size_t>(sim::traffic_kind::weight_gradient) ? a[k] : replicas * a[k]) == doctest::Approx(b[k]).epsilon(1e-12));
}
} // namespace

TEST_CASE("one_replica: any strategy costs what it costs on all devices, under all movements and disciplines") {
    for (auto const discipline : {sim::discipline::fifo, sim::discipline::in_order})
        for (auto const movement : {sim::movement::pairwise, sim::movement::collective, sim::movement::grouped})
            for (int model = 0; model < 4; ++model) {
                std::uint64_t const seed = 10 * static_cast<std::uint64_t>(model) + static_cast<std::uint64_t>(movement);
                INFO("model ", model, ", ", name_of(movement), ", ", name_of(discipline), ", seed ", seed);
                std::mt19937_64 rng(seed);
                auto const cluster = model % 2 == 0 ? nodes(4, 2) : nodes(4, 4, topology::k80);
                auto const g = model == 0   ? small_gpt(32)
                               : model == 1 ? ps::models::inception_v3({.batch = 32})
                               : model == 2 ? ps::models::nmt({.steps = 3, .batch = 32})
                                            : ps::models::moe({.layers = 2, .hidden = 64, .batch = 32});
                auto const problem = problem_of(g, cluster, {.movement = movement, .discipline = discipline, .optimizer = sim::optimizer::adam});
                auto const part = pipeline::one_replica(problem, 2);
                auto one = part.evaluator(), whole = problem.evaluator();
                for (int n = 0; n < support::cases(12); ++n) {
                    auto s = ps::data_parallel(part);
                    for (std::size_t op = 0; op < part.size(); ++op) {
                        auto const& space = part.space().of(op);
                        bool const changes = n % 3 == 0 || ps::uniform_index(rng, 4) == 0;
                        if (changes && part.graph().operations[op].work != ps::ops::work_class::source)
                            s[op] = space[ps::uniform_index(rng, space.size())];
                    }
                    auto const all = pipeline::on_all_replicas(problem, {.how = pipeline::unpipelined(part.graph()), .strategy = s}, 2);
                    REQUIRE(one(s) == whole(all.strategy));
                }
            }
}

TEST_CASE("one_replica: plans with stages, micro-batches, shared states and recomputation cost what they cost on all devices") {
    int plans = 0;
    for (std::uint32_t const gpus : {2U, 4U}) {
        auto const problem = problem_of(small_gpt(96), nodes(8, gpus), {.optimizer = sim::optimizer::adam});
        pipeline::pipeline_simulator whole(problem);
        for (std::uint32_t const replicas : {2U, 4U}) {
            auto const part = pipeline::one_replica(problem, replicas);
            pipeline::detail::stage_builder build(part);
            pipeline::pipeline_simulator one(part);
            for (std::uint32_t const groups : {1U, 2U, 4U})
                for (std::uint32_t const tensor : {1U, 2U})
                    for (std::uint32_t const micro_batches : {1U, 3U})
                        for (auto const states : pipeline::all_sharded_states) {
                            auto const devices = part.topology().size();
                            if (devices % (groups * tensor) != 0 || 96 / replicas / micro_batches % (devices / groups / tensor) != 0) continue;
                            INFO(gpus, " GPUs, ", replicas, " replicas, ", groups, " stages, tensor ", tensor, ", ", micro_batches,
                                 " micro-batches, shares ", listed(states));
                            auto c = build.balanced(groups, 1, micro_batches, {.tensor = tensor});
                            c.recompute.assign(groups, plans % 2 == 0);
                            c.segments = 2;
                            c.share(states);
                            check_same(one, whole, problem, build.plan(c), replicas);
                            ++plans;
                        }
        }
    }
    CHECK(plans > 100);
}

TEST_CASE("one_replica: any strategy of stages costs what it costs on all devices, shared weights between them or not") {
    for (bool const tied : {false, true})
        for (std::uint32_t const replicas : {2U, 3U}) {
            std::mt19937_64 rng(replicas);
            ps::models::llama_options const options{.layers = 2,
                                                    .hidden = 64,
                                                    .heads = 4,
                                                    .kv_heads = 2,
                                                    .feed_forward = 96,
                                                    .sequence = 16,
                                                    .vocabulary = 100,
                                                    .tied = tied,
                                                    .batch = 48};
            auto const g = ps::models::llama(options);
            auto const problem = problem_of(g, nodes(4 * replicas, 2), {});
            auto const part = pipeline::one_replica(problem, replicas);
            pipeline::detail::stage_builder build(part);
            pipeline::pipeline_simulator one(part), whole(problem);
            auto const plan = build.plan(build.balanced(2, 1, 2, {}));
            auto const space = ps::make_problem(pipeline::micro_batch(part.graph(), 2), nodes(2, 2), ps::cost::roofline{nodes(2, 2)}).space();
            for (int n = 0; n < support::cases(40); ++n) {
                INFO(replicas, " replicas, ", tied ? "tied" : "not tied", ", plan ", n);
                auto other = plan;
                for (std::size_t op = 0; op < part.size(); ++op) {
                    if (part.graph().operations[op].work == ps::ops::work_class::source || ps::uniform_index(rng, 2) == 0) continue;
                    other.strategy[op] = space.of(op)[ps::uniform_index(rng, space.of(op).size())];
                    other.strategy[op].start += 4 * static_cast<std::int32_t>(plan.how.stage[op]);
                }
                check_same(one, whole, problem, other, replicas);
            }
        }
}

TEST_CASE("one_replica: replicas of replicas, other devices, and what is found there") {
    auto const problem = problem_of(small_gpt(64), nodes(8, 2, topology::a100_sxm), {});
    auto const twice = pipeline::one_replica(pipeline::one_replica(problem, 2), 2);
    CHECK(twice.options().replicas == 4);
    CHECK(twice.topology() == pipeline::one_replica(problem, 4).topology());
    CHECK(twice.topology().size() == 4);
    CHECK(twice.topology().links.size() == problem.topology().links.size() / 4);
    auto const part = pipeline::one_replica(problem, 4);
    std::mt19937_64 rng{1};
    auto const found = pipeline::partition(part, {}, rng, {.evaluations = 30});
    auto const plan = pipeline::on_all_replicas(problem, found.best, 4);
    pipeline::pipeline_simulator whole(problem);
    CHECK(whole(plan.how, plan.strategy) == found.cost);
    // Parts of samples side by side, by strides.
    auto const all = pipeline::on_all_replicas(problem, {.how = pipeline::unpipelined(part.graph()), .strategy = ps::data_parallel(part)}, 4);
    CHECK(all.strategy == ps::data_parallel(problem));
    CHECK(pipeline::on_all_replicas(problem, {.how = pipeline::unpipelined(problem.graph()), .strategy = ps::data_parallel(problem)}, 1).strategy ==
          ps::data_parallel(problem));
}

TEST_CASE("one_replica: what cannot be told by a part is refused") {
    auto const refused = [](ps::parallelization const& p, std::uint32_t replicas, char const* why) {
        CHECK_THROWS_WITH_AS((void)pipeline::one_replica(p, replicas), doctest::Contains(why), ps::invalid_input);
        CHECK(doctest::Contains(why).checkWith(pipeline::not_replicated(p, replicas).c_str()));
    };
    auto const problem = problem_of(small_gpt(36), nodes(8, 2), {});
    CHECK(pipeline::not_replicated(problem, 4).empty());
    refused(problem, 0, "0 replicas: must be at least 1");
    refused(problem, 3, "3 replicas on 8 nodes: must divide them");
    refused(problem, 8, "8 replicas on 8 nodes: must divide them, and leave each replica two at least");
    ps::problem_options options;
    options.space.uneven = true;
    auto const cluster = nodes(8, 2);
    refused(ps::make_problem(small_gpt(32), cluster, ps::cost::roofline{cluster}, options), 2, "space option uneven is true");
    options.space.uneven = false;
    options.space.allows = [](auto, auto const&, auto) { return true; };
    refused(ps::make_problem(small_gpt(32), cluster, ps::cost::roofline{cluster}, options), 2, "constraints say how operators are split");
    ps::graph::operator_graph whole;
    whole.add("of all", ps::ops::embedding{.entries = 10, .features = 4}, whole.input("x", {{1, 4}, ps::ops::dtype::i32}));
    refused(problem_of(whole, cluster, {}), 1, "operator 'of all' (embedding) has no samples");
    refused(problem_of(small_gpt(34), nodes(8, 2), {}), 4, "34 samples over 4 replicas: these must divide them");
    refused(problem_of(small_gpt(32), nodes(1, 8), {}), 1, "there is one, and a part of a cluster has two at least");
    CHECK(pipeline::not_replicated(problem_of(small_gpt(24), topology::summit(4), {}), 2).empty());
    refused(problem_of(small_gpt(32), nodes(4, 2), {.synchronisation = sim::synchronisation::parameter_server}), 2,
            "synchronisation is parameter_server");
    auto const part = pipeline::one_replica(problem, 4);
    CHECK_THROWS_WITH_AS((void)pipeline::on_all_replicas(problem, {.how = pipeline::unpipelined(part.graph()), .strategy = {}}, 4),
                         doctest::Contains("a strategy of 0 configurations"), ps::invalid_input);
    CHECK_THROWS_WITH_AS(
        (void)pipeline::on_all_replicas(problem, {.how = pipeline::unpipelined(part.graph()), .strategy = ps::data_parallel(problem)}, 4),
        doctest::Contains("device"), ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)pipeline::on_all_replicas(problem, {}, 0), doctest::Contains("0 replicas: must be at least 1"), ps::invalid_input);
    auto halves = pipeline::pipeline_plan{.how = pipeline::unpipelined(part.graph()), .strategy = ps::data_parallel(part)};
    halves.how.micro_batches = 4; // of 9 samples of a replica
    CHECK_THROWS_WITH_AS((void)pipeline::on_all_replicas(problem, halves, 4), doctest::Contains("samples in all, must divide them"),
                         ps::invalid_input);
}
