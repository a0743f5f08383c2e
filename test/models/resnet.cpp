#include <parsearch/models/resnet.hpp>

#include <cstdint>

#include <doctest/doctest.h>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("resnet: depth 50 has 25,557,032 parameters, 4.09 G multiply-adds of an image") {
    auto const model = models::resnet({.batch = 2});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 25'557'032);
    CHECK(s.multiply_adds == 2 * 4'089'184'256.0);
    CHECK(support::count(model, "conv2d") == 53);
}

TEST_CASE("resnet: parameters and multiply-adds of the other depths and variants as published for torchvision") {
    struct known {
        models::resnet_options options;
        std::int64_t parameters;
        double giga;
    };
    known const all[] = {{{.depth = 101, .batch = 1}, 44'549'160, 7.801},
                         {{.depth = 152, .batch = 1}, 60'192'808, 11.514},
                         {{.depth = 50, .groups = 32, .group_width = 4, .batch = 1}, 25'028'904, 4.230},
                         {{.depth = 101, .groups = 32, .group_width = 8, .batch = 1}, 88'791'336, 16.414},
                         {{.depth = 50, .group_width = 128, .batch = 1}, 68'883'240, 11.398}};
    for (auto const& k : all) {
        INFO(k.parameters);
        auto const s = support::check_model(models::resnet(k.options));
        CHECK(s.parameters == k.parameters);
        CHECK(s.multiply_adds / 1e9 == doctest::Approx(k.giga).epsilon(2e-4));
    }
}

TEST_CASE("resnet: the smallest image works") { support::check_model(models::resnet({.image = 32, .batch = 1})); }

TEST_CASE("resnet: bad options are refused") {
    CHECK(support::refusal([] { return models::resnet({.depth = 51}); }) == "resnet: depth is 51: must be 50, 101 or 152");
    CHECK(support::refusal([] { return models::resnet({.groups = 0}); }) == "resnet: groups is 0: must be at least 1");
    CHECK(support::refusal([] { return models::resnet({.group_width = -1}); }) == "resnet: group_width is -1: must be at least 1");
    CHECK(support::refusal([] { return models::resnet({.image = 31}); }) == "resnet: image is 31: must be at least 32");
    CHECK(support::refusal([] { return models::resnet({.batch = 0}); }) == "resnet: batch is 0: must be at least 1");
}
