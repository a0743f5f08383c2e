#include <parsearch/sim/input/balance.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/on_devices.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>
#include <parsearch/topology/cluster_builder.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

/// Nodes of four A100 and of four H100, with NVLink inside and 400 Gb/s for each node.
topology::cluster mixed(std::uint32_t slow, std::uint32_t fast) {
    topology::cluster_builder b;
    auto const core = b.add_switch("core");
    for (std::uint32_t node = 0; node < slow + fast; ++node) {
        auto const inside = b.add_switch(text("node ", node));
        for (int i = 0; i < 4; ++i)
            (void)b.add_duplex_link(b.add_device(node < slow ? topology::a100_sxm : topology::h100_sxm, node), inside, {250e9},
                                    std::chrono::microseconds{2});
        (void)b.add_duplex_link(inside, core, {50e9}, std::chrono::microseconds{4});
    }
    return b.build();
}

template <class Model> double samples_per_second(Model const& model, topology::cluster const& on, std::int64_t batch, sim::simulation_options o) {
    auto const p = make_problem(model, on, cost::roofline{on}, {.simulation = o});
    return static_cast<double>(batch) / to_seconds(p.simulator()(data_parallel(p)));
}

/// What a simulation has for the forward pass of each shard is what the oracle says of the largest on its kind of device.
void check_times(parallelization const& p, space::flat_strategy const& s) {
    auto simulator = p.simulator();
    (void)simulator(s);
    auto const& w = *p.workload();
    for (std::uint32_t op = 0; op < p.size(); ++op) {
        auto const& operation = p.graph().operations[op];
        auto const cut = ops::cut_dim(operation, s[op].degrees());
        if (!cut || operation.work == ops::work_class::view) continue;
        auto const& plan = simulator.plan().operators[op];
        std::vector<std::int64_t> most(2, 0);
        std::int64_t all = 0;
        for (std::int64_t n = 0; n < s[op].shards(); ++n) {
            auto const box = ops::shard_box(operation, s[op].degrees(), n);
            auto const kind = w.topology.kind[static_cast<std::size_t>(s[op].device(n))];
            most[kind] = std::max(most[kind], box[*cut].size());
            all += box[*cut].size();
        }
        CHECK(all == operation.dims[*cut].extent * (s[op].shards() / s[op].degree[*cut]));
        for (std::uint32_t kind = 0; kind < 2; ++kind) {
            if (most[kind] == 0) continue;
            auto const part = ops::on_samples(operation, {.n = operation.dims[*cut].extent, .taken = most[kind]}, "");
            std::vector<std::int32_t> degrees(s[op].degrees().begin(), s[op].degrees().end());
            degrees[*cut] = 1;
            auto const device = static_cast<std::uint32_t>(std::ranges::find(w.topology.kind, kind) - w.topology.kind.begin());
            CHECK(plan.forward[kind] == w.oracle.shard_time(ops::work_of(part, degrees, ops::pass::forward), device).count());
        }
    }
}
} // namespace

TEST_CASE("balanced: data parallelism on A100 and H100 does nine tenths of what both do by themselves") {
    auto const check = [](auto const& model, std::int64_t batch) {
        for (auto const& [slow, fast] : {std::pair{1u, 1u}, {2u, 1u}, {1u, 3u}}) {
            CAPTURE(slow);
            CAPTURE(fast);
            auto const together = mixed(slow, fast);
            // As if the batch of each were its share of what is done together: what the devices do per second, without any overlap lost.
            auto const a = samples_per_second(model, mixed(slow, 0), batch, {}), h = samples_per_second(model, mixed(0, fast), batch, {});
            auto const equal = samples_per_second(model, together, batch, {});
            auto const balanced = samples_per_second(model, together, batch, {.balanced = true});
            MESSAGE("A100 ", a, ", H100 ", h, ", together ", equal, ", balanced ", balanced, ": ", balanced / (a + h), " of the sum");
            CHECK(balanced >= 0.9 * (a + h));
            CHECK(balanced > equal);
        }
    };
    check(models::gpt({.layers = 4, .hidden = 1024, .heads = 16, .sequence = 512, .batch = 768, .type = ops::dtype::bf16}), 768);
    check(models::resnet({.batch = 3072, .type = ops::dtype::bf16}), 3072);
}

