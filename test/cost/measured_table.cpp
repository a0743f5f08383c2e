#include <parsearch/cost/measured_table.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/memoized.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/product.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {

topology::cluster mixed() {
    topology::cluster_builder b;
    auto const first = b.add_device(topology::k80), second = b.add_device(topology::h100_sxm);
    b.add_duplex_link(first, second, {1e9}, picoseconds{1});
    return b.build();
}
using handle = device_handle_t<topology::cluster>;
ops::shard_work work(ops::operation const& op, std::vector<std::int32_t> const& degrees, ops::pass pass = ops::pass::forward) {
    return ops::work_of(op, degrees, pass);
}
auto const flops_only = [](ops::shard_work const& w, handle) { return picoseconds{static_cast<std::int64_t>(w.flops)}; };
} // namespace

static_assert(CostOracle<measured_table<handle>, ops::shard_work, handle>);
static_assert(CostOracle<measured_table<handle, roofline>, ops::shard_work, handle>);
static_assert(!CostOracle<measured_table<std::string, roofline>, ops::shard_work, std::string>); // the fallback wants numbers
static_assert(HasCollectiveTime<measured_table<handle, roofline>>);
static_assert(!HasCollectiveTime<measured_table<handle>>);

TEST_CASE("measured: what was measured, by kind of device; the fallback for the rest") {
    auto const c = mixed();
    auto const op = support::product(64, 32, 16);
    std::vector<std::int32_t> const whole{1, 1, 1}, halves{2, 1, 1};
    profile p;
    p.add({.device = topology::k80.kind, .kernel = kernel_of(work(op, halves)), .time = picoseconds{7}});
    p.add({.device = topology::h100_sxm.kind, .kernel = kernel_of(work(op, whole)), .time = picoseconds{3}});
    measured_table const oracle(p, c, flops_only);
    CHECK(shard_time(oracle, work(op, halves), handle{0}) == picoseconds{7});
    CHECK(shard_time(oracle, work(op, whole), handle{1}) == picoseconds{3});
    CHECK(oracle.statistics().hits() == 2);
    CHECK(oracle.statistics().misses() == 0);
    CHECK(shard_time(oracle, work(op, halves), handle{1}) == picoseconds{32 * 32 * 16 * 2});
    CHECK(shard_time(oracle, work(op, halves), handle{1}) == picoseconds{32 * 32 * 16 * 2});
    CHECK(shard_time(oracle, work(op, whole, ops::pass::backward), handle{1}) == picoseconds{4 * 64 * 32 * 16});
    CHECK(oracle.statistics().of(cost_source::fallback) == 3);
    CHECK(oracle.missing() == std::vector<missing_kernel>{{topology::h100_sxm.kind, kernel_of(work(op, halves)), 2},
                                                          {topology::h100_sxm.kind, kernel_of(work(op, whole, ops::pass::backward)), 1}});
    // Another split of another operator that runs the same kernel is known too.
    CHECK(shard_time(oracle, work(support::product(128, 32, 16), {4, 1, 1}), handle{0}) == picoseconds{7});
    CHECK(oracle.table() == p);
}

TEST_CASE("measured: without a fallback what is missing is refused by name") {
    auto const op = support::product(64, 32, 16);
    profile p;
    p.add({.device = topology::k80.kind, .kernel = kernel_of(work(op, {1, 1, 1})), .time = picoseconds{7}});
    measured_table const oracle(p, mixed());
    CHECK(shard_time(oracle, work(op, {1, 1, 1}), handle{0}) == picoseconds{7});
    CHECK(support::refusal([&] {
              return shard_time(oracle, work(op, {2, 1, 1}), handle{0});
          }) == "kernel 'product forward m=32 n=32 k=16 (x:f32[m,k] w:f32[n,k] -> y:f32[m,n])' was not measured on '" + topology::k80.kind +
                    "', nor enough like it: must be in the profile where there is no fallback");
    CHECK(oracle.statistics().misses() == 1);
    CHECK(support::refusal([&] { return shard_time(oracle, work(op, {1, 1, 1}), handle{9}); }).find("does not name") != std::string::npos);
    CHECK(transfer_time(oracle, 1000, {{1e9}, picoseconds{1}}) == picoseconds{1'000'001});
    // Views, sources and work of nothing are never asked for.
    auto view = op;
    view.work = ops::work_class::view;
    CHECK(shard_time(oracle, work(view, {1, 1, 1}), handle{0}) == picoseconds{0});
    CHECK(shard_time(oracle, ops::shard_work{.op = &op}, handle{0}) == picoseconds{0});
}

