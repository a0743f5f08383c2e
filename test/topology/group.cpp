#include <parsearch/topology/group.hpp>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>
#include <parsearch/topology/regular_clusters.hpp>

using namespace parsearch;
using namespace parsearch::topology;
using std::chrono::microseconds;

namespace {
dense_topology dense(cluster const& c) { return read_topology(c).topology; }
ring_group group(dense_topology const& t, std::vector<std::uint32_t> const& members) { return describe_group(t, members); }
std::vector<std::uint32_t> first(std::uint32_t n) {
    std::vector<std::uint32_t> v;
    for (std::uint32_t i = 0; i < n; ++i) v.push_back(i);
    return v;
}
} // namespace

namespace {
/// Four nodes of two GPUs: each node's GPUs are joined to its network device, and the network devices in a circle and across.
cluster circle(std::vector<std::vector<std::uint32_t>> const& orders) {
    cluster_builder b;
    std::vector<vertex> network;
    for (std::uint32_t n = 0; n < 4; ++n) {
        network.push_back(b.add_switch(text("network ", n)));
        auto const first = b.add_device(v100_sxm, n), second = b.add_device(v100_sxm, n);
        b.add_duplex_link(first, second, {100e9}, microseconds{1});
        b.add_duplex_link(first, network[n], {40e9}, microseconds{1});
        b.add_duplex_link(second, network[n], {40e9}, microseconds{1});
    }
    for (std::uint32_t n = 0; n < 4; ++n) b.add_duplex_link(network[n], network[(n + 1) % 4], {10e9}, microseconds{2});
    for (auto const& order : orders) b.add_ring(order);
    return b.build();
}
double rate_of(bandwidth b) { return b.bytes_per_second; }
} // namespace

TEST_CASE("rings of a topology: nodes in their orders, all rings at once, each with an equal part") {
    auto const plain = group(dense(circle({})), first(8)).shape, one = group(dense(circle({{0, 1, 2, 3}})), first(8)).shape;
    CHECK(plain.ring_rate == one.ring_rate);
    CHECK(rate_of(plain.ring_rate) == doctest::Approx(10e9));
    CHECK(rate_of(plain.between_rate) == doctest::Approx(5e9)); // both GPUs of a node at once

    auto const both_ways = dense(circle({{0, 1, 2, 3}, {3, 2, 1, 0}}));
    auto const two = group(both_ways, first(8));
    CHECK(rate_of(two.shape.ring_rate) == doctest::Approx(20e9)); // half of the bytes each way
    CHECK(rate_of(two.shape.between_rate) == doctest::Approx(10e9));
    CHECK(two.shape.inside_rate == plain.inside_rate);
    CHECK(two.shape.ring_latency == plain.ring_latency);
    // The rings enter a node at one GPU and leave it at the other, the second ring the other way round: all links of the circle are passed
    // once, all links to network devices, and those between the GPUs of a node both ways.
    CHECK(two.links.size() == 8 + 16 + 8);
    for (auto const& use : two.links) CHECK(use.share == doctest::Approx(10e9 / rate_of(both_ways.links[use.link].rate)));

    // Groups on other nodes have the ring of their numbers.
    CHECK(group(both_ways, {0, 1, 2, 3, 4, 5}).shape == group(dense(circle({})), {0, 1, 2, 3, 4, 5}).shape);
    // One device per node: the rings again. An order of three nodes serves exactly these.
    CHECK(rate_of(group(both_ways, {0, 2, 4, 6}).shape.ring_rate) == doctest::Approx(20e9));
    // Crosswise two of the hops are of two links. Each of four devices sends and receives over its own.
    CHECK(group(dense(circle({{0, 2, 1, 3}})), {0, 2, 4, 6}).links.size() == 6 + 8);
    CHECK(group(dense(circle({})), {0, 2, 4, 6}).links.size() == 4 + 8);
}

