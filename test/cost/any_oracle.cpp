#include <parsearch/cost/any_oracle.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/units.hpp>
#include <parsearch/cost/collectives.hpp>
#include <parsearch/ops/shard.hpp>

#include "support/product.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {

/// An oracle of devices with names, which knows links and collectives, and how often it was asked.
struct named_oracle {
    mutable int asked = 0;
    picoseconds shard_time(ops::shard_work const&, std::string const& device) const {
        ++asked;
        return picoseconds{static_cast<std::int64_t>(device.size()) * 100 + asked};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const&) const { return picoseconds{2 * bytes}; }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count bytes, collective_group const&) const { return picoseconds{3 * bytes}; }
};

struct plain_oracle {
    picoseconds operator()(ops::shard_work const&, std::uint32_t device) const { return picoseconds{device + 1}; }
};

} // namespace

TEST_CASE("any_oracle: asks with the handle of the device number, and for links and collectives") {
    any_oracle const oracle(named_oracle{}, std::vector<std::string>{"a", "long"});
    auto const op = support::product(4, 4, 4);
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const work = ops::work_of(op, whole, ops::pass::forward);
    CHECK(oracle.shard_time(work, 0).count() == 101);
    CHECK(oracle.shard_time(work, 1).count() == 402);
    CHECK(oracle.transfer_time(7, {}).count() == 14);
    CHECK(oracle.collective_time(collective_kind::all_reduce, 7, {}).count() == 21);
}

TEST_CASE("any_oracle: what an oracle leaves out has the library's times") {
    any_oracle const oracle(plain_oracle{}, std::vector<std::uint32_t>{0, 1, 2});
    link_description const link{.rate = {1e9}, .latency = picoseconds{5}};
    CHECK(oracle.transfer_time(1000, link) == transfer_time(plain_oracle{}, 1000, link));
    collective_group const group{
        .size = 4, .per_node = 4, .ring_rate = {1e9}, .ring_latency = picoseconds{5}, .inside_rate = {1e9}, .inside_latency = picoseconds{5}};
    CHECK(oracle.collective_time(collective_kind::all_reduce, 1000, group) == alpha_beta{}.collective_time(collective_kind::all_reduce, 1000, group));
}

TEST_CASE("any_oracle: a copy asks a copy") {
    any_oracle first(named_oracle{}, std::vector<std::string>{"a"});
    auto const op = support::product(4, 4, 4);
    std::array<std::int32_t, 3> const whole{1, 1, 1};
    auto const work = ops::work_of(op, whole, ops::pass::forward);
    CHECK(first.shard_time(work, 0).count() == 101);
    auto second = first;
    CHECK(second.shard_time(work, 0).count() == 102);
    CHECK(second.shard_time(work, 0).count() == 103);
    CHECK(first.shard_time(work, 0).count() == 102);
    second = first;
    CHECK(second.shard_time(work, 0).count() == 103);
    first = std::move(second);
    CHECK(first.shard_time(work, 0).count() == 104);
}
