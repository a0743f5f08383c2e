#include <parsearch/models/nmt.hpp>

#include <cstdint>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

namespace {
constexpr models::nmt_options small{.layers = 2, .hidden = 16, .steps = 10, .vocabulary = 50, .batch = 8};
/// Tables, LSTMs of encoder and decoder, query and attentional state, output layer.
constexpr std::int64_t parameters = 2 * 50 * 16 + 4 * support::lstm_parameters(16) + 16 * 16 + 32 * 16 + 16 * 50 + 50;
} // namespace

TEST_CASE("nmt: shared parameters count once, whatever the number of steps") {
    auto longer = small;
    longer.steps = 40;
    auto const s10 = support::check_model(models::nmt(small), 10), s40 = support::check_model(models::nmt(longer), 40);
    CHECK(s10.parameters == parameters);
    CHECK(s40.parameters == parameters);
}

TEST_CASE("nmt: multiply-adds by hand") {
    // A step: cells, query and attentional state, scores and context over the encoder's states, output layer.
    double const h = 16, step = 4 * 8 * h * h + h * h + 2 * h * h + 2 * 10 * h + 50 * h;
    CHECK(models::summarize(models::nmt(small)).multiply_adds == 8 * 10 * step);
}

TEST_CASE("nmt: without sharing each step has its own") {
    auto own = small;
    own.unroll_shared = false;
    CHECK(support::check_model(models::nmt(own), 10).parameters == 10 * parameters);
}

TEST_CASE("nmt: the defaults are those of the paper") {
    auto const model = models::nmt();
    support::check_model(model, 40);
    CHECK(support::count(model, "lstm_cell") == 4 * 40);
    CHECK(support::count(model, "attention") == 40);
}

TEST_CASE("nmt: bad options are refused") {
    CHECK(support::refusal([] { return models::nmt({.hidden = -8}); }) == "nmt: hidden is -8: must be at least 1");
    CHECK(support::refusal([] { return models::nmt({.batch = 0}); }) == "nmt: batch is 0: must be at least 1");
}
