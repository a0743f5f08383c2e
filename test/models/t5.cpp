#include <parsearch/models/t5.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("t5: T5-Base has 222,903,552 parameters") {
    auto const model = models::t5({.batch = 2});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 222'903'552);
    // By the parts: tokens, blocks, two tables of positions, two normalizations.
    std::int64_t const h = 768, encoder = 4 * h * h + 2 * h * 3072 + 2 * h, decoder = 8 * h * h + 2 * h * 3072 + 3 * h;
    CHECK(s.parameters == 32128 * h + 12 * (encoder + decoder) + 2 * (32 * 12 + h));
    CHECK(support::count(model, "attention") == 3 * 12);
    CHECK(support::count(model, "dropout") == 4 + 5 * 12);
    CHECK(support::count(models::t5({.batch = 2, .dropout = 0}), "dropout") == 0);
}

TEST_CASE("t5: parameters of others as published") {
    auto const parameters = [](models::t5_options const& o) { return models::summarize(models::t5(o)).parameters; };
    CHECK(parameters({.layers = 6, .hidden = 512, .heads = 8, .feed_forward = 2048}) == 60'506'624);
    CHECK(parameters({.layers = 24, .hidden = 1024, .heads = 16, .feed_forward = 4096}) == 737'668'096);
    CHECK(parameters({.layers = 24, .hidden = 1024, .heads = 32, .head_size = 128, .feed_forward = 16384}) == 2'851'598'336);
    CHECK(parameters({.layers = 24, .hidden = 1024, .heads = 128, .head_size = 128, .feed_forward = 65536}) == 11'307'321'344);
    // v1.1: gated, not tied.
    CHECK(parameters({.feed_forward = 2048, .gated = true, .tied = false}) == 247'577'856);
    CHECK(parameters({.layers = 24, .hidden = 1024, .heads = 16, .feed_forward = 2816, .gated = true, .tied = false}) == 783'150'080);
}

TEST_CASE("t5: multiply-adds by hand") {
    models::t5_options const o{.head_size = 32, .source = 256, .target = 128, .batch = 2};
    double const b = 2, s = 256, t = 128, h = 768, a = 12 * 32, f = 3072, l = 12;
    double const encoder = s * (4 * h * a + 2 * s * a + 2 * h * f);
    // The decoder projects its queries and results, and keys and values of the encoder's output.
    double const decoder = t * (4 * h * a + 2 * t * a) + 2 * t * h * a + 2 * s * h * a + 2 * t * s * a + 2 * t * h * f;
    CHECK(support::check_model(models::t5(o)).multiply_adds == b * (l * (encoder + decoder) + t * h * 32128));
}

TEST_CASE("t5: relative positions are weights of the self-attention of a stack, shared by its layers and split by heads") {
    auto const model = models::t5({.layers = 2, .source = 32, .target = 16, .batch = 2});
    std::size_t encoder = 0, decoder = 0, without = 0;
    for (std::size_t v = 0; v < model.size(); ++v) {
        auto const& op = model[v].operation;
        if (op.kind != "attention") continue;
        if (op.weights.empty()) {
            ++without;
            continue;
        }
        REQUIRE(op.weights.size() == 1);
        auto const& bias = op.weights[0];
        encoder += bias.parameter == "encoder.positions.bias";
        decoder += bias.parameter == "decoder.positions.bias";
        CHECK(ops::tensor_of(bias) == ops::tensor{{32, 12}});
        CHECK(ops::is_indexed_by(bias, 2));
        CHECK(op.dims[2].kind == ops::dim_kind::parameter);
        double const scores = 2.0 * 12 * static_cast<double>(op.dims[1].extent * op.dims[3].extent);
        CHECK(bias.gradient_flops == scores);
        // The decoder's are causal: of 16 keys a query sees 17 / 2.
        bool const causal = bias.parameter == "decoder.positions.bias";
        CHECK(op.flops == (4 * 64 + 6) * scores * (causal ? 17 / 32.0 : 1) + scores); // and one for each bias
    }
    CHECK(encoder == 2);
    CHECK(decoder == 2);
    CHECK(without == 2);
}

TEST_CASE("t5: with tensor parallelism, devices exchange gradients of normalizations alone") {
    auto const cluster = topology::dgx_a100(1);
    models::t5_options const small{.layers = 2,
                                   .hidden = 64,
                                   .heads = 8,
                                   .head_size = 16,
                                   .feed_forward = 256,
                                   .gated = true,
                                   .source = 64,
                                   .target = 32,
                                   .vocabulary = 512,
                                   .batch = 16};
    auto const problem = make_problem(models::t5(small), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tensor = simulate(problem, tensor_parallel(problem, 8));
    auto const weight_gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    CHECK(data.traffic[weight_gradients] == 14 * 4 * static_cast<double>(models::summarize(problem.graph()).parameters));
    CHECK(tensor.traffic[weight_gradients] == 14 * 4 * 64.0 * (2 * (2 + 3) + 2));
    CHECK(tensor.traffic[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] > 0);
}

TEST_CASE("t5: bad options are refused") {
    CHECK(support::refusal([] { return models::t5({.layers = 0}); }) == "t5: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.layers = 65537}); }) == "t5: layers is 65537: must be at most 65536");
    CHECK(support::refusal([] { return models::t5({.hidden = 0}); }) == "t5: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.heads = -1}); }) == "t5: heads is -1: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.head_size = 0}); }) == "t5: head_size is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.feed_forward = 0}); }) == "t5: feed_forward is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.buckets = 0}); }) == "t5: buckets is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.source = 0}); }) == "t5: source is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.target = INT64_MIN}); }) == "t5: target is -9223372036854775808: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.vocabulary = 0}); }) == "t5: vocabulary is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.batch = 0}); }) == "t5: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::t5({.dropout = -0.5}); }) == "t5: dropout is -0.5: must be at least 0 and below 1");
    CHECK(support::refusal([] { return models::t5({.type = ops::dtype::i8}); }) == "t5: type is i8: must be a floating-point type");
    CHECK(!support::refusal([] { return models::t5({.heads = 1 << 28, .head_size = 1 << 28}); }).empty());
}