TEST_CASE("exchanges: the rate at which all send to all, by the fullest link") {
    auto const t = dense(circle({{0, 1, 2, 3}, {3, 2, 1, 0}}));
    auto const members = first(8);
    auto const all = with_exchange(t, members, group(t, members));
    std::vector<int> passed(t.links.size(), 0);
    picoseconds latency{0};
    for (auto const a : members)
        for (auto const b : members) {
            picoseconds sum{0};
            for (auto const l : t.route(a, b)) {
                ++passed[l];
                sum += t.links[l].latency;
            }
            latency = std::max(latency, sum);
        }
    double slowest = 0;
    std::size_t held = 0;
    for (std::size_t l = 0; l < t.links.size(); ++l) {
        slowest = std::max(slowest, passed[l] / rate_of(t.links[l].rate));
        held += passed[l] > 0;
    }
    CHECK(rate_of(all.shape.exchange_rate) == doctest::Approx(7 / slowest));
    CHECK(all.shape.exchange_latency == latency);
    REQUIRE(all.links.size() == held);
    for (auto const& use : all.links) CHECK(use.share == doctest::Approx(passed[use.link] / rate_of(t.links[use.link].rate) / slowest));
    auto rest = all.shape;
    rest.exchange_rate = {};
    rest.exchange_latency = {};
    CHECK(rest == group(t, members).shape);
}

TEST_CASE("two nodes of H100: NVLink inside, an interface per GPU between") {
    auto const t = dense(dgx_h100(2));
    auto const all = group(t, first(16));
    CHECK(all.shape.size == 16);
    CHECK(all.shape.nodes == 2);
    CHECK(all.shape.per_node == 8);
    // Eight rings at once, each with an eighth of the bytes. A ring passes the switch in seven hops of its eight on a node: NVLink bounds them
    // at 370 GB/s * 8 / 7, the interfaces, of which a ring passes one out and one in, at 8 * 48 GB/s. A hop between nodes: 1 us interface, 2 us PCIe.
    CHECK(all.shape.ring_rate.bytes_per_second == doctest::Approx(384e9));
    CHECK(all.shape.ring_latency == microseconds{3});
    CHECK(all.shape.inside_rate.bytes_per_second == doctest::Approx(370e9));
    CHECK(all.shape.inside_latency == microseconds{1});
    CHECK(all.shape.between_rate.bytes_per_second == doctest::Approx(48e9));
    CHECK(all.shape.between_latency == microseconds{3});
    // Of each GPU two links to the switch, passed by seven rings, two to its interface and two of the interface, passed by one.
    CHECK(all.links.size() == 16 * 6);
    for (std::size_t i = 0; i < all.links.size(); ++i) {
        auto const rate = t.links[all.links[i].link].rate.bytes_per_second;
        CHECK(all.links[i].share == doctest::Approx(384e9 / 8 / rate * (rate == 370e9 ? 7 : 1)));
        if (i > 0) CHECK(all.links[i - 1].link < all.links[i].link);
    }

    auto const inside = group(t, {8, 9, 11});
    CHECK(inside.shape.nodes == 1);
    CHECK(inside.shape.per_node == 3);
    CHECK(inside.shape.ring_rate.bytes_per_second == doctest::Approx(370e9));
    CHECK(inside.shape.inside_rate == inside.shape.ring_rate);
    CHECK(inside.links.size() == 6);

    auto const one_each = group(t, {3, 11});
    CHECK(one_each.shape.nodes == 2);
    CHECK(one_each.shape.per_node == 1);
    CHECK(one_each.shape.between_rate == one_each.shape.ring_rate);
    CHECK(one_each.shape.between_latency == one_each.shape.ring_latency);
    CHECK(one_each.links.size() == 8);
}

TEST_CASE("P100 nodes: rings of all their GPUs share the one interface, as do four rings of one GPU per node") {
    auto const t = dense(p100_cluster(4));
    auto const all = group(t, first(16)).shape;
    CHECK(all.nodes == 4);
    CHECK(all.per_node == 4);
    CHECK(all.ring_rate.bytes_per_second == doctest::Approx(12.5e9));
    CHECK(all.inside_rate.bytes_per_second == doctest::Approx(20e9));
    CHECK(all.between_rate.bytes_per_second == doctest::Approx(12.5e9 / 4));
}

TEST_CASE("K80 nodes: links of the tree that several hops pass are shared") {
    auto const t = dense(k80_cluster(1));
    // 0 -> 1 and 2 -> 3 stay under a switch; 1 -> 2 and 3 -> 0 pass the root, one each way of each pair's link.
    auto const ordered = group(t, {0, 1, 2, 3});
    CHECK(ordered.shape.ring_rate.bytes_per_second == doctest::Approx(15.75e9));
    CHECK(ordered.shape.ring_latency == microseconds{2});
    // Members are taken in device order, and each once.
    auto const shuffled = group(t, {2, 0, 3, 1, 0});
    CHECK(shuffled.shape == ordered.shape);
    CHECK(shuffled.links == ordered.links);
}

