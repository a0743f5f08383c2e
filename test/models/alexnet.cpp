#include <parsearch/models/alexnet.hpp>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("alexnet: 61,100,840 parameters, 0.714 G multiply-adds of an image") {
    auto const s = support::check_model(models::alexnet({.batch = 2}));
    CHECK(s.parameters == 61'100'840);
    CHECK(s.multiply_adds == 2 * 714'188'480.0);
}

TEST_CASE("alexnet: dropout 0 leaves the operators out") {
    CHECK(support::count(models::alexnet(), "dropout") == 2);
    auto const s = support::check_model(models::alexnet({.dropout = 0}));
    CHECK(s.parameters == 61'100'840);
    CHECK(support::count(models::alexnet({.dropout = 0}), "dropout") == 0);
}

TEST_CASE("alexnet: the smallest image works") { support::check_model(models::alexnet({.image = 63, .batch = 1})); }

TEST_CASE("alexnet: bad options are refused") {
    CHECK(support::refusal([] { return models::alexnet({.batch = 0}); }) == "alexnet: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::alexnet({.image = 62}); }) == "alexnet: image is 62: must be at least 63");
    CHECK(support::refusal([] { return models::alexnet({.classes = 0}); }) == "alexnet: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::alexnet({.dropout = 1}); }) == "alexnet: dropout is 1: must be at least 0 and below 1");
    CHECK(support::refusal([] { return models::alexnet({.type = ops::dtype::i64}); }) == "alexnet: type is i64: must be a floating-point type");
}
