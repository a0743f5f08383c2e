#include <parsearch/cost/profiled_roofline.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

using namespace parsearch;

namespace {
ops::shard_work forward_of(ops::operation const& op) { return ops::work_of(op, std::vector<std::int32_t>(op.dims.size(), 1), ops::pass::forward); }
} // namespace

TEST_CASE("profiled_roofline: the roofline where nothing was measured, and what was measured before it") {
    auto const cluster = topology::p100_cluster(1);
    auto const small = ops::linear{.out = 64}.infer(std::vector<ops::tensor>{{{32, 16}}});
    auto const large = ops::linear{.out = 4096}.infer(std::vector<ops::tensor>{{{4096, 4096}}});
    cost::roofline const roofline(cluster);
    cost::profiled_roofline const plain(cluster);
    for (auto const* const op : {&small, &large}) CHECK(plain.shard_time(forward_of(*op), 2) == roofline(forward_of(*op), 2));

    cost::profile measured;
    measured.add({.device = cluster.describe_device(0).kind, .kernel = cost::kernel_of(forward_of(small)), .time = picoseconds{12345}});
    cost::profiled_roofline const both(cluster, &measured);
    for (int again = 0; again < 2; ++again) { // asked, and remembered
        CHECK(both.shard_time(forward_of(small), 1) == picoseconds{12345});
        CHECK(both.answer(forward_of(small), 1).source == cost::cost_source::exact);
        CHECK(both.shard_time(forward_of(large), 1) == both.answer(forward_of(large), 1).time);
    }
    CHECK(both.shard_time(forward_of(large), 3) > picoseconds{12345});

    cost::profiled_roofline const slow_host(cluster, nullptr, {.host_time = std::chrono::milliseconds(2)});
    CHECK(slow_host.shard_time(forward_of(small), 0) == picoseconds{2'000'000'000});
}

TEST_CASE("profiled_roofline: collectives and the devices that it is for are the roofline's") {
    auto const cluster = topology::p100_cluster(2);
    cost::profiled_roofline const oracle(cluster);
    cost::profile other;
    other.add({.device = "no such device", .kernel = {.op = "x", .pass = ops::pass::forward, .dims = {}, .operands = {}}, .time = picoseconds{1}});
    CHECK(support::refusal([&] { return cost::profiled_roofline(cluster, &other); }).find("must have some on a kind of device of the topology") !=
          std::string::npos);
    std::vector<device_description> none;
    CHECK(support::refusal([&] {
              oracle.require_devices(none);
              return 0;
          }) != "");
}
