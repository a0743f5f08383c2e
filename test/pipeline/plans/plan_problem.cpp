#include <parsearch/pipeline/plans/plan_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/plans/plan_bound.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace search = parsearch::search;
namespace sim = parsearch::sim;
using pipeline::plan_decisions;
using ps::picoseconds;
using support::refusal;

static_assert(ps::SearchProblem<pipeline::plan_problem, plan_decisions>);
static_assert(ps::IncrementalEvaluator<pipeline::plan_evaluator, plan_decisions, std::uint32_t>);
static_assert(ps::BoundedEvaluator<pipeline::plan_evaluator, plan_decisions, pipeline::plan_space>);
static_assert(ps::OffersFeasibility<pipeline::plan_problem, plan_decisions>);

namespace {
constexpr auto infinity = ps::cost_traits<picoseconds>::infinity();

bool has_work(ps::graph::dense_graph const& g) {
    return std::ranges::any_of(g.operations, [](auto const& op) { return op.work != ps::ops::work_class::source; });
}

// What a plan is, but for what has no meaning: graph inputs, segments of stages that do not compute again, the numbers of blocks.
std::vector<std::string> meaning(ps::graph::dense_graph const& g, pipeline::pipeline_plan const& plan) {
    std::vector<std::string> out{ps::text(plan.how.stages, ' ', plan.how.interleaved, ' ', plan.how.micro_batches, ' ', name_of(plan.how.order), ' ',
                                          static_cast<int>(plan.how.sharded))};
    std::vector<std::uint32_t> blocks;
    for (auto const op : g.order) {
        if (g.operations[op].work == ps::ops::work_class::source) continue;
        bool const again = plan.how.computes_again(op), offloaded = plan.how.offloads(op);
        if (std::ranges::find(blocks, plan.how.block_of(op)) == blocks.end()) blocks.push_back(plan.how.block_of(op));
        out.push_back(ps::text(
            op, ' ', plan.how.stage[op], ' ', again, offloaded, ' ', again || plan.how.offloads() ? static_cast<int>(plan.how.segment_of(op)) : -1,
            ' ', plan.how.sharded >= pipeline::sharded_states::gradients ? std::ranges::find(blocks, plan.how.block_of(op)) - blocks.begin() : 0, ' ',
            ps::space::to_string(plan.strategy[op], g.operations[op])));
    }
    return out;
}

// A few thousand random plans, each a legal step from one before: `see(decisions, plan, cost)`.
template <class F> void walk(pipeline::plan_problem const& plans, std::mt19937_64& rng, int steps, F const& see) {
    auto price = plans.evaluator();
    pipeline::plan_move const move;
    plan_decisions now(plans.space().size(), 0);
    std::vector<ps::change<std::uint32_t>> changes;
    for (int n = 0; n < steps; ++n) {
        auto next = now;
        for (auto k = 1 + ps::uniform_index(rng, 3); k > 0; --k) {
            changes.clear();
            if (!move(plans.space(), next, rng, changes)) continue;
            REQUIRE(changes.size() == 1);
            REQUIRE(changes.front().configuration < plans.space()[changes.front().op].size());
            REQUIRE(changes.front().configuration != next[changes.front().op]);
            next[changes.front().op] = changes.front().configuration;
        }
        auto const cost = price(next);
        if (cost == infinity) continue;
        now = std::move(next);
        see(now, cost);
    }
}
auto tiny_gpt(std::uint32_t devices, std::int64_t layers = 2, std::int64_t batch = 4) {
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = devices, .device = ps::topology::v100_sxm});
    return ps::make_problem(ps::models::gpt({.layers = layers, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 128, .batch = batch}), cluster,
                            ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
}
} // namespace

