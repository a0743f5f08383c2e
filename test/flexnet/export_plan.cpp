#include <parsearch/flexnet/export_plan.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/servers/link_load.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/flexnet/simulate.hpp>
#include <parsearch/models/alexnet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using flexnet::task_type;

namespace {
link_description const wire{{12.5e9}, {}};

fabric::server_options servers_of(std::uint32_t gpus) {
    return {.gpus_per_server = gpus, .device = topology::a100_sxm, .inside_link = {{300e9}, {}}, .host_link = {{1e15}, {}}, .interface = wire};
}

/// The work of each device, in picoseconds, as the plan and as the exported graph have it; and the number of its tasks.
struct work {
    std::int64_t planned = 0, exported = 0, tasks = 0;
};
template <class P, class S> std::vector<work> work_of(P const& p, S const& s, flexnet::task_graph const& g) {
    std::vector<work> out(p.topology().size());
    auto simulator = p.simulator();
    auto const& tasks = simulator.assemble(s);
    for (std::uint32_t t = 0; t < tasks.size(); ++t)
        if (auto const r = tasks.resource[t]; r < out.size()) {
            out[r].planned += tasks.duration[t];
            ++out[r].tasks;
        }
    auto const i = flexnet::simulate(g);
    REQUIRE(i.devices.size() == out.size());
    for (std::size_t d = 0; d < out.size(); ++d) out[d].exported = i.compute[d].count(); // the devices come in our order
    return out;
}

byte_count sent(flexnet::task_graph const& g) {
    byte_count sum = 0;
    for (auto const& t : g.tasks)
        sum += static_cast<byte_count>(t.bytes) * (t.type == task_type::all_reduce ? 2 * static_cast<byte_count>(t.next.size() - 1) : 1);
    return sum;
}
} // namespace

TEST_CASE("FlexNet export: work and bytes are those of the plan, and links carry what the traffic of the strategy puts on them") {
    std::map<task_type, std::size_t> met;
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const servers = static_cast<std::uint32_t>(2 + uniform_index(rng, 5));
        auto const net = seed % 3 == 0   ? fabric::ideal_switch(servers, wire)
                         : seed % 3 == 1 ? fabric::torus({servers}, wire)
                                         : fabric::fat_tree(servers, wire, 4);
        fabric::path_table const ways(net, {.policy = seed % 2 ? fabric::routing::shortest : fabric::routing::ecmp});
        auto const p = make_problem(support::random_network(rng), fabric::server_cluster(net, ways, servers_of(1)), support::mixed_oracle{},
                                    {.simulation = support::random_options(rng)});
        auto const s = support::random_strategy(rng, p, 0.5);
        auto const [g, losses] = flexnet::export_plan(p, s, net, ways);
        CHECK(std::all_of(losses.begin(), losses.end(), [](auto const& l) { return l.find("along one ring") != std::string::npos; }));
        for (auto const& t : g.tasks) ++met[t.type];
        for (auto const& w : work_of(p, s, g)) CHECK(std::abs(w.planned - w.exported) <= w.tasks + (w.planned >> 24));
        auto const demand = fabric::traffic_of(p, s);
        CHECK(sent(g) == demand.point_to_point_bytes() + demand.all_reduce_bytes());
        // The demand sums up the all-reduces of a group before it cuts them in chunks, and takes a broadcast with the reduction of its gradients for
        // an all-reduce, which is as much in all, evenly on all links of the ring.
        auto simulator = p.simulator();
        (void)simulator.assemble(s);
        byte_count rooted = 0;
        for (auto const& e : simulator.plan().edges)
            for (auto const& c : e.collectives)
                rooted += c.forward_kind == collective_kind::broadcast || c.forward_kind == collective_kind::reduce ? c.bytes : 0;
        auto const load = fabric::load_of(net, ways, demand);
        auto const collectives = std::count_if(g.tasks.begin(), g.tasks.end(),
                                               [](auto const& t) { return t.type == task_type::all_reduce || t.type == task_type::barrier; });
        std::map<std::pair<std::uint32_t, std::uint32_t>, byte_count> expected; // by both ends
        for (fabric::link_direction d = 0; d < 2 * net.links.size(); ++d) {
            auto const& l = net.links[d / 2];
            expected[d % 2 == 0 ? std::pair{l.a, l.b} : std::pair{l.b, l.a}] += load.total(d);
        }
        auto const i = flexnet::simulate(g);
        REQUIRE(i.carriers.size() == expected.size());
        for (std::size_t c = 0; c < i.carriers.size(); ++c) {
            auto const ends = std::pair{i.carriers[c].from, i.carriers[c].to};
            CHECK(std::abs(i.bytes[c] - expected.at(ends)) <= 4 * static_cast<byte_count>(servers) * collectives + rooted);
        }
    }
    for (auto const t :
         {task_type::forward, task_type::backward, task_type::update, task_type::nominal_comm, task_type::all_reduce, task_type::barrier})
        CHECK(met[t] > 50);
}

