#include <parsearch/topology/dense_topology.hpp>

#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/topology/nodes.hpp>

#include "support/plain_topology.hpp"

using namespace parsearch;
using namespace parsearch::topology;

namespace {

/// A topology of the user: names for handles, lists for ranges, functions found by ADL.
namespace lab {
struct machines {
    std::list<std::string> hosts;
    std::map<std::string, device_description> kinds;
    std::map<std::string, link_description> cables;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> routes;
    std::list<std::string> cable_names;
};
std::list<std::string> const& devices(machines const& m) { return m.hosts; }
device_description describe_device(machines const& m, std::string const& d) { return m.kinds.at(d); }
std::list<std::string> const& links(machines const& m) { return m.cable_names; }
link_description describe_link(machines const& m, std::string const& l) { return m.cables.at(l); }
std::vector<std::string> route(machines const& m, std::string const& a, std::string const& b) { return m.routes.at({a, b}); }
unsigned node_of(machines const&, std::string const& d) { return d == "gamma" ? 70 : 20; }
} // namespace lab

lab::machines three() {
    lab::machines m;
    m.hosts = {"alpha", "beta", "gamma"};
    m.kinds = {{"alpha", {"fast", 100}}, {"beta", {"slow", 50}}, {"gamma", {"fast", 70}}};
    m.cable_names = {"ab", "ba", "bc", "cb"};
    double rate = 1e9;
    for (auto const& name : m.cable_names) m.cables[name] = {{rate += 1e9}, picoseconds{7}};
    m.routes = {{{"alpha", "beta"}, {"ab"}}, {{"beta", "alpha"}, {"ba"}},        {{"beta", "gamma"}, {"bc"}},
                {{"gamma", "beta"}, {"cb"}}, {{"alpha", "gamma"}, {"ab", "bc"}}, {{"gamma", "alpha"}, {"cb", "ba"}}};
    return m;
}
using route_t = std::vector<std::uint32_t>;
route_t route_of(dense_topology const& t, std::size_t a, std::size_t b) {
    auto const r = t.route(a, b);
    return {r.begin(), r.end()};
}

/// Devices and links as numbers that are not 0, 1, 2, ...
struct numbered {
    std::vector<int> devices() const { return {7, -3}; }
    device_description describe_device(int d) const { return {std::to_string(d), 1}; }
    std::vector<short> links() const { return {5, 4}; }
    link_description describe_link(short l) const { return {{static_cast<double>(l)}, {}}; }
    std::vector<short> route(int from, int) const { return {from == 7 ? short{4} : short{5}}; }
};
} // namespace

TEST_CASE("a foreign topology with names for handles is read into arrays") {
    static_assert(DeviceTopology<lab::machines>);
    auto const r = read_topology(three());
    auto const& t = r.topology;
    CHECK(r.devices == std::vector<std::string>{"alpha", "beta", "gamma"});
    CHECK(r.links == std::vector<std::string>{"ab", "ba", "bc", "cb"});
    CHECK(t.size() == 3);
    CHECK(t.devices[1] == device_description{"slow", 50});
    CHECK(t.kind == std::vector<std::uint32_t>{0, 1, 0});
    CHECK(t.node == std::vector<std::uint32_t>{0, 0, 1});
    CHECK(t.links[2] == link_description{{4e9}, picoseconds{7}});
    CHECK(route_of(t, 0, 2) == route_t{0, 2});
    CHECK(route_of(t, 2, 0) == route_t{3, 1});
    CHECK(route_of(t, 1, 0) == route_t{1});
    CHECK(t.route(1, 1).empty());
}

TEST_CASE("numbers that do not count from 0 are handles like any other; without node_of all devices are one node") {
    auto const t = read_topology(numbered{}).topology;
    CHECK(t.node == std::vector<std::uint32_t>{0, 0});
    CHECK(t.kind == std::vector<std::uint32_t>{0, 1});
    CHECK(route_of(t, 0, 1) == route_t{1});
    CHECK(route_of(t, 1, 0) == route_t{0});
}

