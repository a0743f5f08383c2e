#include <parsearch/models/vgg.hpp>

#include <array>
#include <cstdint>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("vgg: depth 16 has 138,357,544 parameters, 15.5 G multiply-adds of an image") {
    auto const s = support::check_model(models::vgg({.batch = 2}));
    CHECK(s.parameters == 138'357'544);
    CHECK(s.multiply_adds / 2e9 == doctest::Approx(15.470).epsilon(1e-4));
}

TEST_CASE("vgg: parameters and multiply-adds of the other depths as published for torchvision") {
    struct known {
        std::int64_t depth, parameters;
        double giga;
    };
    for (auto const& k : {known{11, 132'863'336, 7.609}, known{13, 133'047'848, 11.308}, known{19, 143'667'240, 19.632}}) {
        INFO(k.depth);
        auto const s = support::check_model(models::vgg({.depth = k.depth, .batch = 1}));
        CHECK(s.parameters == k.parameters);
        CHECK(s.multiply_adds / 1e9 == doctest::Approx(k.giga).epsilon(1e-4));
    }
}

TEST_CASE("vgg: bad options are refused") {
    CHECK(support::refusal([] { return models::vgg({.depth = 12}); }) == "vgg: depth is 12: must be 11, 13, 16 or 19");
    CHECK(support::refusal([] { return models::vgg({.batch = 0}); }) == "vgg: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::vgg({.image = 31}); }) == "vgg: image is 31: must be at least 32");
    CHECK(support::refusal([] { return models::vgg({.dropout = -0.5}); }) == "vgg: dropout is -0.5: must be at least 0 and below 1");
}