TEST_CASE("a link that two hops of a ring pass gives each half of its rate") {
    cluster_builder b;
    auto const x = b.add_device(h100_sxm), y = b.add_device(h100_sxm), z = b.add_device(h100_sxm);
    auto const bus = b.add_bus({10e9}, microseconds{1}, "bus");
    auto const fast = b.add_bus({100e9}, microseconds{5}, "fast");
    for (auto const& [from, to] : {std::pair{x, y}, {y, z}, {z, y}, {y, x}, {x, z}}) b.set_route(from, to, {bus});
    b.set_route(z, x, {fast, bus, fast});
    auto const g = group(dense(b.build()), {0, 1, 2});
    CHECK(g.shape.ring_rate.bytes_per_second == doctest::Approx(10e9 / 3));
    CHECK(g.shape.ring_latency == microseconds{11});
    REQUIRE(g.links.size() == 2);
    CHECK(g.links[0] == link_use{bus, 1});
    CHECK(g.links[1].link == fast);
    CHECK(g.links[1].share == doctest::Approx(2.0 / 100 / (3.0 / 10)));
}

TEST_CASE("nodes with different numbers of members") {
    auto const t = dense(dgx_a100(2));
    auto const g = group(t, {0, 1, 2, 8}).shape; // three members and one: three rings between share the interface of device 8
    CHECK(g.nodes == 2);
    CHECK(g.per_node == 3);
    CHECK(g.between_rate.bytes_per_second == doctest::Approx(24e9 / 3));
    CHECK(g.ring_rate.bytes_per_second == doctest::Approx(24e9)); // each ring goes through it once
    CHECK(g.inside_rate.bytes_per_second == doctest::Approx(232.5e9));
}

TEST_CASE("a single member has no links; no member and no such device are refused") {
    auto const t = dense(fully_connected({.devices = 3, .device = k80, .link = {{1e9}, microseconds{1}}}));
    auto const g = group(t, {1});
    CHECK(g.shape.size == 1);
    CHECK(g.shape.nodes == 1);
    CHECK(g.shape.per_node == 1);
    CHECK(g.links.empty());
    CHECK_THROWS_WITH_AS((void)group(t, {}), doctest::Contains("group of no devices"), invalid_input);
    CHECK_THROWS_WITH_AS((void)group(t, {0, 3}), doctest::Contains("device 3 in a group: the topology has 3"), invalid_input);
}

TEST_CASE("groups that a switch may reduce: three or more on one node, each with a link in and a link out that say so") {
    auto const rate = [](nodes_options const& o, std::vector<std::uint32_t> const& members) {
        return rate_of(group(dense(nodes(o)), members).shape.switch_rate);
    };
    CHECK(rate({.device = h100_sxm}, first(8)) == 0);
    for (std::uint32_t n = 3; n <= 8; ++n) CHECK(rate({.device = h100_sxm, .nvls = true}, first(n)) == 308.6e9);
    CHECK(rate({.device = h100_sxm, .nvls = true}, first(2)) == 0); // two send to each other
    CHECK(rate({.count = 2, .device = h100_sxm, .nvls = true}, {8, 9, 15}) == 308.6e9);
    CHECK(rate({.count = 2, .device = h100_sxm, .nvls = true}, first(9)) == 0); // on two nodes
    auto const own = link_description{{300e9}, microseconds{1}, {200e9}};
    CHECK(rate({.device = h100_sxm, .intra_link = own, .nvls = true}, first(8)) == 200e9);
    // One link that does not say so, and a pair of switches with links between.
    for (bool const apart : {false, true}) {
        cluster_builder b;
        auto const left = b.add_switch("left"), right = b.add_switch("right");
        for (std::uint32_t d = 0; d < 4; ++d) {
            auto const device = b.add_device(h100_sxm);
            auto const to = apart && d > 1 ? right : left;
            (void)b.add_link(device, to, own);
            (void)b.add_link(to, device, d == 3 && !apart ? link_description{own.rate, own.latency} : own);
        }
        (void)b.add_link(left, right, own);
        (void)b.add_link(right, left, own);
        CHECK(rate_of(group(dense(b.build()), first(4)).shape.switch_rate) == 0);
        if (!apart) CHECK(rate_of(group(dense(b.build()), first(3)).shape.switch_rate) == 200e9);
    }
}