TEST_CASE("balanced: a device takes as long as any other, however few they are") {
    graph::operator_graph g;
    g.add("fc", ops::linear{.out = 8, .bias = false}, g.input("x", {{10'000, 8}}));
    for (double const slow : {0.95, 0.9, 0.7, 0.45, 0.25, 0.1})
        for (std::uint32_t const devices : {2u, 4u, 6u}) {
            CAPTURE(slow);
            CAPTURE(devices);
            auto topology = support::mesh(devices, 1000);
            for (std::uint32_t d = 1; d < devices; d += 2) topology.device[d].kind = "slow";
            auto const oracle = [slow](ops::shard_work const& w, std::uint32_t d) {
                return w.pass == ops::pass::update ? picoseconds{0} : picoseconds{static_cast<std::int64_t>(w.flops * 1000 / (d % 2 ? slow : 1))};
            };
            auto const time = [&](bool balanced) {
                auto const p =
                    make_problem(g, topology, oracle, {.space = {.uneven = true}, .simulation = {.training = false, .balanced = balanced}});
                return static_cast<double>(p.simulator()(data_parallel(p)).count());
            };
            double const ideal = 2.0 * 10'000 * 64 * 1000 / (devices / 2 * (1 + slow));
            CHECK(time(true) <= 1.002 * ideal);
            CHECK(time(true) < time(false));
        }
}

TEST_CASE("balanced: pins are taken, memory is that of the largest shard, parts of a cluster divide anew") {
    auto const cluster = mixed(1, 1);
    auto const network = models::gpt({.layers = 1, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128, .batch = 64, .dropout = 0});
    problem_options const options{.simulation = {.balanced = true}};
    constraints_of<graph::operator_graph, topology::cluster> pins;
    pins.pin([](auto, ops::operation const& op) { return op.kind == "gelu"; }, "s8");
    auto const p = make_problem(network, cluster, cost::roofline{cluster}, options, pins);
    auto const s = data_parallel(p);
    CHECK(!p.space().first_outside(s));
    auto const gelu = static_cast<std::size_t>(std::ranges::find(p.graph().operations, "gelu", &ops::operation::kind) - p.graph().operations.begin());
    auto const& op = p.graph().operations[gelu];
    REQUIRE(ops::cut_dim(op, s[gelu].degrees()) == 0u);
    std::int64_t most = 0, least = 64;
    for (std::int64_t n = 0; n < 8; ++n) {
        auto const size = ops::shard_box(op, s[gelu].degrees(), n)[0].size();
        most = std::max(most, size);
        least = std::min(least, size);
    }
    CHECK(most > least);
    CHECK(sim::memory_of(op, s[gelu].degrees()).outputs.front() == most * 32 * 256 * 4);
    // The four A100 alone are equal.
    std::vector<std::size_t> const first{0, 1, 2, 3};
    auto const part = on_devices(make_problem(network, cluster, cost::roofline{cluster}, options), first);
    CHECK(!ops::cut_dim(part.graph().operations[gelu], data_parallel(part)[gelu].degrees()));
}

TEST_CASE("balanced: both simulators agree in every task, and time the shards as the oracle does") {
    std::size_t cut = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(300u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto options = support::random_options(rng);
        options.balanced = true;
        auto const topology = support::random_topology(rng, {.devices = 4, .kinds = true});
        auto const p = make_problem(support::random_network(rng), topology, support::mixed_oracle{}, {{.uneven = true}, options});
        auto simulator = p.simulator();
        auto evaluator = p.evaluator();
        auto s = data_parallel(p);
        check_times(p, s);
        CHECK(evaluator.reset(s) == simulator(s));
        for (int step = 0; step < 12; ++step) {
            auto const op = uniform_index(rng, p.size());
            change<space::configuration> const c{static_cast<std::uint32_t>(op),
                                                 support::random_configuration(rng, p.graph().operations[op], p.space()[op], 4, false)};
            auto const cost = evaluator.propose(std::span(&c, 1), cost_traits<picoseconds>::infinity());
            REQUIRE(cost);
            s[op] = c.configuration;
            REQUIRE(*cost == simulator(s));
            evaluator.commit();
            REQUIRE(support::simulation_difference(evaluator, simulator) == "");
            cut += ops::cut_dim(p.graph().operations[op], s[op].degrees()).has_value();
        }
        check_times(p, s);
        sim::planner planner(p.workload());
        CHECK(sim::work_bound(planner, p.space()) <= simulator(s));
    }
    CHECK(cut > support::cases(300u) / 3);
}

TEST_CASE("balanced: exact search finds what enumeration finds") {
    std::size_t proved = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto options = support::random_options(rng);
        options.balanced = true;
        auto const topology = support::random_topology(rng, {.devices = 2, .kinds = true});
        auto const p = make_problem(support::random_network(rng, 3), topology, support::mixed_oracle{}, {{.uneven = true}, options});
        double all = 1;
        for (std::size_t op = 0; op < p.size(); ++op) all *= static_cast<double>(p.space()[op].size());
        if (all > 20'000) continue;
        auto const start = data_parallel(p);
        auto const exact = search::exact(p, start, rng);
        REQUIRE(exact.reason == stop_reason::proved_optimal);
        ++proved;
        CHECK(exact.cost == search::exhaustive(p, start, rng).cost);
    }
    CHECK(proved > support::cases(60u) / 4);
}

TEST_CASE("balanced: equal devices are as before, and pipelines are refused") {
    auto const network = models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 128, .batch = 16});
    auto const equal = mixed(0, 1);
    auto const p = make_problem(network, equal, cost::roofline{equal}),
               q = make_problem(network, equal, cost::roofline{equal}, {.simulation = {.balanced = true}});
    CHECK(p.graph().operations == q.graph().operations);
    CHECK(support::refusal([&] { return pipeline::pipeline_simulator(q).memory(); }) ==
          "pipeline: option 'balanced' of the simulation is true: stages and micro-batches divide samples evenly");
}
