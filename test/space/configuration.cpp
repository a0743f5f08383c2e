#include <parsearch/space/configuration.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/linear.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {
/// Dims s (8, sample), o (6, parameter), k (4, reduction).
ops::operation linear() { return ops::linear{.out = 6}.infer(std::vector<ops::tensor>{{{8, 4}}}); }

space::configuration made(std::vector<std::int32_t> const& degrees, std::vector<std::int32_t> const& strides, std::int32_t start) {
    space::configuration c{.rank = static_cast<std::uint32_t>(degrees.size()), .start = start};
    std::copy(degrees.begin(), degrees.end(), c.degree.begin());
    std::copy(strides.begin(), strides.end(), c.stride.begin());
    return c;
}
std::string refused(space::configuration const& c) {
    return support::refusal([&] {
        space::validate(c, linear(), 8, "fc");
        return 0;
    });
}
} // namespace

TEST_CASE("configuration: shard numbers are row major, devices start plus strides") {
    auto const c = made({2, 3, 1}, {1, 2, 0}, 1);
    CHECK(c.shards() == 6);
    std::vector<std::int32_t> devices;
    for (int n = 0; n < 6; ++n) devices.push_back(c.device(n));
    CHECK(devices == std::vector<std::int32_t>{1, 3, 5, 2, 4, 6});
    CHECK(refused(c) == "");
    CHECK(to_string(c, linear()) == "s2 o3 @1+1,2");
}

TEST_CASE("configuration: a list of devices goes before start and strides") {
    auto c = made({2, 1, 2}, {1, 0, 1}, 0);
    c.listed = {7, 7, 0, 3};
    CHECK(c.device(0) == 7);
    CHECK(c.device(3) == 3);
    CHECK(refused(c) == "");
    CHECK(to_string(c, linear()) == "s2 k2 @{7,7,0,3}");
}

TEST_CASE("configuration: whole") {
    auto const c = space::whole(linear(), 5);
    CHECK(c.shards() == 1);
    CHECK(c.device(0) == 5);
    CHECK(to_string(c, linear()) == "whole @5");
    CHECK(refused(c) == "");
    CHECK(c == made({1, 1, 1}, {0, 0, 0}, 5));
    CHECK_FALSE(c == space::whole(linear(), 4));
}

TEST_CASE("configuration: what does not fit is refused") {
    auto const place = std::string("operator 'fc' (linear): configuration ");
    CHECK(refused(made({1, 1}, {}, 0)) == place + "has 2 degrees: the operator has 3 iteration dims");
    CHECK(refused(made({9, 1, 1}, {1, 0, 0}, 0)) == place + "splits dim 's' of extent 8 by 9: must be from 1 to the extent");
    CHECK(refused(made({1, 0, 1}, {}, 0)) == place + "splits dim 'o' of extent 6 by 0: must be from 1 to the extent");
    CHECK(refused(made({-1, 1, 1}, {}, 0)) == place + "splits dim 's' of extent 8 by -1: must be from 1 to the extent");
    CHECK(refused(made({4, 1, 1}, {2, 0, 0}, 3)) == place + "puts shard 3 on device 9: the topology has 8");
    CHECK(refused(made({2, 1, 1}, {-1, 0, 0}, 0)) == place + "puts shard 1 on device -1: the topology has 8");
    // In 32 bits these would wrap around to device 0.
    CHECK(refused(made({8, 1, 1}, {1 << 30, 0, 0}, 0)) == place + "puts shard 1 on device 1073741824: the topology has 8");
    CHECK(refused(made({8, 1, 4}, {0, 0, 1 << 30}, 0)) == place + "puts shard 1 on device 1073741824: the topology has 8");
    CHECK(support::refusal([&] {
              space::validate(made({8, 1, 1}, {1 << 30, 0, 0}, 0), linear(), std::size_t{1} << 31, "fc");
              return 0;
          }) == place + "puts shard 2 on device 2147483648: the topology has 2147483648");
    auto c = made({2, 1, 1}, {}, 0);
    c.listed = {1};
    CHECK(refused(c) == place + "lists 1 devices for 2 shards: must be one each");
    c.listed = {1, 8};
    CHECK(refused(c) == place + "puts shard 1 on device 8: the topology has 8");
    auto fixed = linear();
    fixed.dims[1].kind = ops::dim_kind::fixed;
    CHECK(support::refusal([&] {
              space::validate(made({1, 2, 1}, {0, 1, 0}, 0), fixed, 8, "fc");
              return 0;
          }) == place + "splits dim 'o' by 2: the dim is not divisible");
}

TEST_CASE("configuration: an absurd number of shards is refused at once") {
    ops::operation op{.kind = "huge"};
    for (int k = 0; k < 4; ++k) op.dims.push_back({text("d", k), std::int64_t{1} << 30, ops::dim_kind::attribute});
    constexpr std::int32_t degree = 1 << 30; // 2^120 shards
    CHECK(support::refusal([&] {
              space::validate(made({degree, degree, degree, degree}, {}, 0), op, 8, "x");
              return 0;
          }) == "operator 'x' (huge): configuration makes more than 1048576 shards: too many");
}
