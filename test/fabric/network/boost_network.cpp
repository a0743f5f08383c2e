#include <parsearch/fabric/network/boost_network.hpp>

#include <chrono>

#include <boost/graph/adjacency_list.hpp>
#include <doctest/doctest.h>
#include <parsearch/fabric/wiring/found_network.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {
struct edge_rate {
    double gigabits = 100;
};
using graph_t = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, edge_rate>;
using directed_t = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
static_assert(BoostNetwork<graph_t>);
static_assert(!BoostNetwork<directed_t>);
static_assert(!BoostNetwork<found_topology>); // which has a `network_of` of its own
constexpr link_description cable{{12.5e9}, std::chrono::microseconds{1}};
} // namespace

TEST_CASE("a graph of Boost.Graph as a network") {
    graph_t g(4);
    add_edge(0, 3, edge_rate{100}, g);
    add_edge(3, 1, edge_rate{25}, g);
    add_edge(2, 3, edge_rate{100}, g);
    CHECK(network_of(g, cable, 3) == network{"graph", 3, 1, {{0, 3, cable}, {3, 1, cable}, {2, 3, cable}}, {}});
    auto const all = network_of(g, [&](auto e) { return link_description{{g[e].gigabits / 8 * 1e9}, cable.latency}; });
    CHECK(all.servers == 4);
    CHECK(all.links[1].each.rate == bandwidth{25e9 / 8});
    CHECK_THROWS_WITH_AS((void)network_of(g, cable, 5), doctest::Contains("of 4 vertices, of which 5 are servers"), invalid_input);
    add_edge(2, 2, g);
    CHECK_THROWS_WITH_AS((void)network_of(g, cable), doctest::Contains("link 3 joins 2 and 2"), invalid_input);
}
