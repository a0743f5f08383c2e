#include <parsearch/models/bert.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("bert: BERT-Large has about 335 M parameters, 335,174,458 with the masked-token head") {
    CHECK(support::check_model(models::bert({.batch = 2})).parameters == 335'174'458);
}

TEST_CASE("bert: both heads of pre-training have 336,226,108 parameters") {
    CHECK(support::check_model(models::bert({.batch = 2, .next_sentence = true}), 2).parameters == 336'226'108);
}

TEST_CASE("bert: BERT-Base with the masked-token head has 109,514,298 parameters") {
    CHECK(models::summarize(models::bert({.layers = 12, .hidden = 768, .heads = 12, .batch = 1})).parameters == 109'514'298);
}

TEST_CASE("bert: multiply-adds by hand") {
    double const b = 2, s = 128, h = 1024, l = 24, v = 30522;
    auto const sum = models::summarize(models::bert({.sequence = 128, .batch = 2}));
    // A block: 4 projections, 2 products of attention, 2 layers of 4h; the head: one dense layer and the vocabulary.
    CHECK(sum.multiply_adds == b * s * (l * (4 * h * h + 2 * s * h + 8 * h * h) + h * h + h * v));
}

TEST_CASE("bert: the head of the masked tokens alone") {
    double const b = 2, h = 1024, v = 30522;
    auto const all = models::summarize(models::bert({.sequence = 128, .batch = 2}));
    auto const masked = support::check_model(models::bert({.sequence = 128, .batch = 2, .predictions = 20}));
    CHECK(masked.parameters == models::summarize(models::bert({.sequence = 128, .batch = 2})).parameters);
    CHECK(all.multiply_adds - masked.multiply_adds == b * (128 - 20) * (h * h + h * v));
    CHECK(support::refusal([] { return models::bert({.sequence = 128, .predictions = 129}); }) ==
          "bert: predictions is 129: must be at most sequence, which is 128");
}

TEST_CASE("bert: bad options are refused") {
    CHECK(support::refusal([] { return models::bert({.hidden = 1000}); }) == "bert: hidden is 1000: must be a multiple of heads, which is 16");
    CHECK(support::refusal([] { return models::bert({.layers = -1}); }) == "bert: layers is -1: must be at least 1");
    CHECK(support::refusal([] { return models::bert({.batch = 0}); }) == "bert: batch is 0: must be at least 1");
}
