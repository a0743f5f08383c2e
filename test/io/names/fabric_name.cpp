#include <parsearch/io/names/fabric_name.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/io/names/cluster_name.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/networks.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::literals;
using namespace std::chrono_literals;
using support::refusal;

namespace {
std::string said(std::string const& given) {
    return refusal([&] { return io::make_fabric(given); });
}
} // namespace

TEST_CASE("rates are read and printed") {
    using rate = io::option_value<bandwidth>;
    bandwidth v;
    for (auto const& [given, bytes] : {std::pair{"100Gbps", 12.5e9},
                                       {"400Gbps", 50e9},
                                       {"12.5GBps", 12.5e9},
                                       {"0.1Tbps", 12.5e9},
                                       {"800Mbps", 1e8},
                                       {"5MBps", 5e6},
                                       {"2kBps", 2e3},
                                       {"7Bps", 7.0}}) {
        INFO(given);
        CHECK(rate::read(given, v));
        CHECK(v.bytes_per_second == bytes);
    }
    for (auto const* const bad : {"", "100", "Gbps", "100 Gbps", "-1Gbps", "0Gbps", "1e3Gbps", "nanGbps", "100gbps", "1.2.3Gbps"}) {
        INFO(bad);
        CHECK_FALSE(rate::read(bad, v));
    }
    CHECK(rate::print(100_Gbps) == "100Gbps");
    CHECK(rate::print(2_GBps) == "16Gbps");
    for (auto const* const given : {"100Tbps", "100kBps", "1000000Tbps", "0.000001Bps"}) {
        INFO(given);
        bandwidth again;
        REQUIRE(rate::read(given, v));
        REQUIRE(rate::read(rate::print(v), again));
        CHECK(again == v);
    }
    std::mt19937_64 rng(1);
    for (int i = 0; i < 1000; ++i) {
        bandwidth const any{std::uniform_real_distribution(1.0, 1e12)(rng)};
        INFO(rate::print(any));
        REQUIRE(rate::read(rate::print(any), v));
        CHECK(v == any);
    }
}

TEST_CASE("every fabric is found, and has the servers, GPUs and interfaces asked for") {
    std::set<std::string_view> names;
    for (auto const& f : io::fabrics) {
        INFO(f.name);
        CHECK(names.insert(f.name).second);
        CHECK(&io::find_fabric(f.name) == &f);
        if (!f.make) continue;
        auto const degree = f.name == "fully_connected" ? 11u : 4u;
        auto const made = io::make_fabric(text(f.name, ",servers=12,gpus_per_server=2,interface=200Gbps,device=v100,degree=", degree));
        CHECK(made.network.servers == 12);
        CHECK(made.cluster.size() == 24);
        CHECK(made.cluster.node_of(23) == 11);
        CHECK(made.cluster.describe_device(0).kind == "v100_sxm");
        // Of a server's links each has one interface, or one has them all.
        auto const used = support::degrees(made.network);
        for (std::uint32_t s = 0; s < 12; ++s) CHECK(used[s] == (made.network.switches > 0 ? 1 : degree));
        for (auto const& l : made.network.links)
            if (l.a < 12) CHECK(l.each.rate.bytes_per_second == (made.network.switches > 0 ? degree : 1) * 25e9);
        CHECK(made.network.links.front().each.latency == picoseconds{1us});
        CHECK(
            io::make_named_cluster(text("fabric:", f.name, ",servers=12,gpus_per_server=2,interface=200Gbps,device=v100,degree=", degree)).cluster ==
            made.cluster);
    }
    auto const of_cluster = io::make_named_cluster("fabric:ideal_switch");
    CHECK(of_cluster.source == io::cluster_source::fabric);
    CHECK(name_of(of_cluster.source) == "fabric");
    CHECK(of_cluster.path.empty());
    CHECK(of_cluster.network == fabric::ideal_switch(16, {400_Gbps, 1us}));
    CHECK_FALSE(io::make_named_cluster("2x1xh100").network);
}

TEST_CASE("a fabric that is wired for a model has its options alone") {
    auto const asked = io::read_fabric("topoopt,servers=12,rounds=3");
    CHECK(asked.entry->name == "topoopt");
    CHECK(asked.options == io::fabric_options{.servers = 12, .rounds = 3});
    CHECK(io::has_fabric_option(*asked.entry, "rounds"));
    CHECK(io::has_fabric_option(*asked.entry, "degree"));
    CHECK_FALSE(io::has_fabric_option(*asked.entry, "ratio"));
    CHECK_FALSE(io::has_fabric_option(*asked.entry, "colour"));
    CHECK_FALSE(io::has_fabric_option(io::find_fabric("torus"), "rounds"));
}

