#include <parsearch/models/moe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

namespace {
/// Parameters of a block without its perceptron or experts.
constexpr std::int64_t attention(std::int64_t h, std::int64_t heads, std::int64_t kv_heads) {
    return 2 * h * h + 2 * h * (h / heads * kv_heads) + 2 * h;
}
constexpr models::moe_options small{
    .layers = 2, .hidden = 256, .heads = 4, .kv_heads = 2, .feed_forward = 1024, .experts = 8, .sequence = 64, .vocabulary = 1000, .batch = 16};
} // namespace

TEST_CASE("moe: Mixtral 8x7B has 46,702,792,704 parameters") {
    auto const model = models::moe({.batch = 1});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 46'702'792'704);
    CHECK(support::count(model, "moe_dispatch") == 32);
    CHECK(support::count(model, "einsum") == 3 * 32);
}

TEST_CASE("moe: multiply-adds by hand") {
    models::moe_options o{.capacity_factor = 1, .batch = 2};
    double const b = 2, s = 4096, h = 4096, f = 14336, v = 32000;
    // Two of the eight experts work on a token.
    double const block = 2 * h * h + 2 * h * 1024 + 2 * s * h + 8 * h + 2 * 3 * h * f;
    CHECK(models::summarize(models::moe(o)).multiply_adds == b * s * (32 * block + h * v));
    // A quarter more slots, a quarter more work of experts.
    o.capacity_factor = 1.25;
    CHECK(models::summarize(models::moe(o)).multiply_adds == b * s * (32 * (block + 0.5 * 3 * h * f) + h * v));
}

TEST_CASE("moe: a decoder of the sizes of Switch-Base, experts in every other block") {
    models::moe_options const o{.layers = 12,
                                .hidden = 768,
                                .heads = 12,
                                .kv_heads = 12,
                                .feed_forward = 3072,
                                .experts = 128,
                                .experts_per_token = 1,
                                .every = 2,
                                .gated = false,
                                .sequence = 512,
                                .vocabulary = 32128,
                                .tied = true,
                                .batch = 1};
    auto const model = models::moe(o);
    auto const s = support::check_model(model);
    std::int64_t const h = 768, perceptron = 2 * h * 3072;
    CHECK(s.parameters == 12 * attention(h, 12, 12) + 6 * perceptron + 6 * (128 * h + 128 * perceptron) + h + 32128 * h);
    CHECK(support::count(model, "moe_dispatch") == 6);
    CHECK(support::count(model, "linear") == 6 * 2 + 6 + 1); // perceptrons, routers, logits
}

TEST_CASE("moe: experts over devices exchange tokens instead of the experts' gradients") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::moe(small), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), experts = simulate(problem, expert_parallel(problem));
    auto const weight_gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient),
               activations = static_cast<std::size_t>(sim::traffic_kind::activation);
    double const all = static_cast<double>(models::summarize(problem.graph()).parameters), own = 2 * 8 * 3 * 256 * 1024;
    CHECK(data.traffic[weight_gradients] == 14 * 4 * all);
    CHECK(experts.traffic[weight_gradients] == 14 * 4 * (all - own));
    // Slots there and back, of two blocks: seven eighths of them change device.
    double const slots = 16.0 * 8 * 20 * 256 * 4;
    CHECK(experts.traffic[activations] - data.traffic[activations] == 2 * 2 * slots * 7 / 8);
    CHECK(experts.peak_memory() < data.peak_memory());
    // In pairs of devices each has half of the experts, which four devices have.
    auto const pairs = simulate(problem, expert_parallel(problem, 2));
    CHECK(pairs.traffic[weight_gradients] == 14 * 4 * (all - own) + 2 * (2 * 3 * 4 * own / 2));
    CHECK(pairs.traffic[activations] - data.traffic[activations] == 2 * 2 * slots / 2);
}

TEST_CASE("moe: bad options are refused") {
    CHECK(support::refusal([] { return models::moe({.layers = 0}); }) == "moe: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.layers = 100'000}); }) == "moe: layers is 100000: must be at most 65536");
    CHECK(support::refusal([] { return models::moe({.hidden = 4097}); }) == "moe: hidden is 4097: must be a multiple of heads, which is 32");
    CHECK(support::refusal([] { return models::moe({.kv_heads = 5}); }) == "moe: heads is 32: must be a multiple of kv_heads, which is 5");
    CHECK(support::refusal([] { return models::moe({.feed_forward = 0}); }) == "moe: feed_forward is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.experts = 0}); }) == "moe: experts is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.experts_per_token = 9}); }) ==
          "moe: experts_per_token is 9: must be at most experts, which is 8");
    CHECK(support::refusal([] { return models::moe({.experts_per_token = 0}); }) == "moe: experts_per_token is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.capacity_factor = 0}); }) == "moe: capacity_factor is 0: must be above 0 and at most 1e6");
    CHECK(support::refusal([] { return models::moe({.every = 0}); }) == "moe: every is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.sequence = 0}); }) == "moe: sequence is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.vocabulary = 0}); }) == "moe: vocabulary is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.batch = 0}); }) == "moe: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::moe({.type = ops::dtype::i32}); }) == "moe: type is i32: must be a floating-point type");
}

TEST_CASE("moe: in inference tokens of several samples are routed together, so that no slot is empty") {
    models::moe_options o{.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .feed_forward = 128, .experts = 8, .experts_per_token = 2};
    o.vocabulary = 512;
    o.batch = 16;
    o.sequence = 1;
    o.inference = true;
    o.cached = 15;
    auto const g = graph::read_graph(models::moe(o)).graph;
    auto const totals = models::summarize(g);
    CHECK(totals.cache == 2 * 2 * 16 * 16 * 32 * 4);
    double const b = 16, h = 64, kv = 32, f = 128, v = 512, l = 2; // each token takes two experts
    CHECK(totals.multiply_adds == b * (l * (2 * h * h + 2 * h * kv + 2 * 16 * h + 8 * h + 2 * 3 * h * f) + h * v));
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.operations[op].kind == "moe_dispatch") CHECK(g.operations[op].dims[0].extent == 4); // groups of 4 samples
    o.batch = 3;                                                                                  // no divisor fills the slots evenly
    CHECK_NOTHROW((void)graph::read_graph(models::moe(o)));
}