TEST_CASE("FlexNet export: nodes of several devices") {
    std::size_t inside = 0;
    for (std::uint64_t seed = 1; seed <= 80; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const net = fabric::ideal_switch(static_cast<std::uint32_t>(2 + seed % 2), wire);
        fabric::path_table const ways(net, {});
        auto const p = make_problem(support::random_network(rng), fabric::server_cluster(net, ways, servers_of(2)), support::mixed_oracle{},
                                    {.simulation = support::random_options(rng)});
        auto const s = support::random_strategy(rng, p, 0.5);
        for (auto const& e : {flexnet::export_plan(p, s, net, ways), flexnet::export_plan(p, s)}) {
            CHECK(e.graph.gpus_per_node == 2);
            for (auto const& w : work_of(p, s, e.graph)) CHECK(std::abs(w.planned - w.exported) <= w.tasks + (w.planned >> 24));
            // What all devices send, whether or not it leaves the node.
            std::vector<std::uint32_t> own(p.topology().size());
            std::iota(own.begin(), own.end(), 0U);
            auto const demand = fabric::traffic_of(p.graph(), own, p.options(), s);
            CHECK(sent(e.graph) == demand.point_to_point_bytes() + demand.all_reduce_bytes());
            for (auto const& t : e.graph.tasks) inside += t.type == task_type::comm;
            CHECK(e.graph.gpu_bytes_per_ms == 3e8F);
        }
    }
    CHECK(inside > 100);
}

TEST_CASE("FlexNet export: rings of the network carry its all-reduces") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const net = fabric::circulant(8, {1, 3}, wire);
        fabric::path_table const ways(net, {});
        auto const p = make_problem(support::random_network(rng), fabric::server_cluster(net, ways, servers_of(1)), support::mixed_oracle{}, {});
        auto const s = data_parallel(p);
        auto const [g, losses] = flexnet::export_plan(p, s, net, ways);
        CHECK(losses.empty());
        REQUIRE(g.rings.size() == 1);
        CHECK(g.rings[0].size == 8);
        CHECK(g.rings[0].jumps == std::vector<std::vector<std::int32_t>>{{1}, {7}, {3}, {5}});
        if (fabric::traffic_of(p, s).point_to_point_bytes() > 0) continue;
        auto const load = fabric::load_of(net, ways, fabric::traffic_of(p, s));
        auto const i = flexnet::simulate(g);
        auto const reduces = std::count_if(g.tasks.begin(), g.tasks.end(), [](auto const& t) { return t.type == task_type::all_reduce; });
        for (std::size_t c = 0; c < i.carriers.size(); ++c)
            for (fabric::link_direction d = 0; d < 2 * net.links.size(); ++d) {
                auto const& l = net.links[d / 2];
                if ((d % 2 == 0 ? std::pair{l.a, l.b} : std::pair{l.b, l.a}) == std::pair{i.carriers[c].from, i.carriers[c].to})
                    CHECK(std::abs(i.bytes[c] - load.total(d)) <= 4 * reduces);
            }
    }
}