TEST_CASE("plan_problem: costs are those of the simulation, conversions go there and back, nothing is below the bounds") {
    int plans_seen = 0, own = 0, staged = 0, recomputed = 0, offloaded = 0, cut = 0, by_blocks = 0, refused = 0;
    double closest = 0;
    for (std::uint64_t seed = 0; seed < support::cases(80u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.transfers = sim::transfer_model::streaming;
        auto const problem = support::random_problem(rng, options, {.devices = 4, .operators = 10, .kinds = ps::bernoulli(rng, 0.3)});
        if (!has_work(problem.graph())) continue;
        pipeline::partition_options const choices{.max_stages = 4, .cuts_anywhere = ps::bernoulli(rng, 0.5)};
        bool const tied = ps::bernoulli(rng, 0.5);
        pipeline::plan_problem const plans(problem, choices, tied);
        auto const bound = pipeline::plan_bound(problem, choices);
        auto const root = search::root_bound<plan_decisions>(plans);
        REQUIRE(root);
        CHECK(bound == *root);
        pipeline::pipeline_simulator simulator(problem);
        auto again = plans.evaluator();
        walk(plans, rng, 60, [&](plan_decisions const& d, picoseconds cost) {
            auto const plan = plans.plan(d);
            REQUIRE(simulator(plan.how, plan.strategy) == cost);
            REQUIRE(bound <= cost);
            REQUIRE(again(plans.space().canonical(d)) == cost);
            ++plans_seen;
            std::optional<plan_decisions> back;
            // How stages are split where operators have their own way is a guess, by which segments are cut.
            auto const why = refusal([&] { back = plans.decisions(plan); });
            if (!back) {
                REQUIRE(why.starts_with("plan: "));
                REQUIRE(plan.tensor_parallel.empty());
                ++refused;
                return;
            }
            REQUIRE(again(*back) == cost);
            REQUIRE(meaning(problem.graph(), plans.plan(*back)) == meaning(problem.graph(), plan));
            own += plan.tensor_parallel.empty();
            staged += plan.how.stages > 1;
            recomputed += std::ranges::find(plan.how.recompute, true) != plan.how.recompute.end();
            offloaded += plan.how.offloads();
            cut += cuts_backward(plan.how.order);
            by_blocks += plan.how.sharded >= pipeline::sharded_states::gradients;
            closest = std::max(closest, static_cast<double>(bound.count()) / static_cast<double>(std::max<std::int64_t>(1, cost.count())));
        });
    }
    MESSAGE(plans_seen, " plans, ", own, " with operators of their own, ", staged, " with stages, ", recomputed, " that compute again, ", offloaded,
            " that offload, ", cut, " that cut backward, ", by_blocks, " with sharded gradients; ", refused, " not told again; the closest bound is ",
            closest, " of a cost");
    CHECK(plans_seen > static_cast<int>(support::cases(1000u)));
    CHECK(refused < own / 10);
    if (support::sanitized) return; // few cases do not have all kinds
    CHECK(std::min({own, staged, recomputed, offloaded, cut, by_blocks}) > 20);
}

TEST_CASE("plan_problem: exact search proves the best of all plans of a small network") {
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 2, .device = ps::topology::v100_sxm});
    for (std::int64_t const features : {64, 4096}) {
        INFO(features, " features");
        auto const problem = ps::make_problem(ps::models::mlp({.features = features, .hidden = {}, .classes = features, .batch = 8}), cluster,
                                              ps::cost::roofline{cluster});
        pipeline::plan_problem const plans(problem, {.max_stages = 2,
                                                     .max_micro_batches = 2,
                                                     .recomputation = false,
                                                     .offload = false,
                                                     .sharded_gradients = false,
                                                     .sharded_parameters = false});
        auto const& space = plans.space();
        // Every combination, counted up.
        auto price = plans.evaluator();
        auto least = infinity;
        std::uint64_t combinations = 0;
        plan_decisions d(space.size(), 0);
        for (std::size_t at = 0; at < d.size();) {
            ++combinations;
            least = std::min(least, price(d));
            for (at = 0; at < d.size() && ++d[at] == space[at].size(); ++at) d[at] = 0;
        }
        std::mt19937_64 rng{1};
        auto const found = search::exact(plans, plan_decisions(space.size(), 0), rng);
        CHECK(found.reason == ps::stop_reason::proved_optimal);
        CHECK(found.cost == least);
        CHECK(found.lower_bound == least);
        CHECK(found.stats.nodes < combinations);
        auto const all = search::exhaustive(plans, plan_decisions(space.size(), 0), rng);
        CHECK(all.cost == least);
        CHECK(all.stats.evaluations <= combinations + 1);
        MESSAGE(combinations, " combinations; ", found.stats.nodes, " bounded, ", found.stats.evaluations, " priced");
    }
}

