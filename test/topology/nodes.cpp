#include <parsearch/topology/nodes.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::topology;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

namespace {

/// The vertices that a route passes after its first device.
std::vector<std::string> stops(cluster const& c, std::uint32_t a, std::uint32_t b) {
    std::vector<std::string> out;
    for (auto const l : c.route(a, b)) {
        auto const to = c.ends_of(l).to;
        out.push_back(to.what == vertex::type::device ? text(to.number) : c.switches()[to.number]);
    }
    return out;
}
using names = std::vector<std::string>;

picoseconds latency_of(cluster const& c, std::uint32_t a, std::uint32_t b) {
    picoseconds sum{0};
    for (auto const l : c.route(a, b)) sum += c.describe_link(l).latency;
    return sum;
}
/// The rates of the links of a route, in GB/s.
std::vector<double> rates(cluster const& c, std::uint32_t a, std::uint32_t b) {
    std::vector<double> out;
    for (auto const l : c.route(a, b)) out.push_back(c.describe_link(l).rate.bytes_per_second / 1e9);
    return out;
}
} // namespace

TEST_CASE("the P100 cluster of the FlexFlow paper") {
    auto const c = p100_cluster();
    CHECK(c.size() == 16);
    CHECK(c.describe_device(15) == p100_sxm);
    CHECK(c.node_of(3) == 0);
    CHECK(c.node_of(4) == 1);
    CHECK(c.links().size() == 4 * (12 + 8 + 2)); // NVLink pairs, PCIe, interface
    CHECK(stops(c, 0, 3) == names{"3"});
    CHECK(rates(c, 0, 3) == std::vector<double>{20});
    CHECK(stops(c, 1, 14) == names{"node 0 nic 0", "network", "node 3 nic 0", "14"});
    CHECK(rates(c, 1, 14) == std::vector<double>{15.75, 12.5, 12.5, 15.75});
    CHECK(latency_of(c, 1, 14) == microseconds{3});
    // Both GPUs of a node leave through the one interface.
    CHECK(c.route(0, 4)[1] == c.route(3, 9)[1]);
}

TEST_CASE("the K80 cluster of the FlexFlow paper") {
    auto const c = k80_cluster();
    CHECK(c.size() == 64);
    CHECK(stops(c, 0, 1) == names{"node 0 pcie 0", "1"});
    CHECK(latency_of(c, 0, 1) == microseconds{1});
    CHECK(stops(c, 0, 3) == names{"node 0 pcie 0", "node 0 pcie root", "node 0 pcie 1", "3"});
    CHECK(latency_of(c, 0, 3) == microseconds{2});
    CHECK(stops(c, 0, 6) == names{"node 0 pcie 0", "node 0 pcie root", "network", "node 1 pcie root", "node 1 pcie 1", "6"});
    CHECK(rates(c, 0, 6) == std::vector<double>{15.75, 15.75, 7, 7, 15.75, 15.75});
    CHECK(latency_of(c, 0, 6) == microseconds{3});
}

TEST_CASE("DGX H100 and A100: NVSwitch inside, an interface per GPU outside") {
    auto const c = nodes({.count = 4, .gpus_per_node = 8, .device = h100_sxm});
    CHECK(c == dgx_h100(4));
    CHECK(c.size() == 32);
    CHECK(stops(c, 0, 7) == names{"node 0 nvswitch", "7"});
    CHECK(rates(c, 0, 7) == std::vector<double>{370, 370});
    CHECK(latency_of(c, 0, 7) == microseconds{1});
    CHECK(stops(c, 2, 31) == names{"node 0 nic 2", "network", "node 3 nic 7", "31"});
    CHECK(rates(c, 2, 31) == std::vector<double>{63, 48, 48, 63});
    CHECK(c.describe_link(c.route(2, 31)[1]).latency == nanoseconds{500});
    CHECK(c.route(0, 8)[1] != c.route(1, 8)[1]);
    CHECK(rates(dgx_a100(2), 0, 1) == std::vector<double>{232.5, 232.5});
    CHECK(rates(dgx_a100(2), 0, 8) == std::vector<double>{31.5, 24, 24, 31.5});
}

TEST_CASE("switches that reduce: the links to them say so, and nothing else changes") {
    auto const plain = nodes({.count = 2, .device = h100_sxm}), reducing = nodes({.count = 2, .device = h100_sxm, .nvls = true});
    for (auto const l : reducing.links()) {
        auto const& [from, to] = reducing.ends_of(l);
        auto const is_nvswitch = [&](vertex v) {
            return v.what == vertex::type::network_switch && reducing.switches()[v.number].ends_with("nvswitch");
        };
        auto link = reducing.describe_link(l);
        CHECK(link.reduction.bytes_per_second == (is_nvswitch(from) || is_nvswitch(to) ? 308.6e9 : 0));
        link.reduction = {};
        CHECK(link == plain.describe_link(l));
    }
    CHECK(nodes({.count = 2, .gpus_per_node = 1, .device = a100_sxm, .nvls = true}) == nodes({.count = 2, .gpus_per_node = 1, .device = a100_sxm}));
}

