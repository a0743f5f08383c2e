#include <parsearch/topology/cluster_builder.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/topology/dense_topology.hpp>
#include <parsearch/topology/nodes.hpp>

using namespace parsearch;
using namespace parsearch::topology;
using std::chrono::microseconds;
using route_t = std::vector<std::uint32_t>;

namespace {

constexpr bandwidth rate{1e9};

device_spec plain(std::string kind = "plain") { return {{std::move(kind), 1000}, {}, {}, {}, {}}; }

route_t route_of(cluster const& c, std::uint32_t a, std::uint32_t b) {
    auto const r = c.route(a, b);
    return {r.begin(), r.end()};
}
} // namespace

TEST_CASE("a cluster answers what was added") {
    cluster_builder b;
    auto const a0 = b.add_device(h100_sxm, 3);
    auto const a1 = b.add_device(k80, 5);
    auto const sw = b.add_switch("leaf");
    auto const up = b.add_duplex_link(a0, sw, rate, microseconds{1});
    auto const down = b.add_duplex_link(sw, a1, {2e9}, microseconds{2});
    auto const named = b.add_link(a1, a0, rate, microseconds{0}, "cable");
    auto const c = b.build();

    CHECK(c.size() == 2);
    CHECK(c.devices().size() == 2);
    CHECK(c.links().size() == 5);
    CHECK(c.links().back() == 4);
    CHECK(c.describe_device(0) == h100_sxm);
    CHECK(c.describe_device(1) == k80);
    CHECK(c.node_of(0) == 3);
    CHECK(c.node_of(1) == 5);
    CHECK(c.describe_link(down.forward) == link_description{{2e9}, microseconds{2}});
    CHECK(c.switches() == std::vector<std::string>{"leaf"});
    CHECK(c.ends_of(up.forward).from == a0);
    CHECK(c.ends_of(up.forward).to == sw);
    CHECK(c.name_of_link(up.forward) == "device 0 -> leaf");
    CHECK(c.name_of_link(named) == "cable");
    CHECK(route_of(c, 0, 1) == route_t{up.forward, down.forward});
    CHECK(route_of(c, 1, 0) == route_t{named});
    CHECK(c.route(0, 0).empty());
    CHECK(c == b.build());
    auto const copy = c;
    CHECK(copy == c);
}

TEST_CASE("routes: fewest links, then lowest latency, then smallest numbers") {
    SUBCASE("fewest links, whatever their latency") {
        cluster_builder b;
        auto const x = b.add_device(plain()), y = b.add_device(plain());
        auto const s = b.add_switch("s");
        b.add_duplex_link(x, s, rate, microseconds{0});
        b.add_duplex_link(s, y, rate, microseconds{0});
        auto const direct = b.add_duplex_link(x, y, rate, microseconds{100});
        CHECK(route_of(b.build(), 0, 1) == route_t{direct.forward});
    }
    SUBCASE("then the latency of the whole route") {
        cluster_builder b;
        auto const x = b.add_device(plain()), y = b.add_device(plain());
        auto const s = b.add_switch("s"), t = b.add_switch("t");
        auto const back = b.add_link(y, x, rate, microseconds{1});
        b.add_link(x, s, rate, microseconds{1});
        b.add_link(s, y, rate, microseconds{9});
        auto const first = b.add_link(x, t, rate, microseconds{4});
        auto const second = b.add_link(t, y, rate, microseconds{4});
        auto const c = b.build();
        CHECK(route_of(c, 0, 1) == route_t{first, second});
        CHECK(route_of(c, 1, 0) == route_t{back});
    }
    SUBCASE("then the link numbers, first link first") {
        cluster_builder b;
        auto const x = b.add_device(plain()), y = b.add_device(plain());
        auto const s = b.add_switch("s"), t = b.add_switch("t");
        b.add_link(y, x, rate, microseconds{1});
        auto const t_to_y = b.add_link(t, y, rate, microseconds{1});
        auto const x_to_s = b.add_link(x, s, rate, microseconds{1});
        auto const x_to_t = b.add_link(x, t, rate, microseconds{1});
        auto const s_to_y = b.add_link(s, y, rate, microseconds{1});
        (void)t_to_y;
        (void)x_to_t;
        CHECK(route_of(b.build(), 0, 1) == route_t{x_to_s, s_to_y});
    }
    SUBCASE("however long the latencies") {
        cluster_builder b;
        auto const x = b.add_device(plain()), y = b.add_device(plain());
        std::uint32_t last = 0;
        for (picoseconds const latency : {picoseconds{std::chrono::hours{24}}, picoseconds{1}}) {
            auto at = x;
            for (int i = 0; i < 110; ++i) {
                auto const next = b.add_switch("s");
                b.add_duplex_link(at, next, rate, latency);
                at = next;
            }
            last = b.add_duplex_link(at, y, rate, latency).forward;
        }
        CHECK(route_of(b.build(), 0, 1).back() == last);
    }
    SUBCASE("devices pass messages on where nothing else joins two others") {
        cluster_builder b;
        auto const x = b.add_device(plain()), y = b.add_device(plain()), z = b.add_device(plain());
        auto const xy = b.add_duplex_link(x, y, rate, microseconds{1});
        auto const yz = b.add_duplex_link(y, z, rate, microseconds{1});
        CHECK(route_of(b.build(), 0, 2) == route_t{xy.forward, yz.forward});
    }
}