TEST_CASE("a cluster reads as itself") {
    auto const c = k80_cluster(2);
    auto const r = read_topology(c);
    CHECK(r.topology.size() == 8);
    CHECK(r.topology.node == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
    CHECK(r.topology.links.size() == c.links().size());
    for (std::uint32_t a = 0; a < 8; ++a)
        for (std::uint32_t b = 0; b < 8; ++b) {
            auto const own = c.route(a, b);
            CHECK(route_of(r.topology, a, b) == route_t(own.begin(), own.end()));
            if (a != b) CHECK(&*r.topology.route(a, b).begin() == &*own.begin()); // one table for both
        }
}

TEST_CASE("mistakes of a topology are named") {
    auto const refused = [](auto const& change, char const* what) {
        auto m = three();
        change(m);
        CHECK_THROWS_WITH_AS((void)read_topology(m), doctest::Contains(what), invalid_input);
    };
    refused([](auto& m) { m.hosts.clear(); }, "has no devices: at least one is needed");
    refused([](auto& m) { m.hosts.push_back("beta"); },
            "devices(topology) names number 1 (its handle is 'beta') again as number 3: each must appear once");
    refused([](auto& m) { m.cable_names.push_back("ab"); },
            "links(topology) names number 0 (its handle is 'ab') again as number 4: each must appear once");
    refused([](auto& m) { m.kinds["beta"].memory = -4; }, "device 1 (slow) has a memory of -4 bytes");
    refused([](auto& m) { m.kinds["beta"].host_rate = {-1}; },
            "device 1 (slow) copies -1 bytes per second to its host: must be finite and not negative");
    refused([](auto& m) { m.cables["bc"].rate = {0}; }, "link 2 has a bandwidth of 0 B/s: must be positive");
    refused([](auto& m) { m.cables["cb"].latency = picoseconds{-2}; }, "link 3 has a latency of -2 ps");
    refused([](auto& m) { m.routes[{"gamma", "alpha"}].clear(); }, "route from device 2 (fast) to device 0 (fast) is empty");
    refused(
        [](auto& m) {
            m.routes[{"alpha", "gamma"}][1] = "cable";
        },
        "route from device 0 (fast) to device 2 (fast): hop 1 is a link that links(topology) does not name (its handle is 'cable')");
}

namespace {
/// With rings over hosts, which are numbered from 10.
struct ringed : support::plain_topology {
    std::vector<std::vector<std::uint32_t>> orders;
    using support::plain_topology::plain_topology;
    [[nodiscard]] std::vector<std::vector<std::uint32_t>> const& rings() const { return orders; }
};
ringed three_hosts(std::vector<std::vector<std::uint32_t>> orders) {
    ringed t(3);
    auto const link = t.add_link();
    for (auto& from : t.routes)
        for (auto& r : from) r = {link};
    t.node = {12, 10, 11};
    t.orders = std::move(orders);
    return t;
}
} // namespace

TEST_CASE("rings are read with the nodes as they are numbered here") {
    static_assert(HasRings<ringed>);
    static_assert(!HasRings<support::plain_topology>);
    auto const t = read_topology(three_hosts({{10, 11, 12}, {12, 10}})).topology;
    CHECK(t.rings == std::vector<std::vector<std::uint32_t>>{{1, 2, 0}, {0, 1}});
    CHECK(read_topology(k80_cluster(2)).topology.rings.empty());
    auto const refused = [](std::vector<std::vector<std::uint32_t>> orders, char const* what) {
        CHECK_THROWS_WITH_AS((void)read_topology(three_hosts(std::move(orders))), doctest::Contains(what), invalid_input);
    };
    refused({{10, 11}, {10, 9}}, "ring 1 of nodes passes node 9: no device is on it");
    refused({{10, 11, 10}}, "ring 0 of nodes passes node 10 twice: each at most once");
    refused({{11}}, "ring 0 of nodes has 1 nodes: must have at least two");
    refused({{}}, "ring 0 of nodes has 0 nodes: must have at least two");
}