TEST_CASE("options of single fabrics") {
    CHECK(io::make_fabric("fat_tree,servers=10,degree=2,latency=500ns").network == fabric::fat_tree(10, {200_Gbps, 500ns}));
    CHECK(io::make_fabric("oversubscribed,servers=9,servers_per_rack=3,ratio=3,degree=1").network ==
          fabric::oversubscribed(9, {100_Gbps, 1us}, {.servers_per_rack = 3, .ratio = 3}));
    CHECK(io::make_fabric("torus,servers=12,extents=2x6").network == fabric::with_rings(fabric::torus({2, 6}, {100_Gbps, 1us})));
    CHECK(io::make_fabric("circulant,servers=12,steps=1x5").network == fabric::circulant(12, {1, 5}, {100_Gbps, 1us}));
    CHECK(io::make_fabric("circulant,servers=12").network == fabric::circulant(12, {1, 5}, {100_Gbps, 1us}));
    CHECK(io::make_fabric("circulant,servers=2,degree=1").network == fabric::circulant(2, {1}, {100_Gbps, 1us}));
    auto const random = io::make_fabric("random_regular,wiring_seed=3").network;
    CHECK(random.links == fabric::random_regular(16, 4, 3, {100_Gbps, 1us}).links);
    CHECK(random.rings.size() == 4);
    CHECK(random.links != io::make_fabric("random_regular,wiring_seed=4").network.links);
    for (auto const& f : io::fabrics) {
        if (f.name == "oversubscribed" || !f.make) continue;
        INFO(f.name);
        CHECK(io::make_fabric(text(f.name, ",servers=1,degree=", f.name == "random_regular" ? 0 : 4)).cluster.size() == 4);
    }
}

TEST_CASE("a torus without extents is as even as its servers allow") {
    using extents = std::vector<std::uint32_t>;
    CHECK(io::detail::even_extents(16, 2) == extents{4, 4});
    CHECK(io::detail::even_extents(12, 2) == extents{3, 4});
    CHECK(io::detail::even_extents(64, 3) == extents{4, 4, 4});
    CHECK(io::detail::even_extents(128, 3) == extents{4, 4, 8});
    CHECK(io::detail::even_extents(6, 3) == extents{2, 3});
    CHECK(io::detail::even_extents(7, 2) == extents{7});
    CHECK(io::detail::even_extents(1, 3) == extents{1});
    for (std::uint32_t n = 1; n <= 200; ++n)
        for (std::uint32_t d = 1; d <= 4; ++d) {
            INFO(n, " in ", d);
            auto const found = io::detail::even_extents(n, d);
            CHECK(found.size() <= d);
            CHECK(std::is_sorted(found.begin(), found.end()));
            CHECK(std::accumulate(found.begin(), found.end(), 1u, std::multiplies<>()) == n);
        }
}

TEST_CASE("the servers are those of nodes of the device") {
    // One node of each: the way between two GPUs.
    for (auto const& d : io::device_names) {
        INFO(d.name);
        io::fabric_options o{.gpus_per_server = 2, .device = std::string(d.name)};
        auto const servers = io::servers_of(o);
        CHECK(servers.device == *d.spec);
        auto const own = fabric::server_cluster(fabric::ideal_switch(2, servers.interface), fabric::routing_options{}, servers);
        auto const nodes = topology::nodes({.count = 2, .gpus_per_node = 2, .device = *d.spec});
        picoseconds latency{}, expected{};
        double rate = 1e30, rate_expected = 1e30;
        for (auto const l : own.route(0, 1)) {
            latency += own.describe_link(l).latency;
            rate = std::min(rate, own.describe_link(l).rate.bytes_per_second);
        }
        for (auto const l : nodes.route(0, 1)) {
            expected += nodes.describe_link(l).latency;
            rate_expected = std::min(rate_expected, nodes.describe_link(l).rate.bytes_per_second);
        }
        CHECK(latency == expected);
        CHECK(rate == rate_expected);
        CHECK(servers.host_link.rate.bytes_per_second > 0);
    }
    CHECK(io::servers_of({.inside = fabric::inside_server::merged}).inside == fabric::inside_server::merged);
    CHECK(io::make_fabric("torus,inside=merged").cluster.size() == 16);
    CHECK(io::make_fabric("torus,inside=direct").cluster.route(0, 1).size() == 1);
    CHECK(io::make_fabric("torus").cluster.route(0, 1).size() == 2);
}