TEST_CASE("computed routes are the best of all routes, on random topologies") {
    std::mt19937_64 rng{7};
    for (int trial = 0; trial < 200; ++trial) {
        cluster_builder b;
        std::vector<vertex> v;
        auto const machines = static_cast<std::uint32_t>(2 + uniform_index(rng, 3)), switches = static_cast<std::uint32_t>(uniform_index(rng, 4));
        for (std::uint32_t i = 0; i < machines; ++i) v.push_back(b.add_device(plain()));
        for (std::uint32_t i = 0; i < switches; ++i) v.push_back(b.add_switch("s"));
        struct edge {
            std::size_t from, to;
            picoseconds latency;
        };
        std::vector<edge> edges;
        auto const add = [&](std::size_t from, std::size_t to) {
            edges.push_back({from, to, picoseconds{static_cast<std::int64_t>(uniform_index(rng, 3))}});
            b.add_link(v[from], v[to], rate, edges.back().latency);
        };
        for (std::size_t i = 0; i < v.size(); ++i) { // a chain both ways keeps it connected
            if (i + 1 < v.size()) add(i, i + 1), add(i + 1, i);
            for (int k = 0; k < 2; ++k)
                if (auto const to = uniform_index(rng, v.size()); to != i) add(i, to);
        }
        auto const c = b.build();
        for (std::uint32_t from = 0; from < machines; ++from)
            for (std::uint32_t to = 0; to < machines; ++to) {
                if (from == to) continue;
                // All simple paths, by depth-first search.
                std::pair<std::pair<std::size_t, picoseconds>, route_t> best{{99, {}}, {}};
                route_t path;
                std::vector<bool> on_path(v.size());
                auto const walk = [&](auto const& self, std::size_t at, picoseconds latency) -> void {
                    if (at == to) {
                        best = std::min(best, {{path.size(), latency}, path});
                        return;
                    }
                    on_path[at] = true;
                    for (std::uint32_t l = 0; l < edges.size(); ++l)
                        if (edges[l].from == at && !on_path[edges[l].to]) {
                            path.push_back(l);
                            self(self, edges[l].to, latency + edges[l].latency);
                            path.pop_back();
                        }
                    on_path[at] = false;
                };
                walk(walk, from, picoseconds{0});
                REQUIRE(route_of(c, from, to) == best.second);
            }
    }
}

