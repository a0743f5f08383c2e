#include <parsearch/io/display/explanation.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stop_token>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/interruption.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {
parallelization layers(sim::simulation_options const& simulation = {}) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("x", {{64, 32}});
    for (int i = 1; i <= 3; ++i) x = g.add(text("fc", i), ops::linear{.out = 32}, x);
    auto const cluster = topology::p100_cluster(1);
    return make_problem(g, cluster, cost::roofline{cluster}, {.simulation = simulation});
}

pipeline::pipeline_plan plain(parallelization const& p, space::flat_strategy s) {
    return {.how = pipeline::unpipelined(p.graph()), .strategy = std::move(s)};
}

// The cost of `plan` where `ops` have `c`, by another simulator.
picoseconds cost_of(parallelization const& p, pipeline::pipeline_plan plan, std::vector<std::size_t> const& ops, space::configuration const& c) {
    for (auto const op : ops) plan.strategy[op] = c;
    if (plan.how.plain()) return p.simulator()(plan.strategy);
    return pipeline::pipeline_simulator(p)(plan.how, plan.strategy);
}

// Prices every configuration on `devices` and holds the explanation to that.
void check_all(parallelization const& p, pipeline::pipeline_plan const& plan, std::size_t op, std::vector<bool> const& devices) {
    constexpr std::size_t every = 100'000;
    auto const told = io::explain(p, plan, op, {.listed = every, .priced = every});
    auto const part = pipeline::micro_batch_problem(p, plan.how.micro_batches);
    auto const now = cost_of(p, plan, {}, {});
    CHECK(told.op == op);
    CHECK(told.chosen.configuration == plan.strategy[op]);
    CHECK(told.chosen.alone.cost == now);
    bool const several = told.alike.size() > 1;
    std::size_t count = 0;
    io::change_counts alone, together;
    std::vector<picoseconds> least(part.space().of(op).splits(), cost_traits<picoseconds>::infinity());
    for (auto const& c : part.space()[op]) {
        bool inside = !(c == plan.strategy[op]);
        for (std::int64_t n = 0; n < c.shards(); ++n) inside = inside && devices[static_cast<std::size_t>(c.device(n))];
        if (!inside) continue;
        ++count;
        auto const a = cost_of(p, plan, {op}, c), b = several ? cost_of(p, plan, told.alike, c) : a;
        alone.less += a < now;
        alone.same += a == now;
        together.less += several && b < now;
        together.same += several && b == now;
        auto& best = least[part.space().of(op).split_of(c)];
        best = std::min({best, a, b});
    }
    CHECK(told.configurations == count);
    CHECK(told.priced == count);
    CHECK(told.alone == alone);
    CHECK(told.together == together);
    CHECK(told.others.size() == told.splits);
    picoseconds before{};
    for (auto const& o : told.others) {
        auto const cost = std::min(o.alone.cost, o.alike ? o.alike->cost : o.alone.cost);
        CHECK(o.alike.has_value() == several);
        CHECK(o.alone.cost == cost_of(p, plan, {op}, o.configuration));
        if (several) CHECK(o.alike->cost == cost_of(p, plan, told.alike, o.configuration));
        CHECK(cost == least[part.space().of(op).split_of(o.configuration)]);
        CHECK(before <= cost);
        before = cost;
    }
}
} // namespace

TEST_CASE("explanation: of a network by hand") {
    auto const p = layers();
    auto const told = io::explain(p, plain(p, data_parallel(p)), 2);
    CHECK(told.alike == std::vector<std::size_t>{1, 2, 3});
    CHECK(told.chosen.alone.time == simulate(p, data_parallel(p)).makespan);
    CHECK(told.chosen.forward > picoseconds::zero());
    CHECK(told.chosen.backward > told.chosen.forward);
    CHECK(!told.chosen.alike);
    // All that split samples and features, each placed where it costs least.
    CHECK(told.splits == told.others.size());
    CHECK(told.priced == told.configurations);
    auto const whole = std::find_if(told.others.begin(), told.others.end(), [](auto const& o) { return o.configuration.shards() == 1; });
    REQUIRE(whole != told.others.end());
    CHECK(whole->alone.moved > 0);
    CHECK(whole->alike->moved == 0); // all on one device
    CHECK(whole->forward > told.chosen.forward);
    CHECK(support::refusal([&] { return io::explain(p, plain(p, data_parallel(p)), 0).op; }) ==
          "operator number 0 is to be explained: must be one with tasks, of 4");
    CHECK(support::refusal([&] { return io::explain(p, plain(p, {}), 1).op; }) ==
          "a plan of 0 configurations: the problem has 4 operators, must be one each");
}

