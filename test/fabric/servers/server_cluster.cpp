#include <parsearch/fabric/servers/server_cluster.hpp>

#include <algorithm>
#include <iterator>
#include <chrono>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/fabric/network/regular_networks.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
using route_t = std::vector<std::uint32_t>;
constexpr std::chrono::microseconds latency{1};

server_options servers_of(std::uint32_t gpus, inside_server inside) {
    return {.gpus_per_server = gpus,
            .device = topology::a100_sxm,
            .inside = inside,
            .inside_link = {{300e9}, latency},
            .host_link = {{31.5e9}, latency},
            .interface = {{12.5e9}, latency}};
}

demand traffic(std::uint32_t n) {
    demand d(n);
    route_t all;
    for (std::uint32_t v = 0; v < n; ++v) all.push_back(v);
    d.add_all_reduce(all, 1000);
    d.add(0, n / 2, 500);
    return d;
}
} // namespace

TEST_CASE("a fabric as a cluster: routes are those of the fabric between servers, own links inside") {
    for (auto const inside : {inside_server::direct, inside_server::one_switch})
        for (std::uint32_t const k : {1u, 4u}) {
            auto const t = topology_finder(traffic(12), 12, 4);
            auto const c = server_cluster(t, servers_of(k, inside));
            CHECK(c.size() == 12 * k);
            auto const within = k == 1 ? 0 : inside == inside_server::direct ? k * (k - 1) : 2 * k;
            CHECK(c.links().size() == 2 * t.links.size() + 12 * (2 * k + within));
            for (std::uint32_t a = 0; a < c.size(); ++a)
                for (std::uint32_t b = 0; b < c.size(); ++b) {
                    auto const path = c.route(a, b);
                    CHECK(c.node_of(a) == a / k);
                    if (a / k == b / k) {
                        CHECK(path.size() == (a == b ? 0u : inside == inside_server::direct ? 1u : 2u));
                        for (auto const l : path) CHECK(c.describe_link(l).rate == bandwidth{300e9});
                        continue;
                    }
                    auto const hops = t.routes.route(a / k, b / k);
                    REQUIRE(path.size() == hops.size() + 1);
                    CHECK(c.describe_link(path.front()).rate == bandwidth{31.5e9});
                    CHECK(c.describe_link(path.back()).rate == bandwidth{31.5e9});
                    for (std::size_t i = 1; i < hops.size(); ++i) {
                        auto const ends = c.ends_of(path[i]);
                        CHECK(c.describe_link(path[i]).rate == bandwidth{12.5e9});
                        auto const& link = t.links[path[i] / 2]; // numbered as in the fabric
                        CHECK(c.switches()[ends.from.number] == text("server ", hops[i - 1], " network"));
                        CHECK(c.switches()[ends.to.number] == text("server ", hops[i], " network"));
                        CHECK((path[i] % 2 == 0 ? link.a : link.b) == hops[i - 1]);
                    }
                }
        }
}