TEST_CASE("routes by way of a switch are those of all pairs, on random nodes") {
    std::mt19937_64 rng{11};
    int grouped = 0, larger = 0;
    for (int trial = 0; trial < 200; ++trial) {
        INFO("trial ", trial);
        cluster_builder b;
        auto const draw = [&](std::uint64_t n) { return static_cast<std::uint32_t>(uniform_index(rng, n)); };
        auto const latency = [&] { return picoseconds{static_cast<std::int64_t>(draw(3))}; };
        std::vector<vertex> devices;
        auto const network = b.add_switch("network");
        auto const nodes = 2 + draw(4);
        for (std::uint32_t node = 0; node < nodes; ++node) {
            std::vector<vertex> own;
            for (std::uint32_t i = 0, n = 1 + draw(3); i < n; ++i) own.push_back(devices.emplace_back(b.add_device(plain(), node)));
            for (std::uint32_t i = 0, n = 1 + draw(2); i < n; ++i) own.push_back(b.add_switch("s"));
            for (std::size_t i = 0; i + 1 < own.size(); ++i) b.add_duplex_link(own[i], own[i + 1], rate, latency());
            for (int i = 0; i < 3; ++i) {
                auto const x = own[draw(own.size())], y = own[draw(own.size())];
                if (!(x == y)) b.add_link(x, y, rate, latency());
            }
            for (std::uint32_t i = 0, n = 1 + draw(2); i < n; ++i) b.add_duplex_link(own[draw(own.size())], network, rate, latency());
        }
        auto const c = b.build();
        auto const explicit_route = route_of(c, 0, 1);
        b.set_route(devices[0], devices[1], explicit_route); // then there is a table of all pairs
        auto const all = b.build();
        CHECK(all.routes().groups() == 1);
        grouped += c.routes().groups() > 1;
        larger += c.routes().groups() < c.size() && c.routes().groups() > 1;
        for (std::uint32_t x = 0; x < c.size(); ++x)
            for (std::uint32_t y = 0; y < c.size(); ++y) REQUIRE(route_of(c, x, y) == route_of(all, x, y));
        CHECK(c.routes() == all.routes());
    }
    CHECK(grouped == 200);
    CHECK(larger > 100);
}

TEST_CASE("16,384 GPUs: routes take what those of a node take, as often as there are nodes; so does a part of them") {
    auto const c = nodes({.count = 2048, .gpus_per_node = 8, .device = h100_sxm});
    CHECK(c.routes().groups() == 2048);
    CHECK(c.route(0, 16383).size() == 4);
    auto const part = first_devices(c, 16), small = nodes({.count = 2, .gpus_per_node = 8, .device = h100_sxm});
    CHECK(part.size() == 16);
    CHECK(part.routes() == small.routes());
    CHECK(part.links().size() == small.links().size());
    auto const t = first_devices(read_topology(c).topology, 16);
    CHECK(t == read_topology(small).topology);
    cluster_builder b;
    for (std::uint32_t d = 0; d <= cluster_builder::max_group; ++d) b.add_device(plain());
    CHECK_THROWS_WITH_AS((void)b.build(), doctest::Contains("8193 devices: more than 8192 must be on nodes that one switch joins"), invalid_input);
}

TEST_CASE("explicit routes win, in any order of setting; the other pairs are computed") {
    cluster_builder b;
    auto const x = b.add_device(plain()), y = b.add_device(plain()), z = b.add_device(plain());
    auto const xy = b.add_duplex_link(x, y, rate, microseconds{1});
    auto const yz = b.add_duplex_link(y, z, rate, microseconds{1});
    auto const xz = b.add_duplex_link(x, z, rate, microseconds{1});
    auto const bus = b.add_bus(rate, microseconds{1}, "bus");
    b.set_route(z, x, {bus});
    b.set_route(x, z, {xy.forward, yz.forward});
    b.set_route(y, x, {yz.forward, bus});
    auto const c = b.build();
    CHECK(route_of(c, 0, 2) == route_t{xy.forward, yz.forward});
    CHECK(route_of(c, 2, 0) == route_t{bus});
    CHECK(route_of(c, 1, 0) == route_t{yz.forward, bus});
    CHECK(route_of(c, 0, 1) == route_t{xy.forward});
    CHECK(route_of(c, 1, 2) == route_t{yz.forward});
    CHECK(route_of(c, 2, 1) == route_t{yz.backward});
    CHECK(c.name_of_link(bus) == "bus");
    (void)xz;
}

TEST_CASE("devices of several kinds, and one device alone") {
    cluster_builder b;
    auto const x = b.add_device(a100_sxm), y = b.add_device(plain());
    auto small = a100_sxm;
    small.memory = 40;
    auto const z = b.add_device(small); // memory is no matter of the kind
    auto const hub = b.add_switch("hub");
    for (auto const v : {x, y, z}) b.add_duplex_link(v, hub, rate, microseconds{1});
    auto const c = b.build();
    CHECK(c.describe_device(0).kind == "a100_sxm");
    CHECK(c.describe_device(1).kind == "plain");
    CHECK(c.describe_device(2).memory == 40);

    cluster_builder alone;
    alone.add_device(plain());
    auto const one = alone.build();
    CHECK(one.size() == 1);
    CHECK(one.links().empty());
    CHECK(one.route(0, 0).empty());
}

