#include <parsearch/concepts/device_topology.hpp>

#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace device_topology_test {

/// Two devices and a link each way, by members.
struct pair {
    std::vector<int> devices() const { return {0, 1}; }
    device_description describe_device(int) const { return {.kind = "gpu", .memory = 1}; }
    std::vector<char> links() const { return {'>', '<'}; }
    link_description describe_link(char) const { return {.rate = {1e9}, .latency = picoseconds{7}}; }
    std::vector<char> route(int from, int to) const { return {from < to ? '>' : '<'}; }
};

/// A cluster that knows nothing of the library, and its functions.
struct racks {
    std::map<std::string, int> rack_of;
};
inline std::vector<std::string> devices(racks const& t) {
    std::vector<std::string> out;
    for (auto const& [name, rack] : t.rack_of) out.push_back(name);
    return out;
}
inline device_description describe_device(racks const&, std::string const& name) { return {.kind = name.substr(0, 3), .memory = 8}; }
inline std::vector<int> links(racks const&) { return {0}; }
inline link_description describe_link(racks const&, int) { return {.rate = {2e9}, .latency = {}}; }
inline std::vector<int> route(racks const&, std::string const&, std::string const&) { return {0}; }
inline int node_of(racks const& t, std::string const& name) { return t.rack_of.at(name); }

struct without_devices {
    device_description describe_device(int) const;
    std::vector<char> links() const;
    link_description describe_link(char) const;
    std::vector<char> route(int, int) const;
};
struct wrong_device_description : pair {
    std::string describe_device(int) const;
};
struct without_links {
    std::vector<int> devices() const;
    device_description describe_device(int) const;
    link_description describe_link(char) const;
    std::vector<char> route(int, int) const;
};
struct wrong_link_description : pair {
    double describe_link(char) const;
};
struct without_route {
    std::vector<int> devices() const;
    device_description describe_device(int) const;
    std::vector<char> links() const;
    link_description describe_link(char) const;
};
struct route_of_names : pair {
    std::vector<std::string> route(int, int) const;
};
struct route_no_range : pair {
    char route(int, int) const;
};
struct devices_no_range : pair {
    int devices() const;
};
struct unnamed {};
struct devices_not_hashable : pair {
    std::vector<unnamed> devices() const;
    device_description describe_device(unnamed) const;
    std::vector<char> route(unnamed, unnamed) const;
};
struct links_not_hashable : pair {
    std::vector<unnamed> links() const;
    link_description describe_link(unnamed) const;
    std::vector<unnamed> route(int, int) const;
};
/// Converts to a description instead of being one.
struct lazy_description : pair {
    struct later {
        operator device_description() const { return {.kind = "later", .memory = 2}; }
    };
    later describe_device(int) const { return {}; }
};

struct both_ways : pair {
    int node_of(int device) const { return device + 10; }
};
inline device_description describe_device(both_ways const&, int) { return {.kind = "adl"}; }
inline int node_of(both_ways const&, int) { return -1; }

static_assert(DeviceTopology<pair> && DeviceTopology<racks> && DeviceTopology<lazy_description>);
static_assert(!DeviceTopology<int> && !DeviceTopology<void>);
static_assert(!HasDevices<without_devices> && HasLinks<without_devices> && !DeviceTopology<without_devices>);
static_assert(!HasDevices<devices_no_range>);
static_assert(HasDevices<wrong_device_description> && !DescribesDevices<wrong_device_description>);
static_assert(!DeviceTopology<wrong_device_description>);
static_assert(!HasLinks<without_links> && !DescribesLinks<without_links> && !DeviceTopology<without_links>);
static_assert(HasLinks<wrong_link_description> && !DescribesLinks<wrong_link_description>);
static_assert(DescribesLinks<without_route> && !HasRoutes<without_route> && !DeviceTopology<without_route>);
static_assert(!HasRoutes<route_of_names> && !HasRoutes<route_no_range>);
static_assert(DescribesDevices<devices_not_hashable> && HasRoutes<devices_not_hashable> && !DeviceTopology<devices_not_hashable>);
static_assert(DescribesLinks<links_not_hashable> && HasRoutes<links_not_hashable> && !DeviceTopology<links_not_hashable>);
static_assert(std::is_same_v<device_handle_t<racks>, std::string> && std::is_same_v<link_handle_t<racks>, int>);
static_assert(std::is_same_v<link_handle_t<pair>, char>);

/// What an algorithm does with a topology: the latency of a route.
template <DeviceTopology T> picoseconds latency(T const& t, device_handle_t<T> const& from, device_handle_t<T> const& to) {
    picoseconds sum{};
    for (auto const& l : parsearch::route(t, from, to)) sum += link_description(parsearch::describe_link(t, l)).latency;
    return sum;
}
} // namespace device_topology_test

TEST_CASE("device topology: members and functions found by ADL serve an algorithm") {
    using namespace device_topology_test;
    CHECK(latency(pair{}, 0, 1) == picoseconds{7});
    racks const t{{{"gpu0", 0}, {"gpu1", 1}}};
    CHECK(latency(t, "gpu0", "gpu1") == picoseconds{0});
    CHECK(parsearch::describe_device(t, std::string("gpu0")).kind == "gpu");
    device_description const later = parsearch::describe_device(lazy_description{}, 0);
    CHECK(later == device_description{.kind = "later", .memory = 2});
}

TEST_CASE("device topology: a member wins over ADL") {
    using namespace device_topology_test;
    CHECK(parsearch::describe_device(both_ways{}, 0).kind == "gpu");
    CHECK(parsearch::node_of(both_ways{}, 1) == 11);
}

TEST_CASE("device topology: node_of is optional; without it all devices are one node") {
    using namespace device_topology_test;
    CHECK(parsearch::node_of(pair{}, 0) == 0);
    CHECK(parsearch::node_of(pair{}, 1) == 0);
    CHECK(parsearch::node_of(racks{{{"gpu1", 3}}}, std::string("gpu1")) == 3);
}