TEST_CASE("explanation: as every configuration priced by itself") {
    std::mt19937_64 rng(7);
    std::vector<bool> const all(4, true);
    for (auto const memory : {sim::memory_policy::penalise, sim::memory_policy::reject})
        for (int i = 0; i < 4; ++i) {
            auto const p = layers({.memory = memory});
            auto s = data_parallel(p);
            for (std::size_t op = 1; op < p.size(); ++op)
                if (i > 0) s[op] = p.space()[op][static_cast<std::uint32_t>(uniform_index(rng, p.space().of(op).size()))];
            for (std::size_t op = 1; op < p.size(); ++op) check_all(p, plain(p, s), op, all);
        }
}

TEST_CASE("explanation: of a pipeline, on the devices of the operator's stage") {
    auto const p = layers();
    pipeline::pipeline_plan plan{.how = {.stage = {0, 0, 0, 1}, .stages = 2, .micro_batches = 4}, .strategy = {}};
    auto const part = pipeline::micro_batch_problem(p, 4);
    for (std::size_t op = 0; op < p.size(); ++op)
        plan.strategy.push_back(op == 0 ? space::configuration{} : part.space().of(op).nearest(space::split_samples(part.graph().operations[op], 2)));
    plan.strategy[0] = space::whole(part.graph().operations[0]);
    plan.strategy[3].start = 2;
    check_all(p, plan, 1, {true, true, false, false});
    check_all(p, plan, 3, {false, false, true, true});
    plan.how.sharded = pipeline::sharded_states::optimizer;
    check_all(p, plan, 2, {true, true, false, false});
}

TEST_CASE("explanation: lists the cheapest, and prices no more than asked") {
    auto const cluster = topology::p100_cluster(1);
    auto const p = make_problem(models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 100, .batch = 8}), cluster,
                                cost::roofline{cluster});
    auto const plan = plain(p, data_parallel(p));
    auto const op = static_cast<std::size_t>(std::find(p.graph().names.begin(), p.graph().names.end(), "block2.attention") - p.graph().names.begin());
    constexpr std::size_t every = 100'000;
    auto const all = io::explain(p, plan, op, {.listed = every, .priced = every});
    CHECK(all.alike.size() == 2);
    for (std::size_t const listed : {0U, 1U, 3U, 8U}) {
        auto const some = io::explain(p, plan, op, {.listed = listed, .priced = every});
        CHECK(some.alone == all.alone);
        CHECK(some.together == all.together);
        REQUIRE(some.others.size() == std::min(listed, all.others.size()));
        for (std::size_t i = 0; i < listed; ++i) {
            auto const least = [](auto const& o) { return std::min(o.alone.cost, o.alike->cost); };
            CHECK(least(some.others[i]) == least(all.others[i]));
        }
    }
    auto const few = io::explain(p, plan, op, {.priced = 5});
    CHECK(few.priced == 5);
    CHECK(few.configurations == all.configurations);
    CHECK(!few.others.empty());
}

TEST_CASE("explanation: stops when it is asked to") {
    auto const p = layers();
    auto const plan = plain(p, data_parallel(p));
    std::stop_source stop;
    stop.request_stop();
    auto const told = io::explain(p, plan, 2, {.price = stop.get_token()});
    CHECK(told.priced == 0);
    CHECK(told.others.empty());
    CHECK(told.chosen.alone.time > picoseconds::zero());
    CHECK_THROWS_AS((void)io::explain(p, plan, 2, {.stop = stop.get_token()}), interrupted);
}
