#include <parsearch/models/vit.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("vit: ViT-B/16 has 86,567,656 parameters, 17.6 G multiply-adds of an image") {
    auto const model = models::vit({.batch = 2});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 86'567'656);
    // Patches, blocks over the 196 patches and the token, classifier.
    double const n = 196, l = n + 1, h = 768;
    CHECK(s.multiply_adds == 2 * (n * h * 3 * 16 * 16 + 12 * l * (12 * h * h + 2 * l * h) + h * 1000));
    CHECK(support::count(model, "dropout") == 1 + 2 * 12);
    CHECK(support::count(models::vit({.batch = 2, .dropout = 0}), "dropout") == 0);
}

TEST_CASE("vit: parameters of the others as published for torchvision") {
    auto const parameters = [](models::vit_options const& o) { return models::summarize(models::vit(o)).parameters; };
    CHECK(parameters({.patch = 32}) == 88'224'232);
    CHECK(parameters({.layers = 24, .hidden = 1024, .heads = 16}) == 304'326'632);
    CHECK(parameters({.patch = 32, .layers = 24, .hidden = 1024, .heads = 16}) == 306'535'400);
    CHECK(parameters({.patch = 14, .layers = 32, .hidden = 1280, .heads = 16}) == 632'045'800);
    CHECK(parameters({.image = 384}) == 86'859'496);
}

TEST_CASE("vit: mean pooling has neither the token nor its position") {
    auto const model = models::vit({.pooling = models::token_pooling::mean, .batch = 2});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 86'567'656 - 2 * 768);
    double const n = 196, h = 768;
    CHECK(s.multiply_adds == 2 * (n * h * 3 * 16 * 16 + 12 * n * (12 * h * h + 2 * n * h) + h * 1000));
    CHECK(support::count(model, "reduce_mean") == 1);
    CHECK(support::count(model, "concat") == 0);
}

TEST_CASE("vit: data parallelism exchanges every gradient once, tensor parallelism few") {
    auto const cluster = topology::dgx_a100(1);
    models::vit_options const small{
        .image = 64, .patch = 8, .layers = 2, .hidden = 128, .heads = 8, .pooling = models::token_pooling::mean, .classes = 64, .batch = 16};
    auto const problem = make_problem(models::vit(small), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tensor = simulate(problem, tensor_parallel(problem, 8));
    auto const weight_gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    CHECK(data.traffic[weight_gradients] == 14 * 4 * static_cast<double>(models::summarize(problem.graph()).parameters));
    // What is not split: five normalizations of two vectors, and the biases behind partial sums: of attention, the second linear layer, the
    // classifier.
    CHECK(tensor.traffic[weight_gradients] == 14 * 4 * (128.0 * (5 * 2 + 2 * 2) + 64));
}

TEST_CASE("vit: bad options are refused") {
    CHECK(support::refusal([] { return models::vit({.image = 225}); }) == "vit: image is 225: must be a multiple of patch, which is 16");
    CHECK(support::refusal([] { return models::vit({.image = 0}); }) == "vit: image is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.patch = 0}); }) == "vit: patch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.layers = 0}); }) == "vit: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.layers = 70000}); }) == "vit: layers is 70000: must be at most 65536");
    CHECK(support::refusal([] { return models::vit({.hidden = 770}); }) == "vit: hidden is 770: must be a multiple of heads, which is 12");
    CHECK(support::refusal([] { return models::vit({.heads = 0}); }) == "vit: heads is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.pooling = static_cast<models::token_pooling>(2)}); }) ==
          "vit: pooling is number 2: must be one of those declared");
    CHECK(support::refusal([] { return models::vit({.classes = 0}); }) == "vit: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.batch = 0}); }) == "vit: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vit({.dropout = 1}); }) == "vit: dropout is 1: must be at least 0 and below 1");
    CHECK(support::refusal([] { return models::vit({.type = ops::dtype::i64}); }) == "vit: type is i64: must be a floating-point type");
    CHECK(!support::refusal([] { return models::vit({.image = 1 << 28, .patch = 1, .hidden = 1 << 28, .heads = 1, .batch = 1 << 28}); }).empty());
}
