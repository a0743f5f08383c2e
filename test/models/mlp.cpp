#include <parsearch/models/mlp.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("mlp: parameters and multiply-adds by hand") {
    auto const s = support::check_model(models::mlp({.features = 20, .hidden = {30, 40}, .classes = 5, .batch = 8}));
    CHECK(s.parameters == (20 * 30 + 30) + (30 * 40 + 40) + (40 * 5 + 5));
    CHECK(s.multiply_adds == 8 * (20 * 30 + 30 * 40 + 40 * 5));
    CHECK(s.operators == 6);
}

TEST_CASE("mlp: Unity's 16 layers of 8192 have 1,073,872,896 parameters") {
    auto const model = models::mlp({.features = 8192, .hidden = std::vector<std::int64_t>(15, 8192), .classes = 8192, .batch = 2});
    auto const s = support::check_model(model);
    CHECK(support::count(model, "linear") == 16);
    CHECK(s.parameters == 16 * (8192LL * 8192 + 8192));
    CHECK(s.parameters == 1'073'872'896);
    CHECK(s.multiply_adds == 2 * 16 * 8192.0 * 8192.0);
}

TEST_CASE("mlp: without hidden layers only the weights' gradient costs a second product") {
    auto const s = support::check_model(models::mlp({.features = 4096, .hidden = {}, .classes = 4096, .batch = 64}));
    CHECK(s.training_flops == doctest::Approx(4.0 * 64 * 4096 * 4096).epsilon(0.01));
}

TEST_CASE("mlp: bad options are refused") {
    CHECK(support::refusal([] { return models::mlp({.batch = 0}); }) == "mlp: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::mlp({.hidden = {8, -1}}); }) == "mlp: hidden is -1: must be at least 1");
    CHECK(support::refusal([] { return models::mlp({.features = 0}); }) == "mlp: features is 0: must be at least 1");
    CHECK(support::refusal([] { return models::mlp({.classes = 0}); }) == "mlp: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::mlp({.type = ops::dtype::i32}); }) == "mlp: type is i32: must be a floating-point type");
}
