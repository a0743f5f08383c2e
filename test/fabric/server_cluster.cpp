#include <parsearch/fabric/server_cluster.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

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

TEST_CASE("pairs take turns on parallel links") {
    demand d(2);
    d.add_all_reduce({0, 1}, 1000);
    auto const t = topology_finder(d, 2, 3);
    link_index const index(2, t.links);
    CHECK(index.between(0, 1, 0) == 0);
    CHECK(index.between(0, 1, 1) == 2);
    CHECK(index.between(1, 0, 2) == 5);
    CHECK(index.between(1, 0, 3) == 1);
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
}
