#include <parsearch/models/rnnlm.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

namespace {
constexpr models::rnnlm_options small{.layers = 2, .hidden = 16, .steps = 10, .vocabulary = 50, .batch = 8};
}

TEST_CASE("rnnlm: shared parameters count once, whatever the number of steps") {
    auto longer = small;
    longer.steps = 40;
    auto const s10 = support::check_model(models::rnnlm(small), 10), s40 = support::check_model(models::rnnlm(longer), 40);
    CHECK(s10.parameters == 50 * 16 + 2 * support::lstm_parameters(16) + 16 * 50 + 50);
    CHECK(s40.parameters == s10.parameters);
    CHECK(s10.multiply_adds == 8 * 10 * (2 * 8 * 16 * 16 + 16 * 50));
    CHECK(s40.multiply_adds == 4 * s10.multiply_adds);
    CHECK(s10.operators == 10 * (1 + 2 + 2));
}

TEST_CASE("rnnlm: without sharing each step has its own") {
    auto own = small;
    own.unroll_shared = false;
    CHECK(support::check_model(models::rnnlm(own), 10).parameters == 10 * (50 * 16 + 2 * support::lstm_parameters(16) + 16 * 50 + 50));
}

TEST_CASE("rnnlm: the defaults are those of the paper") {
    auto const model = models::rnnlm();
    support::check_model(model, 40);
    CHECK(support::count(model, "lstm_cell") == 2 * 40);
}

TEST_CASE("rnnlm: bad options are refused") {
    CHECK(support::refusal([] { return models::rnnlm({.steps = -1}); }) == "rnnlm: steps is -1: must be at least 1");
    CHECK(support::refusal([] { return models::rnnlm({.batch = 0}); }) == "rnnlm: batch is 0: must be at least 1");
}
