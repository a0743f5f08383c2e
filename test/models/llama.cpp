#include <parsearch/models/llama.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

namespace {
constexpr models::llama_options small{
    .layers = 2, .hidden = 256, .heads = 16, .kv_heads = 8, .feed_forward = 512, .sequence = 64, .vocabulary = 1024, .batch = 16};
} // namespace

TEST_CASE("llama: Llama 3.2 1B has 1,235,814,400 parameters, the output layer's shared with the embedding") {
    auto const model = models::llama({.batch = 2});
    CHECK(support::check_model(model).parameters == 1'235'814'400);
    CHECK(support::count(model, "attention") == 16);
    CHECK(support::count(model, "rotary_embedding") == 2 * 16);
    CHECK(support::count(model, "rms_norm") == 2 * 16 + 1);
}

TEST_CASE("llama: parameters of others as published") {
    auto const parameters = [](models::llama_options const& o) { return models::summarize(models::llama(o)).parameters; };
    // Llama 2 7B, 13B and 70B; Llama 3 8B and 70B; Llama 3.2 3B; Mistral 7B; Mistral NeMo 12B, whose heads are smaller than hidden / heads.
    CHECK(parameters({.layers = 32, .hidden = 4096, .kv_heads = 32, .feed_forward = 11008, .vocabulary = 32000, .tied = false}) == 6'738'415'616);
    CHECK(parameters({.layers = 40, .hidden = 5120, .heads = 40, .kv_heads = 40, .feed_forward = 13824, .vocabulary = 32000, .tied = false}) ==
          13'015'864'320);
    CHECK(parameters({.layers = 80, .hidden = 8192, .heads = 64, .feed_forward = 28672, .vocabulary = 32000, .tied = false}) == 68'976'648'192);
    CHECK(parameters({.layers = 32, .hidden = 4096, .feed_forward = 14336, .tied = false}) == 8'030'261'248);
    CHECK(parameters({.layers = 80, .hidden = 8192, .heads = 64, .feed_forward = 28672, .tied = false}) == 70'553'706'496);
    CHECK(parameters({.layers = 28, .hidden = 3072, .heads = 24}) == 3'212'749'824);
    CHECK(parameters({.layers = 32, .hidden = 4096, .feed_forward = 14336, .vocabulary = 32000, .tied = false}) == 7'241'732'096);
    CHECK(parameters({.layers = 40, .hidden = 5120, .head_size = 128, .feed_forward = 14336, .vocabulary = 131072, .tied = false}) == 12'247'782'400);
}

TEST_CASE("llama: multiply-adds by hand") {
    double const b = 2, s = 2048, h = 2048, kv = 512, f = 8192, v = 128256, l = 16;
    // Projections of queries, keys, values and output, two products of attention, three matrices of the perceptron; the vocabulary.
    CHECK(models::summarize(models::llama({.batch = 2})).multiply_adds == b * s * (l * (2 * h * h + 2 * h * kv + 2 * s * h + 3 * h * f) + h * v));
}

TEST_CASE("llama: with tensor parallelism, devices exchange gradients of normalizations alone") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::llama(small), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tensor = simulate(problem, tensor_parallel(problem, 8));
    auto const weight_gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    // An all-reduce among 8 moves its bytes 2 (8 - 1) times.
    CHECK(data.traffic[weight_gradients] == 14 * 4 * static_cast<double>(models::summarize(problem.graph()).parameters));
    CHECK(tensor.traffic[weight_gradients] == 14 * 4 * 5.0 * 256);
    CHECK(tensor.traffic[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] > 0);
    CHECK(tensor.makespan > data.makespan / 8);
    auto const s = tensor_parallel(problem, 8);
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto const& operation = problem.graph().operations[op];
        INFO(problem.graph().names[op]);
        // Heads of queries are turned, and attended with, where the projections leave them.
        if (operation.kind == "rotary_embedding" || operation.kind == "attention") CHECK(s[op].degree[2] == 8);
        if (operation.kind == "multiply") CHECK(s[op].degree[2] == 8);
    }
}

TEST_CASE("llama: inference has the same parameters, a cache, and the work of what is asked by hand") {
    auto o = small;
    auto const parameters = models::summarize(models::llama(o)).parameters;
    o.inference = true;
    auto const prefill = models::summarize(models::llama(o));
    CHECK(prefill.parameters == parameters);
    CHECK(prefill.cache == 2 * 2 * 16 * 64 * 8 * 16 * 4); // layers, keys and values, samples, tokens, heads, elements, bytes
    CHECK(support::count(models::llama(o), "cross_entropy") == 0);
    CHECK(support::count(models::llama(o), "slice") == 1); // the last token is followed
    o.sequence = 1;
    o.cached = 63;
    auto const step = models::summarize(models::llama(o));
    CHECK(step.parameters == parameters);
    CHECK(step.cache == prefill.cache);
    double const b = 16, h = 256, kv = 128, f = 512, v = 1024, l = 2;
    CHECK(step.multiply_adds == b * (l * (2 * h * h + 2 * h * kv + 2 * 64 * h + 3 * h * f) + h * v));
    CHECK(support::count(models::llama(o), "slice") == 0);
}

TEST_CASE("llama: tensor parallelism divides weights and cache; where heads are fewer than devices, positions of the cache") {
    auto o = small;
    o.inference = true;
    o.sequence = 1;
    o.cached = 63;
    auto const cluster = topology::dgx_a100(2);
    auto const p = make_problem(models::llama(o), cluster, cost::roofline{cluster}, {.simulation = {.training = false}});
    auto const totals = models::summarize(p.graph());
    for (auto const& m : simulate(p, tensor_parallel(p, 8)).memory) CHECK(m.cache == totals.cache / 16); // heads over 8, samples over 2
    o.kv_heads = 4;                                                                                      // no more in 8: 64 cached positions are
    o.cached = 64;
    auto const few = make_problem(models::llama(o), cluster, cost::roofline{cluster}, {.simulation = {.training = false}});
    auto const of_token = models::summarize(few.graph()).cache / 65;
    for (auto const& m : simulate(few, tensor_parallel(few, 8)).memory) CHECK(m.cache == (8 + 1) * of_token / 2); // the new token's are on all
}

TEST_CASE("llama: bad options are refused") {
    CHECK(support::refusal([] { return models::llama({.cached = 8}); }) == "llama: cached is 8: must be 0 where inference is false");
    CHECK(support::refusal([] { return models::llama({.inference = true, .cached = -8}); }) == "llama: cached is -8: must be at least 0");
    CHECK(support::refusal([] { return models::llama({.layers = 0}); }) == "llama: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.layers = 65537}); }) == "llama: layers is 65537: must be at most 65536");
    CHECK(support::refusal([] { return models::llama({.hidden = 2050}); }) == "llama: hidden is 2050: must be a multiple of heads, which is 32");
    CHECK(support::refusal([] { return models::llama({.heads = 0}); }) == "llama: heads is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.kv_heads = 5}); }) == "llama: heads is 32: must be a multiple of kv_heads, which is 5");
    CHECK(support::refusal([] { return models::llama({.head_size = -2}); }) == "llama: head_size is -2: must be at least 0");
    CHECK(support::refusal([] { return models::llama({.hidden = 96}); }) == "llama: head_size is 3: must be even, since rotary positions turn pairs");
    CHECK(support::refusal([] { return models::llama({.hidden = 0, .head_size = 64}); }) == "llama: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.feed_forward = 0}); }) == "llama: feed_forward is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.sequence = -1}); }) == "llama: sequence is -1: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.vocabulary = 0}); }) == "llama: vocabulary is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.batch = 0}); }) == "llama: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::llama({.type = ops::dtype::i32}); }) == "llama: type is i32: must be a floating-point type");
}