TEST_CASE("measured: a profile of other devices is refused, an empty one is not") {
    auto const op = support::product(64, 32, 16);
    profile p;
    p.add({.device = "abacus", .kernel = kernel_of(work(op, {1, 1, 1})), .time = picoseconds{7}});
    CHECK(support::refusal([&] { return measured_table(p, topology::dgx_a100(1)); }) ==
          "the profile has 1 kernels on 'abacus' and the like: must have some on a kind of device of the topology, '" +
              topology::dgx_a100(1).describe_device(0).kind + "'");
    CHECK(measured_table({}, mixed(), flops_only).table().empty());
}

TEST_CASE("measured: a profile of everything that a plan asks for gives the same plan as the oracle it was taken of") {
    auto const cluster = topology::dgx_a100(1);
    auto const model = models::mlp({.features = 256, .hidden = {512, 256}, .batch = 64});
    roofline const exact(cluster);
    measured_table const first({}, cluster, exact);
    auto const problem = make_problem(model, cluster, first);
    auto const expected = simulate(problem, data_parallel(problem)).makespan;
    CHECK(expected == simulate(make_problem(model, cluster, exact), data_parallel(problem)).makespan);
    // The problem's evaluators are copies: their misses show here.
    CHECK(first.statistics().hits() == 0);
    REQUIRE_FALSE(first.missing().empty());

    // "Measured", everything takes the same.
    profile p;
    for (auto const& m : first.missing()) p.add({.device = m.device, .kernel = m.kernel, .time = std::chrono::microseconds(100)});
    measured_table const second(p, cluster, no_fallback{}, {.interpolate = false});
    auto const again = make_problem(model, cluster, second);
    auto const r = simulate(again, data_parallel(again));
    CHECK(second.statistics().misses() == 0);
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t)
        if (r.tasks.resource[t] < 8 && r.tasks.duration[t] != 0) CHECK(r.tasks.duration[t] == 100'000'000);
    // Remembered, it answers the same and is asked less.
    memoized const quick(measured_table(p, cluster), kind_of_device(cluster));
    auto const quickly = make_problem(model, cluster, quick);
    CHECK(simulate(quickly, data_parallel(quickly)).makespan == r.makespan);
    // What the profile lacks is refused with operator and pass.
    auto const split = tensor_parallel(again, 8);
    CHECK(support::refusal([&] { return simulate(again, split); }).find("was not measured on") != std::string::npos);
    CHECK(support::refusal([&] { return simulate(again, split); }).find("operator 'fc1' (linear), forward on a device of kind") == 0);
    // A fallback that was made for another topology says so.
    CHECK(support::refusal([&] { return make_problem(model, topology::dgx_a100(2), first); }).find("must be the same topology") != std::string::npos);
}

TEST_CASE("threads: copies of a measured table may be asked at once") {
    auto const op = support::product(64, 32, 16);
    measured_table const oracle({}, mixed(), flops_only);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([copy = oracle, &op] {
            for (int k = 0; k < 200; ++k) (void)shard_time(copy, work(op, {1 << k % 5, 1, 1}), handle{0});
        });
    for (auto& t : threads) t.join();
    CHECK(oracle.statistics().misses() == 800);
    REQUIRE(oracle.missing().size() == 5);
    for (auto const& m : oracle.missing()) CHECK(m.asked == 160);
}