TEST_CASE("Summit: two sockets of three") {
    auto const c = summit(2);
    CHECK(c.size() == 12);
    CHECK(stops(c, 0, 2) == names{"2"});
    CHECK(rates(c, 0, 2) == std::vector<double>{50});
    CHECK(stops(c, 0, 3) == names{"node 0 cpu 0", "node 0 cpu 1", "3"});
    CHECK(rates(c, 0, 3) == std::vector<double>{50, 64, 50});
    CHECK(stops(c, 4, 6) == names{"node 0 cpu 1", "network", "node 1 cpu 0", "6"});
    CHECK(rates(c, 4, 6) == std::vector<double>{50, 12.5, 12.5, 50});
    CHECK(c.node_of(5) == 0);
    CHECK(c.node_of(6) == 1);
    CHECK_THROWS_WITH_AS((void)summit(0), doctest::Contains("summit of 0 nodes"), invalid_input);
}

TEST_CASE("options replace what the device brings") {
    auto const c = nodes({.count = 2,
                          .gpus_per_node = 4,
                          .device = h100_sxm,
                          .intra = intra_node::direct,
                          .intra_link = link_description{{1e9}, picoseconds{11}},
                          .nics_per_node = 2,
                          .nic = link_description{{2e9}, picoseconds{7}},
                          .host_link = link_description{{3e9}, picoseconds{5}}});
    CHECK(rates(c, 0, 1) == std::vector<double>{1});
    CHECK(latency_of(c, 0, 1) == picoseconds{11});
    CHECK(stops(c, 1, 6) == names{"node 0 nic 0", "network", "node 1 nic 1", "6"});
    CHECK(rates(c, 1, 6) == std::vector<double>{3, 2, 2, 3});
    CHECK(c.describe_link(c.route(1, 6)[1]).latency == picoseconds{3}); // two unequal halves of 7
    CHECK(latency_of(c, 1, 6) == picoseconds{17});
}

TEST_CASE("a device of one's own, odd numbers, single GPUs and nodes") {
    device_spec const mine{{"mine", 1000}, {}, {}, {}, {}};
    link_description const link{{1e9}, picoseconds{2}};
    CHECK(nodes({.count = 1, .gpus_per_node = 1, .device = mine}).links().empty());
    CHECK(nodes({.count = 1, .gpus_per_node = 2, .device = mine, .intra = intra_node::direct, .intra_link = link}).links().size() == 2);
    auto const odd = nodes({.count = 2, .gpus_per_node = 3, .device = k80});
    CHECK(stops(odd, 0, 2) == names{"node 0 pcie 0", "node 0 pcie root", "node 0 pcie 1", "2"});
    auto const singles = nodes({.count = 3, .gpus_per_node = 1, .device = a100_sxm});
    CHECK(stops(singles, 0, 2) == names{"node 0 nic 0", "network", "node 2 nic 0", "2"});
    CHECK(nodes({.count = 2, .gpus_per_node = 1, .device = k80}).size() == 2);
}

TEST_CASE("mistakes in the options are named") {
    device_spec const mine{{"mine", 1000}, {}, {}, {}, {}};
    auto const refused = [](nodes_options const& o, char const* what) {
        CHECK_THROWS_WITH_AS((void)nodes(o), doctest::Contains(what), invalid_input);
    };
    link_description const link{{1e9}, picoseconds{2}};
    refused({.count = 0, .device = k80}, "nodes of k80: count is 0: must be at least 1");
    refused({.gpus_per_node = 0, .device = k80}, "gpus_per_node is 0");
    refused({.count = 2}, "empty kind");
    refused({.device = mine}, "nodes of mine: intra is not given");
    refused({.device = mine, .intra = intra_node::nvswitch}, "nodes of mine: intra_link is not given");
    refused({.count = 2, .device = mine, .intra = intra_node::nvswitch, .intra_link = link}, "nodes of mine: nics_per_node is not given");
    refused({.count = 2, .device = h100_sxm, .nics_per_node = 3}, "nics_per_node is 3: must divide gpus_per_node, which is 8");
    refused({.count = 2, .device = h100_sxm, .nics_per_node = 0}, "nics_per_node is 0");
    refused({.count = 2, .device = k80, .nics_per_node = 2}, "nics_per_node is 2: must be 1 under a PCIe root");
    refused({.count = 2, .device = h100_sxm, .nic = link_description{{-1e9}, {}}}, "bandwidth of -1e+09 B");
    refused({.device = a100_sxm, .nvls = true}, "nodes of a100_sxm: nvls is true, and intra_link has no rate of reduction: only h100_sxm");
    refused({.device = h100_sxm, .intra = intra_node::direct, .nvls = true}, "nvls is true, and intra is not nvswitch");
    refused({.device = h100_sxm, .intra_link = link_description{{1e9}, {}, {-1e9}}}, "has a rate of reduction of -1e+09 B/s");
    refused({.count = 100000, .gpus_per_node = 100000, .device = h100_sxm}, "100000 nodes of 100000 GPUs: a cluster holds at most 131072");
}
