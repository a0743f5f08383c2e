#include <parsearch/models/gpt.hpp>

#include <cstddef>
#include <cstdint>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("gpt: GPT-2 small has 124,439,808 parameters, the output layer's shared with the embedding") {
    auto const s = support::check_model(models::gpt({.batch = 2}));
    CHECK(s.parameters == 124'439'808);
}

TEST_CASE("gpt: parameters of GPT-2 medium, large and XL") {
    CHECK(models::summarize(models::gpt({.layers = 24, .hidden = 1024, .heads = 16, .batch = 1})).parameters == 354'823'168);
    CHECK(models::summarize(models::gpt({.layers = 36, .hidden = 1280, .heads = 20, .batch = 1})).parameters == 774'030'080);
    CHECK(models::summarize(models::gpt({.layers = 48, .hidden = 1600, .heads = 25, .batch = 1})).parameters == 1'557'611'200);
}

TEST_CASE("gpt: training flops within 1% of Narayanan et al., SC 2021") {
    // The sizes are rows of the paper's table 1, the README's example and GPT-2 small.
    models::gpt_options const all[] = {{.layers = 24, .hidden = 2304, .heads = 24, .sequence = 2048, .vocabulary = 51200, .batch = 8},
                                       {.layers = 30, .hidden = 3072, .heads = 32, .sequence = 2048, .vocabulary = 51200, .batch = 8},
                                       {.layers = 48, .hidden = 8192, .heads = 64, .sequence = 2048, .vocabulary = 51200, .batch = 4},
                                       {.layers = 96, .hidden = 12288, .heads = 96, .sequence = 2048, .vocabulary = 51200, .batch = 2},
                                       {.layers = 128, .hidden = 25600, .heads = 160, .sequence = 2048, .vocabulary = 51200, .batch = 1},
                                       {.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048, .batch = 64},
                                       {}};
    for (auto o : all) {
        o.flash = false; // all scores are computed, as that formula has it
        double const l = static_cast<double>(o.layers), h = static_cast<double>(o.hidden), s = static_cast<double>(o.sequence);
        double const v = static_cast<double>(o.vocabulary), b = static_cast<double>(o.batch);
        double const expected = 72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
        auto const sum = support::check_model(models::gpt(o));
        INFO("hidden ", o.hidden);
        CHECK(sum.training_flops / expected == doctest::Approx(1).epsilon(0.01));
        // A third of it is the forward pass, two flops per multiply-add.
        CHECK(6 * sum.multiply_adds / expected == doctest::Approx(1).epsilon(1e-6));
        o.flash = true;
        double const half = 72 * b * s * l * h * h * (1 + s / (12 * h) + v / (12 * l * h));
        CHECK(models::summarize(models::gpt(o)).training_flops / half == doctest::Approx(1).epsilon(0.01));
    }
}

TEST_CASE("gpt: dropout 0 leaves the operators out, other types are carried through") {
    CHECK(support::count(models::gpt({.layers = 3, .batch = 1}), "dropout") == 7);
    CHECK(support::count(models::gpt({.layers = 3, .batch = 1, .dropout = 0}), "dropout") == 0);
    auto const model = models::gpt({.layers = 1, .batch = 1, .type = ops::dtype::bf16});
    support::check_model(model);
    for (std::size_t v = 0; v < model.size(); ++v)
        if (model[v].name == "logits") CHECK(model[v].operation.outputs.front().type == ops::dtype::bf16);
}

TEST_CASE("gpt: bad options are refused") {
    CHECK(support::refusal([] { return models::gpt({.layers = 0}); }) == "gpt: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.hidden = 770, .heads = 12}); }) ==
          "gpt: hidden is 770: must be a multiple of heads, which is 12");
    CHECK(support::refusal([] { return models::gpt({.hidden = 0}); }) == "gpt: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.heads = 0}); }) == "gpt: heads is 0: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.sequence = -1}); }) == "gpt: sequence is -1: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.vocabulary = 0}); }) == "gpt: vocabulary is 0: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.batch = 0}); }) == "gpt: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::gpt({.batch = INT64_MAX}); }) == "gpt: batch is 9223372036854775807: must be at most 2^28");
    CHECK(support::refusal([] { return models::gpt({.type = ops::dtype::i8}); }) == "gpt: type is i8: must be a floating-point type");
    CHECK(support::refusal([] { return models::gpt({.dropout = 1}); }) == "gpt: dropout is 1: must be at least 0 and below 1");
}

TEST_CASE("gpt: inference keeps keys and values, and looks positions up behind what is cached") {
    models::gpt_options o{.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 512, .batch = 8, .inference = true};
    auto const prefill = models::summarize(models::gpt(o));
    CHECK(prefill.parameters ==
          models::summarize(models::gpt({.layers = 2, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 512})).parameters);
    CHECK(prefill.cache == 2 * 2 * 8 * 32 * 64 * 4);
    CHECK(support::count(models::gpt(o), "dropout") == 0);
    o.sequence = 1;
    o.cached = 31;
    auto const step = models::summarize(models::gpt(o));
    CHECK(step.parameters == prefill.parameters);
    CHECK(step.cache == prefill.cache);
    CHECK(step.multiply_adds < prefill.multiply_adds / 16);
}