TEST_CASE("plan_problem: searches stay in the space, are no worse than their start, and the same for the same seed") {
    auto const problem = tiny_gpt(4);
    pipeline::partition_options const choices{.max_stages = 4};
    pipeline::plan_problem const plans(problem, choices);
    auto const bound = pipeline::plan_bound(problem, choices);
    auto price = plans.evaluator();
    auto const check = [&](auto const& run, std::string_view name) {
        INFO(name);
        plan_decisions const start(plans.space().size(), 0);
        std::mt19937_64 rng{7}, same{7};
        auto const found = run(start, rng);
        auto const again = run(start, same);
        CHECK(found.best == again.best);
        CHECK(found.stats.trajectory == again.stats.trajectory);
        CHECK(found.stats.evaluations == again.stats.evaluations);
        CHECK(found.cost <= price(start));
        CHECK(price(found.best) == found.cost);
        CHECK(found.cost >= bound);
        if (found.lower_bound) CHECK(*found.lower_bound >= bound);
        for (std::size_t n = 0; n < found.best.size(); ++n) REQUIRE(found.best[n] < plans.space()[n].size());
        auto const plan = plans.plan(found.best);
        CHECK(simulate(problem, plan).makespan == found.cost); // it fits
        CHECK(plans.feasible(found.best));
        return found.cost;
    };
    auto const start = price(plan_decisions(plans.space().size(), 0));
    CHECK(check([&](auto s, auto& rng) { return search::mcmc(plans, s, rng, {.evaluations = 600}); }, "mcmc") < start);
    CHECK(check([&](auto s, auto& rng) { return search::greedy(plans, s, rng, {.evaluations = 600}); }, "greedy") < start);
    CHECK(check([&](auto s, auto& rng) { return search::tempering(plans, s, rng, {.evaluations = 600, .replicas = 3}); }, "tempering") < start);
    CHECK(check([&](auto s, auto& rng) { return search::random_search(plans, s, rng, {.evaluations = 300}); }, "random") <= start);
    CHECK(check([&](auto s, auto& rng) { return search::portfolio(plans, s, rng, {.evaluations = 1000}); }, "portfolio") < start);
    CHECK(check([&](auto s, auto& rng) { return search::exact(plans, s, rng, {.evaluations = 1000, .walk = 300, .sweeps = 1, .nodes = 1000}); },
                "exact") < start);
    // Threads price ahead, and nothing else.
    std::mt19937_64 rng{7}, same{7};
    plan_decisions const from(plans.space().size(), 0);
    auto const one = search::mcmc(plans, from, rng, {.evaluations = 300}), two = search::mcmc(plans, from, same, {.evaluations = 300, .threads = 2});
    CHECK(one.best == two.best);
    CHECK(one.stats.trajectory == two.stats.trajectory);
}

TEST_CASE("plan_problem: a search goes on from what `partition` found") {
    int better = 0;
    for (std::uint32_t const devices : {4u, 8u}) {
        INFO(devices, " devices");
        auto const problem = tiny_gpt(devices, 4, 8);
        pipeline::plan_problem const plans(problem);
        std::mt19937_64 rng{3};
        auto const found = pipeline::partition(problem, {}, rng, {});
        auto const start = plans.decisions(found.best);
        CHECK(plans.evaluator()(start) == found.cost);
        auto const on = search::mcmc(plans, start, rng, {.evaluations = 1500});
        CHECK(on.cost <= found.cost);
        better += on.cost < found.cost;
        MESSAGE(devices, " devices: ", found.cost.count(), " ps, then ", on.cost.count());
    }
    CHECK(better > 0);
}