TEST_CASE("a network as a cluster: flows of devices take the paths of the table, links keep their numbers, rings are the network's") {
    network const n{"",
                    5,
                    2,
                    {{0, 5, {{1e9}, latency}},
                     {1, 5, {{2e9}, latency}},
                     {5, 6, {{3e9}, latency}},
                     {6, 5, {{3e9}, latency}},
                     {6, 2, {{4e9}, latency}},
                     {2, 3, {{5e9}, latency}},
                     {6, 3, {{5e9}, latency}},
                     {3, 4, {{6e9}, latency}}},
                    {{0, 1, 2, 3, 4}, {4, 3, 2}}};
    for (auto const policy : {routing::shortest, routing::ecmp, routing::k_shortest}) {
        path_table const routes(n, {policy, 3, 11});
        auto const c = server_cluster(n, routes, servers_of(3, inside_server::one_switch));
        CHECK(c.rings() == n.rings);
        for (std::uint32_t l = 0; l < c.links().size(); ++l) {
            auto const direction = network_direction(n, l);
            CHECK(direction.has_value() == (l < 2 * n.links.size()));
            if (!direction) continue;
            auto const& made = n.links[*direction / 2];
            CHECK(c.describe_link(l) == made.each);
            auto const from = *direction % 2 == 0 ? made.a : made.b;
            CHECK(c.switches()[c.ends_of(l).from.number] == (from < 5 ? text("server ", from, " network") : text("switch ", from - 5)));
        }
        for (std::uint32_t a = 0; a < 15; ++a)
            for (std::uint32_t b = 0; b < 15; ++b) {
                if (a / 3 == b / 3) continue;
                auto const path = c.route(a, b);
                auto const expected = routes.path(a / 3, b / 3, flow_between(a, b));
                REQUIRE(path.size() == expected.size() + 2);
                CHECK(std::equal(expected.begin(), expected.end(), std::next(path.begin())));
            }
        CHECK(server_cluster(n, {policy, 3, 11}, servers_of(3, inside_server::one_switch)) == c);
    }
}

TEST_CASE("merged servers: one device of all GPUs") {
    auto const n = circulant(4, {1}, {{12.5e9}, latency});
    auto const c = server_cluster(n, routing_options{}, servers_of(4, inside_server::merged));
    CHECK(c.size() == 4);
    CHECK(c.links().size() == 2 * 4 + 2 * 4);
    auto const& d = c.describe_device(2);
    auto const& one = topology::a100_sxm;
    CHECK(d.kind == "4 x a100_sxm");
    CHECK(d.memory == 4 * one.memory);
    CHECK(d.memory_rate.bytes_per_second == 4 * one.memory_rate.bytes_per_second);
    CHECK(d.host_rate.bytes_per_second == 4 * one.host_rate.bytes_per_second);
    CHECK(d.contraction.tf32 == 4 * one.contraction.tf32);
    CHECK(d.elementwise.i8 == 4 * one.elementwise.i8);
    CHECK(d.launch_overhead == one.launch_overhead);
    CHECK(c.describe_link(c.route(0, 1).front()).rate == bandwidth{4 * 31.5e9});
    CHECK(merged_device(one, 1) == one);
    topology::device_spec unlimited{{"x"}};
    CHECK(merged_device(unlimited, 3).memory == unlimited.memory);
    CHECK_THROWS_WITH_AS((void)merged_device(one, 0), doctest::Contains("merged device of 0 a100_sxm"), invalid_input);
    unlimited.memory -= 1;
    CHECK_THROWS_WITH_AS((void)merged_device(unlimited, 2), doctest::Contains("more memory than"), invalid_input);
}

TEST_CASE("a fabric as a cluster: one server, mistakes") {
    auto const one = server_cluster(topology_finder(demand(1), 1, 2), servers_of(4, inside_server::direct));
    CHECK(one.size() == 4);
    CHECK(one.links().size() == 12);
    auto const t = topology_finder(traffic(12), 12, 4);
    CHECK_THROWS_WITH_AS((void)server_cluster(t, servers_of(0, inside_server::direct)), doctest::Contains("12 servers of 0 GPUs"), invalid_input);
    CHECK_THROWS_WITH_AS((void)server_cluster(t, servers_of(700, inside_server::direct)), doctest::Contains("12 servers of 700 GPUs"), invalid_input);
    auto o = servers_of(2, inside_server::direct);
    o.interface.rate = {0};
    CHECK_THROWS_WITH_AS((void)server_cluster(t, o), doctest::Contains("bandwidth of 0"), invalid_input);
    auto const other = circulant(5, {1}, {{1e9}, latency});
    CHECK_THROWS_WITH_AS((void)server_cluster(other, path_table(network_of(t, {{1e9}, latency})), servers_of(1, inside_server::direct)),
                         doctest::Contains("cluster of 5 servers, routes between 12"), invalid_input);
}
