#include <parsearch/pipeline/plan_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/plan_bound.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/sanitized.hpp"

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
        bool const again = plan.how.computes_again(op);
        if (std::ranges::find(blocks, plan.how.block_of(op)) == blocks.end()) blocks.push_back(plan.how.block_of(op));
        out.push_back(ps::text(op, ' ', plan.how.stage[op], ' ', again ? static_cast<int>(plan.how.segment_of(op)) : -1, ' ',
                               plan.how.sharded >= pipeline::sharded_states::gradients
                                   ? std::ranges::find(blocks, plan.how.block_of(op)) - blocks.begin()
                                   : 0,
                               ' ', ps::space::to_string(plan.strategy[op], g.operations[op])));
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
auto tiny_gpt(std::size_t devices, std::int64_t layers = 2, std::int64_t batch = 4) {
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = devices, .device = ps::topology::v100_sxm});
    return ps::make_problem(ps::models::gpt({.layers = layers, .hidden = 64, .heads = 4, .sequence = 16, .vocabulary = 128, .batch = batch}), cluster,
                            ps::cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
}
} // namespace

TEST_CASE("plan_problem: costs are those of the simulation, conversions go there and back, nothing is below the bounds") {
    int plans_seen = 0, own = 0, staged = 0, recomputed = 0, cut = 0, by_blocks = 0, refused = 0;
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
            cut += cuts_backward(plan.how.order);
            by_blocks += plan.how.sharded >= pipeline::sharded_states::gradients;
            closest = std::max(closest, static_cast<double>(bound.count()) / static_cast<double>(std::max<std::int64_t>(1, cost.count())));
        });
    }
    MESSAGE(plans_seen, " plans, ", own, " with operators of their own, ", staged, " with stages, ", recomputed, " that compute again, ", cut,
            " that cut backward, ", by_blocks, " with sharded gradients; ", refused, " not told again; the closest bound is ", closest, " of a cost");
    CHECK(plans_seen > static_cast<int>(support::cases(1000u)));
    CHECK(refused < own / 10);
    CHECK(std::min({own, staged, recomputed, cut, by_blocks}) > static_cast<int>(support::cases(20u)));
}