TEST_CASE("plan_problem: every strategy of the space is a plan, at the cost that it has without micro-batches") {
    for (std::uint64_t seed = 0; seed < support::cases(40u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.transfers = sim::transfer_model::streaming;
        auto const problem = support::random_problem(rng, options, {.devices = 4, .operators = 10});
        if (!has_work(problem.graph())) continue;
        pipeline::plan_problem const plans(problem, {}, false);
        auto price = plans.evaluator();
        auto strategies = problem.evaluator();
        for (int n = 0; n < 10; ++n) {
            auto const s = search::random_strategy(problem.space(), ps::data_parallel(problem), rng);
            pipeline::pipeline_plan const plain{.how = pipeline::unpipelined(problem.graph()), .strategy = s};
            auto const d = plans.decisions(plain);
            REQUIRE(price(d) == strategies(s));
            REQUIRE(meaning(problem.graph(), plans.plan(d)) == meaning(problem.graph(), plain));
        }
    }
}

TEST_CASE("plan_problem: no plan splits an operator as it may not be, or over devices of another group") {
    ps::graph::operator_graph g;
    ps::graph::tensor_ref x = g.input("in", {{64, 16}});
    for (int i = 0; i < 4; ++i) x = g.add(ps::text("fc", i), ps::ops::linear{.out = 16}, x);
    auto const topology = support::mesh(8, 1e9);
    auto const free = ps::make_problem(g, topology, support::mixed_oracle{});
    auto const op = static_cast<std::size_t>(std::ranges::find(free.graph().names, "fc2") - free.graph().names.begin());
    int staged = 0, seen = 0;
    for (auto const& pins : {std::vector<std::string>{"s8"}, {"s4", "o8"}, {"s2 o2"}}) {
        INFO(pins.front());
        ps::constraints_of<decltype(g), decltype(topology)> rules;
        for (auto const& pin : pins) rules.pin(free.handle(op), pin);
        auto const problem = ps::make_problem(g, topology, support::mixed_oracle{}, {}, rules);
        pipeline::plan_problem const plans(problem);
        auto const check = [&](plan_decisions const& d, picoseconds) {
            auto const plan = plans.plan(d);
            auto const& c = plan.strategy[op];
            REQUIRE(ps::space::allows(problem.space().options(), "fc2", problem.graph().operations[op], c));
            auto const groups = plan.how.launching().groups();
            for (std::int64_t n = 0; n < c.shards(); ++n)
                REQUIRE(static_cast<std::uint32_t>(c.device(n)) / (8 / groups) == plan.how.stage[op] % groups);
            staged += groups > 1;
            ++seen;
        };
        for (std::uint64_t seed = 0; seed < 16; ++seed) { // short walks: what operators have of their own seldom has room in fewer devices
            std::mt19937_64 rng{seed};
            walk(plans, rng, 40, check);
        }
    }
    CHECK(seen > 50);
    CHECK(staged > 0);
}

TEST_CASE("plan_problem: where the problem's token ends a search, it answers the best so far") {
    auto const problem = tiny_gpt(4);
    std::stop_source stop;
    pipeline::plan_problem const plans(problem.until(stop.get_token()));
    std::mt19937_64 rng{7};
    auto least = infinity;
    auto const found =
        search::mcmc(plans, plan_decisions(plans.space().size(), 0), rng, {.evaluations = 100'000}, [&](search::improved<picoseconds> const& e) {
            least = e.cost;
            stop.request_stop();
        });
    CHECK(found.stats.evaluations < 100'000);
    CHECK(found.cost == least);
    CHECK(simulate(problem, plans.plan(found.best)).makespan == least);
}

TEST_CASE("plan_problem: what is no plan of the space is refused") {
    auto const problem = tiny_gpt(4);
    pipeline::plan_problem const plans(problem, {.max_stages = 2, .max_micro_batches = 2});
    auto const& space = plans.space();
    plan_decisions d(space.size(), 0);
    CHECK(refusal([&] { return plans.plan({1, 2}); }) == ps::text("plan_problem: 2 decisions: must be ", space.size()));
    d[2] = 7;
    CHECK(refusal([&] { return plans.plan(d); }) == "plan_problem: decision number 2 is 7: must be less than 2");
    d[2] = 0;
    auto const split = pipeline::plan_space::number(pipeline::plan_decision::split);
    d[pipeline::plan_space::number(pipeline::plan_decision::groups)] = 1;
    d[split] = static_cast<std::uint32_t>(std::ranges::find(space.splits(), ps::space::neighbour_split{.tensor = 4}) - space.splits().begin());
    CHECK(refusal([&] { return plans.plan(d); }) == "plan_problem: the decisions are no plan: a group of devices can not share operators so");
    CHECK(plans.evaluator()(d) == infinity);
    CHECK(!plans.feasible(d));
    d[split] = 0;
    auto plan = plans.plan(d);
    CHECK(plans.decisions(plan) == d);
    plan.how.micro_batches = 4;
    CHECK(refusal([&] { return plans.decisions(plan); }) == "plan: 4 micro-batches: the space of plans has none");
    plan.how.micro_batches = 1;
    auto cut = plan;
    auto const& order = problem.graph().order;
    auto const second = std::ranges::find_if(order, [&](auto op) { return plan.how.stage[op] == 1; });
    cut.how.stage[*second] = 0;
    CHECK(refusal([&] { return plans.decisions(cut); }).find("stages that begin between blocks, unless 'cuts_anywhere'") != std::string::npos);
    auto other = plan;
    other.tensor_parallel = {1};
    CHECK(refusal([&] { return plans.decisions(other); }) == "plan: degrees of tensor parallelism of 1 stages: it has 2, must be one each");
    other = plan;
    other.strategy.pop_back();
    CHECK(refusal([&] { return plans.decisions(other); }).starts_with("a pipeline's strategy of "));
    // Of operators that are tied one is whole.
    auto const tie = static_cast<std::size_t>(
        std::ranges::find_if(std::views::iota(std::size_t{0}, space.ties().size()), [&](auto g) { return space.ties().of(g).size() > 1; }) -
        std::views::iota(std::size_t{0}, space.ties().size()).begin());
    auto single = pipeline::pipeline_plan{.how = pipeline::unpipelined(problem.graph()), .strategy = ps::data_parallel(problem)};
    auto const op = space.ties().of(tie).back();
    single.strategy[op] = ps::space::whole(problem.graph().operations[op]);
    CHECK(refusal([&] { return plans.decisions(single); }).find("which are tied, have different configurations: must have one") != std::string::npos);
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 2, .device = ps::topology::v100_sxm});
    ps::graph::operator_graph g;
    auto const x = g.input("in", {{4, 4}});
    auto const inputs = ps::make_problem(g, cluster, ps::cost::roofline{cluster});
    CHECK(refusal([&] { return pipeline::plan_problem(inputs); }) == "plan_problem: the graph has inputs only: at least one operator must have work");
    CHECK(refusal([&] { return pipeline::plan_problem(problem, {.max_stages = 0}); }) == "partition: option 'max_stages' is 0: must be at least 1");
    auto const a = g.add("a", ps::ops::linear{.out = 4}, x), b = g.add("b", ps::ops::linear{.out = 4}, x);
    g.add("sum", ps::ops::add{}, a, b);
    auto const sides = ps::make_problem(g, cluster, ps::cost::roofline{cluster});
    pipeline::pipeline_plan crossed{.how = pipeline::unpipelined(sides.graph()), .strategy = ps::data_parallel(sides)};
    crossed.how.stages = 2;
    crossed.how.stage = {0, 1, 0, 1};
    CHECK(refusal([&] { return pipeline::plan_problem(sides).decisions(crossed); }) ==
          "plan: operator 'a' of stage 1 is out of place: the space of plans has stages of neighbours in topological order, each of at least one");
}
