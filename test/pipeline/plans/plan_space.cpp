#include <parsearch/pipeline/plans/plan_space.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/problem/constraints.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
using pipeline::plan_decision;
using pipeline::plan_space;

namespace {
auto gpt(ps::sim::simulation_options const& simulation = {}) {
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 2, .device = ps::topology::v100_sxm});
    return ps::make_problem(ps::models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 128, .batch = 8}), cluster,
                            ps::cost::roofline{cluster}, {.simulation = simulation});
}
plan_space space_of(ps::parallelization const& problem, pipeline::partition_options const& options, bool tied = true) {
    pipeline::detail::stage_builder builder(problem, options.cuts_anywhere);
    return {problem, builder, options, tied};
}
std::size_t count(plan_space const& space, plan_decision d) { return space[plan_space::number(d)].size(); }
} // namespace

TEST_CASE("plan_space: what may be chosen follows from the options") {
    auto const problem = gpt();
    auto const all = space_of(problem, {});
    CHECK(std::ranges::equal(all.groups(), std::vector{1, 2, 4}));
    CHECK(std::ranges::equal(all.micro_batches(), std::vector{1, 2, 4, 8}));
    CHECK(std::ranges::equal(all.interleaved(), std::vector{1, 2, 4, 8}));
    CHECK(std::ranges::equal(all.degrees(), std::vector{1, 2})); // within a node
    CHECK(all.orders().size() == pipeline::launch_orders.size());
    CHECK(all.orders().front() == pipeline::launch_order::one_f_one_b);
    CHECK(all.sharded().size() == pipeline::all_sharded_states.size());
    CHECK(count(all, plan_decision::recompute) == 2);
    CHECK(count(all, plan_decision::offloaded) == 65);
    CHECK(all.size() == all.first_of_operators() + all.ties().size());

    auto const few = space_of(problem, {.max_stages = 2,
                                        .max_micro_batches = 2,
                                        .max_interleaved = 1,
                                        .recomputation = false,
                                        .offload = false,
                                        .context_parallel = false,
                                        .zero_bubble = false,
                                        .sharded_gradients = false,
                                        .sharded_parameters = false});
    CHECK(few.most_stages() == 2);
    CHECK(std::ranges::equal(few.groups(), std::vector{1, 2}));
    CHECK(count(few, plan_decision::micro_batches) == 2);
    CHECK(count(few, plan_decision::interleaved) == 1);
    CHECK(count(few, plan_decision::order) == 3);
    CHECK(count(few, plan_decision::sharded) == 2);
    for (auto const d : {plan_decision::recompute, plan_decision::segments, plan_decision::kept, plan_decision::offloaded, plan_decision::joined})
        CHECK(count(few, d) == 1);
    CHECK(std::ranges::all_of(few.splits(), [](auto const& by) { return by.context == 1; }));
    CHECK(space_of(problem, {}, false).ties().size() == problem.size());
    // What constraints tie is one decision, in blocks that repeat or not.
    auto const first = ps::graph::first_repeats(problem.graph());
    std::uint32_t op = 0;
    while (first[op] == op) ++op;
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 2, .device = ps::topology::v100_sxm});
    auto const model = ps::models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 128, .batch = 8});
    ps::constraints_of<decltype(model), decltype(cluster)> wanted;
    wanted.tie({problem.handle(op), problem.handle(first[op])});
    auto const tied = space_of(ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {}, wanted), {}, false);
    CHECK(tied.ties().size() == problem.size() - 1);
    CHECK(tied.ties().group_of(op) == tied.ties().group_of(first[op]));

    auto const most = std::uint64_t{1} << 62; // times the devices it is more than 64 bits hold
    CHECK(space_of(problem, {.max_interleaved = most}).most_stages() == space_of(problem, {.max_interleaved = 64}).most_stages());

    auto const forward = space_of(gpt({.training = false}), {});
    CHECK(count(forward, plan_decision::sharded) == 1);
    CHECK(count(forward, plan_decision::recompute) == 1);
    CHECK(count(forward, plan_decision::offloaded) == 1);
    CHECK(count(forward, plan_decision::interleaved) == 1);
}

TEST_CASE("plan_space: numbers of places go up and down from that of equal load") {
    std::set<std::int64_t> shifts;
    for (std::uint32_t n = 0; n < 21; ++n) {
        CHECK(plan_space::number_of_shift(plan_space::shift_of(n)) == n);
        shifts.insert(plan_space::shift_of(n));
    }
    CHECK(plan_space::shift_of(0) == 0);
    CHECK(shifts.size() == 21);
    CHECK(*shifts.begin() == -10);
    CHECK(*shifts.rbegin() == 10);
}

TEST_CASE("plan_space: what means nothing is 0 in canonical decisions") {
    auto const space = space_of(gpt(), {});
    auto const n = [](plan_decision d) { return plan_space::number(d); };
    pipeline::plan_decisions d(space.size(), 0);
    d[n(plan_decision::groups)] = 1; // two
    d[n(plan_decision::segments)] = d[n(plan_decision::kept)] = d[n(plan_decision::joined)] = 1;
    d[space.tensor_of(1)] = d[space.beginning_of(1)] = d[space.tensor_of(2)] = d[space.beginning_of(2)] = d[space.recompute_of(3)] = 1;
    auto const c = space.canonical(d);
    CHECK(c[space.tensor_of(1)] == 1);
    CHECK(c[space.beginning_of(1)] == 1);
    for (auto const i : {space.tensor_of(2), space.beginning_of(2), space.recompute_of(3), n(plan_decision::segments), n(plan_decision::kept),
                         n(plan_decision::joined)})
        CHECK(c[i] == 0);
    CHECK(space.canonical(c) == c);
    d[space.recompute_of(0)] = 1; // a stage that computes again has segments
    d[n(plan_decision::sharded)] = 3;
    CHECK(space.canonical(d)[n(plan_decision::segments)] == 1);
    CHECK(space.canonical(d)[n(plan_decision::joined)] == 1);
}

TEST_CASE("plan_move: every decision that means something is drawn, and nothing else") {
    auto const space = space_of(gpt(), {.max_stages = 4});
    pipeline::plan_move const move;
    std::vector<ps::change<std::uint32_t>> out;
    for (std::uint32_t const groups : {0u, 1u}) {
        std::mt19937_64 rng{groups};
        pipeline::plan_decisions now(space.size(), 0);
        now[plan_space::number(plan_decision::groups)] = groups;
        auto const stages = space.stages(now);
        std::set<std::size_t> drawn;
        for (int i = 0; i < 20'000; ++i) {
            out.clear();
            if (!move(space, now, rng, out)) continue;
            REQUIRE(out.size() == 1);
            drawn.insert(out.front().op);
            REQUIRE(out.front().configuration < space[out.front().op].size());
            REQUIRE(out.front().configuration != now[out.front().op]);
        }
        for (std::size_t d = 0; d < space.size(); ++d) {
            INFO("decision ", d, " of ", stages, " stages");
            bool const of_stage = d >= pipeline::plan_wide_decisions && d < space.first_of_operators();
            bool means = !of_stage;
            for (std::size_t s = 0; stages > 1 && s < stages; ++s)
                means = means || d == space.tensor_of(s) || d == space.recompute_of(s) || (s > 0 && d == space.beginning_of(s));
            CHECK(drawn.contains(d) == (means && space[d].size() > 1));
        }
    }
}