TEST_CASE("paths are those of the routing") {
    auto const longest = [](topology::cluster const& c) {
        std::size_t most = 0;
        for (std::uint32_t d = 4; d < c.size(); d += 4) most = std::max(most, c.route(0, d).size());
        return most;
    };
    CHECK(longest(io::make_fabric("circulant,servers=12,routing=coin_change").cluster) == 5); // three hops between two host links
    CHECK(longest(io::make_fabric("circulant,servers=12,routing=k_shortest,paths=8").cluster) > 5);
    CHECK(io::make_fabric("fat_tree,routing=ecmp").cluster != io::make_fabric("fat_tree,routing=ecmp,wiring_seed=5").cluster);
}

TEST_CASE("what no fabric can be made of is refused, saying why") {
    CHECK(said("ideal_switch,servers=2,latency=18446744073709552ns").find("fabric ideal_switch: latency is 18446744 s: must be at most a day") == 0);
    CHECK(said("ideal_switch,servers=100000,gpus_per_server=1") ==
          "fabric ideal_switch: 100000 servers of 1 GPUs: a cluster holds from 1 to 8192 devices");
    CHECK(said("ring") == "fabric 'ring' is not known: must be one of ideal_switch, fat_tree, oversubscribed, random_regular, fully_connected, "
                          "torus, circulant, topoopt");
    CHECK(said("torus,servers=x").find("fabric torus: option 'servers' is 'x': must be an integer") == 0);
    CHECK(said("torus,interface=100") ==
          "fabric torus: option 'interface' is '100': must be a rate in bits or bytes per second such as 100Gbps, 400Gbps or 12.5GBps");
    CHECK(said("torus,ratio=3") == "fabric torus: option 'ratio' is one of other fabrics");
    CHECK(said("torus,sides=3").find("fabric torus: option 'sides' is not known: must be one of servers, gpus_per_server, degree") == 0);
    CHECK(said("torus,paths=3") == "fabric torus: option 'paths' is given, but routing is shortest: must be k_shortest");
    CHECK(said("random_regular,servers=15,degree=3") ==
          "fabric random_regular: servers are 15 of degree 3: servers * degree must be even, else an interface has no other end");
    CHECK(said("random_regular,servers=4").find("fabric random_regular: random network of 4 servers of degree 4: ") == 0);
    CHECK(said("fully_connected") ==
          "fabric fully_connected: degree is 4: must be at least 15, the interfaces that fully connected takes of a server");
    CHECK(said("torus,extents=4x2x2").empty());
    CHECK(said("torus,servers=64,extents=4x4x4") ==
          "fabric torus: degree is 4: must be at least 6, the interfaces that torus 4 x 4 x 4 takes of a server");
    CHECK(said("torus,extents=4x5") == "fabric torus: extents are 4x5, which are 20 servers: must be as many as servers, 16");
    CHECK(said("torus,degree=1") == "fabric torus: degree is 1: must be at least 2, two interfaces for each dimension");
    CHECK(said("circulant,degree=3") == "fabric circulant: degree is 3: must be even and positive, two interfaces for each step; or say which steps");
    CHECK(said("circulant,steps=16").find("fabric circulant: circulant network of 16 servers: a step of 16: ") == 0);
    CHECK(said("random_regular,routing=coin_change")
              .find("fabric random_regular: coin change routing of a network of 16 servers: its links make no circulant graph") == 0);
    CHECK(said("fat_tree,routing=coin_change").find("fabric fat_tree: coin change routing of a network with ") == 0);
    CHECK(said("ideal_switch,degree=0").find("fabric ideal_switch: ") == 0);
    CHECK(said("torus,device=tpu") == "fabric torus: device is 'tpu': must be one of k80, p100, v100, a100, h100, h200, b200");
    CHECK(said("torus,gpus_per_server=0") == "fabric torus: gpus_per_server is 0: must be at least 1");
    CHECK(said("topoopt") == "fabric topoopt: is wired for a model, which is not known here: must be another");
    CHECK(said("topoopt,routing=coin_change").find("fabric topoopt: option 'routing' is coin_change: must be another") == 0);
    CHECK(said("topoopt,steps=1") == "fabric topoopt: option 'steps' is one of other fabrics");
    for (auto const& f : io::fabrics) {
        INFO(f.name);
        CHECK_FALSE(said(text(f.name, ",servers=0")).empty());
        CHECK_FALSE(said(text(f.name, ",servers=4000000000")).empty());
        CHECK_FALSE(said(text(f.name, ",degree=0")).empty());
        CHECK_FALSE(said(text(f.name, ",gpus_per_server=4294967295")).empty());
    }
    CHECK(refusal([] { return io::make_named_cluster("fabric:ring"); }).find("fabric 'ring' is not known") == 0);
    CHECK(refusal([] { return io::make_named_cluster("fabric:"); }).find("has no name") != std::string::npos);
}