TEST_CASE("describe_replicas: what the group costs on a cluster of so many times the nodes") {
    for (auto const intra : {intra_node::nvswitch, intra_node::direct, intra_node::pcie})
        for (std::uint32_t const gpus : {1U, 2U, 4U}) {
            nodes_options o{.count = 2, .gpus_per_node = gpus, .device = h100_sxm, .intra = intra, .nics_per_node = 1};
            auto const part = dense(nodes(o));
            o.count = 6;
            auto const all = dense(nodes(o));
            REQUIRE_NOTHROW(require_like_nodes(part));
            REQUIRE_NOTHROW(require_like_nodes(all));
            for (std::uint32_t set = 1; set < 1U << (2 * gpus); ++set) {
                INFO(gpus, " GPUs per node, set ", set);
                std::vector<std::uint32_t> members, like;
                for (std::uint32_t d = 0; d < 2 * gpus; ++d) {
                    if ((set >> d & 1) == 0) continue;
                    members.push_back(d);
                    for (std::uint32_t r = 0; r < 3; ++r) like.push_back(2 * gpus * r + d);
                }
                auto const told = describe_replicas(part, members, 3);
                auto const whole = group(all, like);
                CHECK(told.shape == whole.shape);
                std::vector<link_use> of_part; // links are numbered node by node
                for (auto const& use : whole.links)
                    if (use.link < part.links.size()) of_part.push_back(use);
                CHECK(told.links == of_part);
                CHECK(describe_replicas(part, members, 1).shape == group(part, members).shape);
            }
        }
}

TEST_CASE("require_like_nodes says what differs") {
    auto const refused = [](dense_topology const& t, char const* what) {
        CHECK_THROWS_WITH_AS(require_like_nodes(t), doctest::Contains(what), invalid_input);
    };
    auto const good = dense(nodes({.count = 3, .gpus_per_node = 2, .device = h100_sxm}));
    CHECK_NOTHROW(require_like_nodes(good));
    auto t = good;
    t.devices[3].memory /= 2;
    refused(t, "device 3 is another than device 1");
    t = good;
    t.rings = {{0, 1, 2}};
    refused(t, "names rings of its own");
    t = good;
    t.links[t.routes.up(5).front()].latency += picoseconds{1};
    refused(t, "device 5 has other links to the switch than device 1");
    t = good;
    t.links[t.routes.down(2).front()].rate = {1};
    refused(t, "device 2 has other links to the switch than device 0");
    t = good;
    t.links[t.route(2, 3).front()].rate = {1};
    refused(t, "device 2 has other links to its neighbours than device 0");
    t = good;
    for (auto const d : {1, 3, 5}) t.links[t.routes.up(static_cast<std::size_t>(d)).front()].latency += microseconds{50};
    refused(t, "device 1 has another latency to the switch, or from it, than device 0");
    cluster_builder b; // equal links, of which two GPUs of node 2 share one
    auto const network = b.add_switch("network");
    for (std::uint32_t node = 0; node < 3; ++node) {
        auto const x = b.add_device(h100_sxm, node), y = b.add_device(h100_sxm, node);
        b.add_duplex_link(x, y, {1e9}, microseconds{1});
        for (std::uint32_t nic = 0; nic < 2; ++nic) {
            auto const s = b.add_switch("nic");
            b.add_duplex_link(s, network, {1e9}, microseconds{1});
            if (nic == 0 || node < 2) b.add_duplex_link(nic == 0 ? x : y, s, {1e9}, microseconds{1});
            if (nic == 0 && node == 2) b.add_duplex_link(y, s, {1e9}, microseconds{1});
        }
    }
    refused(dense(b.build()), "device 5 has other links to the switch than device 1, or shares them otherwise");
    t = good;
    t.node[5] = 1;
    refused(t, "different numbers of devices");
    refused(dense(nodes({.count = 1, .gpus_per_node = 4, .device = h100_sxm})), "there is one, and a part of a cluster has two at least");
    refused(dense(fully_connected({.devices = 4, .device = h100_sxm, .link = {{1e9}, {}}})), "no single switch joins them");
}