TEST_CASE("measured: every answer knows what it rests on, and so do the counts") {
    auto const c = mixed();
    auto const op = support::product(1024, 256, 256);
    auto const degree = [&](std::int32_t m, std::int32_t n = 1, ops::pass pass = ops::pass::forward) { return work(op, {m, n, 1}, pass); };
    profile p;
    // Forward at 1, 4 and 16 parts: 1 ms per 512 rows and 10 us. Of the kernels of another operation flops and bytes are known.
    for (std::int32_t const m : {1, 4, 16})
        p.add({.device = topology::k80.kind, .kernel = kernel_of(degree(m)), .time = std::chrono::microseconds(2000 / m + 10)});
    for (int i = 0; i < 5; ++i) {
        kernel k{.op = "einsum", .pass = ops::pass::forward, .dims = {{"a", 1 << i}}, .operands = "x:f32[a] -> y:f32[a]"};
        p.add({.device = topology::k80.kind,
               .kernel = std::move(k),
               .time = std::chrono::microseconds(10 + (1 << i)),
               .flops = 1e6 * (1 << i),
               .bytes = 1e3 * (1 << i),
               .work = ops::work_class::matmul});
    }
    measured_table const oracle(p, c, flops_only);
    CHECK(oracle.answer(degree(4), handle{0}) == cost_answer{std::chrono::microseconds(510), cost_source::exact});
    auto const between = oracle.answer(degree(2), handle{0});
    CHECK(between.source == cost_source::interpolated);
    CHECK(to_seconds(between.time) == doctest::Approx(1010e-6).epsilon(0.02));
    auto const below = oracle.answer(degree(32), handle{0});
    CHECK(below.source == cost_source::interpolated);
    CHECK(to_seconds(below.time) == doctest::Approx(72.5e-6).epsilon(0.05));
    // Too far from all members: what was calibrated on the class answers, else the fallback.
    auto const far = oracle.answer(degree(16, 16), handle{0});
    CHECK(far.source == cost_source::roofline);
    CHECK(to_seconds(far.time) == doctest::Approx(10e-6 + 2.0 * 64 * 16 * 256 * 1e-12).epsilon(0.03));
    CHECK(oracle.answer(degree(4, 1, ops::pass::backward), handle{0}).source == cost_source::fallback);
    CHECK(oracle.answer(degree(4), handle{1}).source == cost_source::fallback);
    CHECK(oracle.statistics().hits() + oracle.statistics().misses() == 0);
    for (auto const& w : {degree(1), degree(2), degree(2), degree(16, 16), degree(1, 1, ops::pass::backward)})
        CHECK(shard_time(oracle, w, handle{0}) == oracle.answer(w, handle{0}).time);
    CHECK(oracle.statistics().asked == std::array<std::uint64_t, cost_sources>{1, 2, 1, 0, 0, 1});
    CHECK(oracle.missing().size() == 3);
    // A failed kernel is no measurement.
    profile failed;
    failed.add_failure({topology::k80.kind, kernel_of(degree(1)), "out of memory"});
    CHECK(measured_table(failed, c, flops_only).answer(degree(1), handle{0}).source == cost_source::fallback);
    // Each step can be left out.
    CHECK(measured_table(p, c, flops_only, {.interpolate = false}).answer(degree(2), handle{0}).source == cost_source::roofline);
    CHECK(measured_table(p, c, flops_only, {.interpolate = false, .calibrate = false}).answer(degree(2), handle{0}).source == cost_source::fallback);
    CHECK(measured_table(p, c, flops_only, {.octaves = 0}).answer(degree(2), handle{0}).source == cost_source::roofline);
    CHECK(support::refusal([&] { return measured_table(p, c, flops_only, {.octaves = -1}).table().size(); }) ==
          "measured_options: octaves is -1: must be from 0 to 1000");
}
