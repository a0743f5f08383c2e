#include <parsearch/models/lenet.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("lenet: 61,706 parameters, 416,520 multiply-adds of an image") {
    auto const s = support::check_model(models::lenet({.batch = 3}));
    CHECK(s.parameters == 61'706);
    // 28^2 * 6 * 25 + 10^2 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10
    CHECK(s.multiply_adds == 3 * 416'520);
}

TEST_CASE("lenet: bad options are refused") {
    CHECK(support::refusal([] { return models::lenet({.batch = 0}); }) == "lenet: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::lenet({.classes = -3}); }) == "lenet: classes is -3: must be at least 1");
    CHECK(support::refusal([] { return models::lenet({.type = ops::dtype::i8}); }) == "lenet: type is i8: must be a floating-point type");
}
