#include <parsearch/models/inception_v3.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("inception_v3: 23,834,568 parameters, 5.7 G multiply-adds of an image") {
    auto const model = models::inception_v3({.batch = 2});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 23'834'568);
    CHECK(s.multiply_adds / 2e9 == doctest::Approx(5.713).epsilon(2e-4));
    CHECK(support::count(model, "conv2d") == 94);
}

TEST_CASE("inception_v3: the smallest image works") { support::check_model(models::inception_v3({.image = 75, .batch = 1})); }

TEST_CASE("inception_v3: bad options are refused") {
    CHECK(support::refusal([] { return models::inception_v3({.image = 74}); }) == "inception_v3: image is 74: must be at least 75");
    CHECK(support::refusal([] { return models::inception_v3({.classes = 0}); }) == "inception_v3: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::inception_v3({.batch = 0}); }) == "inception_v3: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::inception_v3({.dropout = 1.5}); }) == "inception_v3: dropout is 1.5: must be at least 0 and below 1");
}
