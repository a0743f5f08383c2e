#include <parsearch/models/rnntc.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

namespace {
constexpr models::rnntc_options small{.layers = 3, .hidden = 16, .steps = 10, .vocabulary = 50, .classes = 4, .batch = 8};
}

TEST_CASE("rnntc: shared parameters count once, whatever the number of steps") {
    auto longer = small;
    longer.steps = 40;
    auto const s10 = support::check_model(models::rnntc(small)), s40 = support::check_model(models::rnntc(longer));
    CHECK(s10.parameters == 50 * 16 + 3 * support::lstm_parameters(16) + 16 * 4 + 4);
    CHECK(s40.parameters == s10.parameters);
    CHECK(s10.multiply_adds == 8 * (10 * 3 * 8 * 16 * 16 + 16 * 4));
    CHECK(s40.multiply_adds == 8 * (40 * 3 * 8 * 16 * 16 + 16 * 4));
    CHECK(s10.operators == 10 * (1 + 3) + 2);
}

TEST_CASE("rnntc: without sharing each step has its own") {
    auto own = small;
    own.unroll_shared = false;
    CHECK(support::check_model(models::rnntc(own)).parameters == 10 * (50 * 16 + 3 * support::lstm_parameters(16)) + 16 * 4 + 4);
}

TEST_CASE("rnntc: the defaults are those of the paper") {
    auto const model = models::rnntc();
    support::check_model(model);
    CHECK(support::count(model, "lstm_cell") == 4 * 40);
}

TEST_CASE("rnntc: bad options are refused") {
    CHECK(support::refusal([] { return models::rnntc({.layers = 0}); }) == "rnntc: layers is 0: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.hidden = 0}); }) == "rnntc: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.steps = 0}); }) == "rnntc: steps is 0: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.layers = 70000}); }) == "rnntc: layers is 70000: must be at most 65536");
    CHECK(support::refusal([] { return models::rnntc({.layers = 65536, .steps = 2}); }) == "rnntc: layers * steps is 131072: must be at most 65536");
    CHECK(support::refusal([] { return models::rnntc({.vocabulary = -5}); }) == "rnntc: vocabulary is -5: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.classes = 0}); }) == "rnntc: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.batch = 0}); }) == "rnntc: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::rnntc({.type = ops::dtype::i32}); }) == "rnntc: type is i32: must be a floating-point type");
}