TEST_CASE("what breaks a rule is refused with value and rule") {
    cluster_builder b;
    auto const x = b.add_device(plain()), y = b.add_device(plain());
    auto const s = b.add_switch("s");
    auto const xs = b.add_duplex_link(x, s, rate, microseconds{1});
    auto const nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();

#define REFUSED(expression, what) CHECK_THROWS_WITH_AS((void)(expression), doctest::Contains(what), invalid_input)
    REFUSED(cluster_builder{}.build(), "cluster of no devices: at least one");
    REFUSED(b.build(), "device 1 cannot be reached from device 0: every pair");
    REFUSED(b.add_link(x, y, {0}, microseconds{1}), "link 2 has a bandwidth of 0 B/s: must be positive");
    REFUSED(b.add_link(x, y, {-5}, microseconds{1}), "bandwidth of -5 B");
    REFUSED(b.add_link(x, y, {nan}, microseconds{1}), "bandwidth of");
    REFUSED(b.add_link(x, y, {infinite}, microseconds{1}), "bandwidth of inf");
    REFUSED(b.add_bus(rate, picoseconds{-1}, "bus"), "link 2 has a latency of -1 ps: must not be negative");
    REFUSED(b.add_link(x, x, rate, microseconds{1}), "link 2 leads from device 0 to itself");
    REFUSED(b.add_link(x, {vertex::type::device, 9}, rate, microseconds{1}), "device 9 as an end: the cluster has 2");
    REFUSED(b.add_link({vertex::type::network_switch, 1}, x, rate, microseconds{1}), "switch 1 as an end: the cluster has 1");
    REFUSED(b.add_link(x, vertex{}, rate, microseconds{1}), "as an end: the cluster has 0");

    REFUSED(b.add_device(plain("")), "device 2 has an empty kind");
    auto broken = plain();
    broken.memory = -1;
    REFUSED(b.add_device(broken), "device 2 (plain) has a memory of -1 bytes");
    broken = plain();
    broken.memory_rate = {1e9};
    REFUSED(b.add_device(broken), "device 2 (plain) differs from device 0 of the same kind");
    broken = plain("other");
    broken.contraction.f16 = nan;
    REFUSED(b.add_device(broken), "flops per second: must be finite and not negative");
    broken = plain("other");
    broken.host_rate = {nan};
    REFUSED(b.add_device(broken), "bytes to its host per second: must be finite and not negative");
    broken = plain("other");
    broken.launch_overhead = picoseconds{-7};
    REFUSED(b.add_device(broken), "launch overhead of -7 ps");

    auto const ys = b.add_duplex_link(y, s, rate, microseconds{1});
    REFUSED(b.set_route(x, y, {}), "route from device 0 to device 1 is empty");
    REFUSED(b.set_route(x, x, {xs.forward}), "must join two different devices");
    REFUSED(b.set_route(x, s, {xs.forward}), "route from device 0 to s: must join two different devices");
    REFUSED(b.set_route(x, y, {99}), "passes link 99: there are 4 links");
    REFUSED(b.set_route(x, y, {ys.backward}), "passes link 3 (s -> device 1) from device 0: a link must start where the one before it ends");
    REFUSED(b.set_route(x, y, {xs.forward}), "ends at s: must end at its destination");
    REFUSED(b.add_ring({0}), "ring 0 of nodes has 1 nodes: must have at least two");
    REFUSED(b.add_ring({0, 7}), "ring 0 of nodes passes node 7: no device is on it");
    REFUSED(b.add_ring({0, 7, 0}), "ring 0 of nodes passes node 0 twice: each at most once");

    b.set_route(x, y, {xs.forward, ys.backward});
    CHECK_NOTHROW((void)b.build());
    b.set_route(x, y, {xs.forward, ys.backward});
    REFUSED(b.build(), "route from device 0 to device 1 is set twice");
#undef REFUSED
}