TEST_CASE("FlexNet export: an iteration without latencies and collectives takes the time that our simulation says") {
    auto const net = fabric::ideal_switch(4, wire);
    fabric::path_table const ways(net, {});
    for (bool const training : {false, true}) {
        auto const p =
            make_problem(models::alexnet({.batch = 64}), fabric::server_cluster(net, ways, servers_of(1)),
                         cost::roofline{fabric::server_cluster(net, ways, servers_of(1))},
                         {.simulation = {.movement = sim::movement::pairwise, .training = training, .memory = sim::memory_policy::ignore}});
        std::vector<space::configuration> s; // each operator on one device, neighbours on others
        for (std::size_t op = 0; op < p.size(); ++op) {
            s.push_back(space::whole(p.graph().operations[op]));
            s.back().listed.push_back(static_cast<std::int32_t>(op * 7 % 4));
        }
        auto simulator = p.simulator();
        auto const ours = simulator.simulate(s);
        auto const theirs = flexnet::simulate(flexnet::export_plan(p, s, net, ways).graph).time;
        CHECK(ours > picoseconds{5'000'000'000});
        CHECK(std::abs(static_cast<double>(ours.count() - theirs.count())) < 1e-6 * static_cast<double>(ours.count()));
    }
}

TEST_CASE("FlexNet export: updates wait for work, all-reduces for nothing else, and files say so") {
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 1, .device = topology::v100_sxm});
    auto const p = make_problem(models::mlp({.features = 64, .hidden = {}, .classes = 8, .batch = 8}), cluster, cost::roofline{cluster}, {});
    auto const [g, losses] = flexnet::export_plan(p, data_parallel(p));
    CHECK(losses == std::vector<std::string>{"the network between nodes is written as one ideal switch"});
    CHECK(g.link_bytes_per_ms == 12.5e6F);
    auto const reduce = std::find_if(g.tasks.begin(), g.tasks.end(), [](auto const& t) { return t.type == task_type::all_reduce; });
    REQUIRE(reduce != g.tasks.end());
    CHECK(reduce->bytes == (64 * 8 + 8) * 4);
    CHECK(reduce->next == std::vector<std::uint64_t>{0, 1});
    std::vector<task_type> before;
    for (auto const& t : g.tasks)
        if (t.type != task_type::all_reduce && std::count(t.next.begin(), t.next.end(), reduce->id)) before.push_back(t.type);
    CHECK(before == std::vector{task_type::barrier});
    CHECK(std::count_if(g.tasks.begin(), g.tasks.end(), [](auto const& t) { return t.type == task_type::update && t.next.empty(); }) == 2);
    CHECK(g.operators.size() == p.size());
}

TEST_CASE("FlexNet wiring: links of several rates, and what the format cannot say") {
    auto net = fabric::ideal_switch(3, wire);
    net.links[1].each.rate.bytes_per_second *= 4;
    fabric::path_table const ways(net, {});
    auto const read = [](auto const& cluster) { return topology::read_topology(cluster).topology; };
    auto const w = flexnet::wiring_of(net, ways, read(fabric::server_cluster(net, ways, servers_of(1))));
    CHECK(w.graph.connections == std::vector<flexnet::connection>{{3, 0, 1}, {3, 1, 4}, {3, 2, 1}});
    net.links[1].each.rate.bytes_per_second *= 1.1;
    CHECK(support::refusal([&] {
              return flexnet::wiring_of(net, ways, read(fabric::server_cluster(net, ways, servers_of(1)))).graph;
          }).find("all must be multiples of the least") != std::string::npos);
    CHECK(support::refusal([&] {
              return flexnet::wiring_of(fabric::ideal_switch(4, wire), ways, read(fabric::server_cluster(net, ways, servers_of(1)))).graph;
          }).find("must be the same") != std::string::npos);
    // An interface for each of eight GPUs.
    auto const dgx = flexnet::star_wiring(read(topology::dgx_a100(2)));
    CHECK(dgx.graph.connections == std::vector<flexnet::connection>{{2, 0, 8}, {2, 1, 8}});
    CHECK(dgx.graph.link_bytes_per_ms == 24e6F);
    CHECK(dgx.losses.size() == 2);
    // Four GPUs of 31.5 GB/s each behind one link of 50 GB/s.
    auto const behind = fabric::ideal_switch(3, {{50e9}, std::chrono::microseconds{1}});
    auto narrow = servers_of(4);
    narrow.host_link.rate.bytes_per_second = 31.5e9;
    auto const shared = flexnet::star_wiring(read(fabric::server_cluster(behind, fabric::path_table(behind, {}), narrow)));
    CHECK(shared.graph.connections == std::vector<flexnet::connection>{{3, 0, 4}, {3, 1, 4}, {3, 2, 4}});
    CHECK(shared.graph.link_bytes_per_ms == 12.5e6F);
    CHECK(std::count(shared.losses.begin(), shared.losses.end(),
                     "links of 3.15e+10 bytes per second share others on their way out of a node: all are written as 1.25e+10") == 1);
    // Rings that have no constant step, and rings of servers of several GPUs.
    auto ringed = fabric::fully_connected(5, wire);
    ringed.rings = {{0, 1, 2, 3, 4}, {0, 1, 3, 2, 4}, {0, 1, 2}, {1, 2, 3}};
    fabric::path_table const direct(ringed, {});
    auto const of_five = flexnet::wiring_of(ringed, direct, read(fabric::server_cluster(ringed, direct, servers_of(1))));
    CHECK(of_five.graph.rings == std::vector<flexnet::group_rings>{{3, {{1}}}, {5, {{1}}}});
    CHECK(of_five.losses == std::vector<std::string>{"ring 1 of servers is left out: it has no constant step through its members",
                                                     "rings of 3 servers are of 2 groups: the format has the same for all groups of a size"});
    CHECK(flexnet::wiring_of(ringed, direct, read(fabric::server_cluster(ringed, direct, servers_of(2)))).losses.size() == 1);
}
