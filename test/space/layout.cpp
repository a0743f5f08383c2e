#include <parsearch/space/layout.hpp>

#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/conv.hpp>

using namespace parsearch;

TEST_CASE("layout: dims whose shards talk most come first") {
    auto const conv = ops::conv2d{.out = 4}.infer(std::vector<ops::tensor>{{{8, 2, 6, 6}}});
    std::vector<std::string> names;
    for (auto const k : space::inner_dims_first(conv)) names.push_back(conv.dims[k].name);
    CHECK(names == std::vector<std::string>{"c", "o", "h", "w", "s"});
}

TEST_CASE("layout: split dims take strides from the inside out") {
    auto const conv = ops::conv2d{.out = 4}.infer(std::vector<ops::tensor>{{{8, 2, 6, 6}}});
    auto c = space::whole(conv);
    c.degree = {4, 2, 3, 1, 1};
    space::lay_out(c, space::inner_dims_first(conv), 5);
    CHECK(std::vector<std::int32_t>(c.stride.begin(), c.stride.begin() + 5) == std::vector<std::int32_t>{30, 5, 10, 0, 0});
}

TEST_CASE("layout: largest divisor") {
    CHECK(space::largest_divisor(12, 5) == 4);
    CHECK(space::largest_divisor(12, 12) == 12);
    CHECK(space::largest_divisor(12, 100) == 12);
    CHECK(space::largest_divisor(13, 12) == 1);
    CHECK(space::largest_divisor(13, 0) == 1);
    CHECK(space::largest_divisor(1, 8) == 1);
    CHECK(space::sample_parts(64, 15, false) == 8);
    CHECK(space::sample_parts(64, 15, true) == 15);
    CHECK(space::sample_parts(16, 15, true) == 8); // 15 parts have a largest of 2, too
    CHECK(space::sample_parts(4, 15, true) == 4);
    CHECK(space::sample_parts(4, 0, true) == 1);
}
