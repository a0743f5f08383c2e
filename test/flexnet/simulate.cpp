#include <parsearch/flexnet/simulate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/flexnet_task_graphs.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::flexnet;

namespace {
/// `nodes` of one GPU on a switch, links of 1000 bytes per ms; GPU i is device i, a message from a to b is on device 100 + 10 a + b.
task_graph star(std::uint32_t nodes) {
    task_graph g{.nodes = nodes, .switches = 1, .link_bytes_per_ms = 1000};
    for (std::uint32_t a = 0; a < nodes; ++a) {
        g.connections.push_back({nodes, a, 1});
        g.devices.push_back({device_type::gpu, a, a, a, 0});
        for (std::uint32_t b = 0; b < nodes; ++b)
            if (a != b) {
                g.routes.push_back({a, b, {{{a, nodes, b}, 1}}});
                g.devices.push_back({device_type::nominal_network, 100 + 10 * a + b, device::no_node, g.pair(a, b), 0});
            }
    }
    return g;
}
constexpr picoseconds ms(std::int64_t n) { return picoseconds{n * 1'000'000'000}; }
byte_count on(iteration const& i, std::uint32_t from, std::uint32_t to) {
    for (std::size_t c = 0; c < i.carriers.size(); ++c)
        if (i.carriers[c].what == carrier::type::network && i.carriers[c].from == from && i.carriers[c].to == to) return i.bytes[c];
    return -1;
}
} // namespace

TEST_CASE("FlexNet simulation: work, messages and their order") {
    auto g = star(3);
    // GPU 0 sends to 1 and 2, which share its link up: 1 ms of work, 2 ms and 3 ms of messages, 4 ms of work on GPU 2.
    g.tasks = {{task_type::forward, 1, 0, 1, 0, {2, 3}},
               {task_type::nominal_comm, 2, 101, 99, 2000, {4}},
               {task_type::nominal_comm, 3, 102, 99, 3000, {5}},
               {task_type::backward, 4, 1, 5, 0, {}},
               {task_type::update, 5, 2, 4, 0, {}}};
    auto const i = simulate(g);
    CHECK(i.time == ms(10)); // the second message ends at 6
    CHECK(i.compute == std::vector{ms(1), ms(5), ms(4)});
    CHECK(i.devices == std::vector<std::uint32_t>{0, 3, 6});
    CHECK(on(i, 0, 3) == 5000);
    CHECK(on(i, 3, 1) == 2000);
    CHECK(on(i, 3, 2) == 3000);
    CHECK(on(i, 3, 0) == 0);
    CHECK(name_of(g, i.carriers[0]) == "vertex 3 -> vertex 0");
    // What comes first in the file goes first.
    std::swap(g.tasks[1], g.tasks[2]);
    CHECK(simulate(g).time == ms(11)); // the message to GPU 1 ends at 6
    // Two links side by side.
    g.connections[0].links = 2;
    CHECK(simulate(g).time == picoseconds{8'500'000'000}); // up from 0: until 2.5 and 3.5; down to 1: until 3
}

TEST_CASE("FlexNet simulation: an all-reduce goes round, and nothing waits for it") {
    auto g = star(4);
    g.tasks = {{task_type::backward, 1, 0, 1, 0, {2}}, {task_type::all_reduce, 2, 0, 0, 8000, {0, 1, 2, 3}}};
    auto i = simulate(g);
    CHECK(i.time == ms(13)); // 2 * 3/4 of 8000 bytes
    for (std::uint32_t v = 0; v < 4; ++v) {
        CHECK(on(i, v, 4) == 12'000);
        CHECK(on(i, 4, v) == 12'000);
    }
    // Over two rings, one of them by way of others: each member passes on half of the other one's, too.
    g.rings = {{4, {{1}, {2, 1}}}};
    i = simulate(g);
    for (std::uint32_t v = 0; v < 4; ++v) CHECK(on(i, v, 4) == 6000 + 2 * 6000);
    // Rings are for groups of their size alone.
    g.tasks[1].next = {0, 2};
    i = simulate(g);
    CHECK(i.time == ms(9));
    CHECK(on(i, 0, 4) == 8000);
    CHECK(on(i, 1, 4) == 0);
    g.tasks[1].next = {3};
    CHECK(simulate(g).time == ms(1));
}

TEST_CASE("FlexNet simulation: routes of several paths share the bytes, and connections do without a route") {
    task_graph g{.nodes = 3, .link_bytes_per_ms = 1000, .connections = {{1, 0, 1}, {2, 0, 1}, {2, 1, 1}}};
    g.devices = {{device_type::nominal_network, 7, device::no_node, 2, 0}};
    g.tasks = {{task_type::nominal_comm, 1, 7, 0, 4001, {2}}, {task_type::nominal_comm, 2, 7, 0, 0, {}}};
    CHECK(on(simulate(g), 0, 2) == 4001);
    g.routes = {{0, 2, {{{0, 2}, 0.75F}, {{0, 1, 2}, 0.25F}}}};
    auto const i = simulate(g);
    CHECK(on(i, 0, 2) == 3000);
    CHECK(on(i, 0, 1) == 1001);
    CHECK(on(i, 1, 2) == 1001);
    CHECK(i.time == ms(3));
}

TEST_CASE("FlexNet simulation: what joins the GPUs of a node, and other devices") {
    task_graph g{.gpus_per_node = 2, .nodes = 1, .gpu_bytes_per_ms = 500, .memory_bytes_per_ms = 250};
    g.devices = {{device_type::gpu, 0, 0, 0, 0},
                 {device_type::gpu, 1, 0, 1, 0},
                 {device_type::nvlink, 2, 0, 1, 1000},
                 {device_type::memory_bus, 3, 0, 0, 0},
                 {device_type::nic_out, 4, 0, 0, 50}};
    g.tasks = {{task_type::comm, 1, 2, 0, 1000, {}},
               {task_type::comm, 2, 3, 0, 1000, {}},
               {task_type::comm, 3, 4, 0, 1000, {}},
               {task_type::all_reduce, 4, 0, 0, 2000, {0, 1}}};
    auto const i = simulate(g);
    REQUIRE(i.carriers.size() == 4);
    CHECK(name_of(g, i.carriers[0]) == "gpu 0 -> gpu 1");
    CHECK(name_of(g, i.carriers[1]) == "memory_bus device 3");
    CHECK(name_of(g, i.carriers[2]) == "nic_out device 4");
    CHECK(name_of(g, i.carriers[3]) == "gpu 1 -> gpu 0");
    CHECK(i.bytes == std::vector<byte_count>{3000, 1000, 1000, 2000});
    CHECK(i.carriers[0].bytes_per_ms == 1000);
    CHECK(i.carriers[3].bytes_per_ms == 500);
    CHECK(i.time == ms(20)); // the interface
    g.devices[4].bytes_per_ms = 0;
    CHECK(support::refusal([&] { return simulate(g).time; }) ==
          "FlexNet task graph: tasks[2] (comm, taskid 3) sends 1000 bytes over nic_out device 4: the file says no bandwidth of it");
}

TEST_CASE("FlexNet simulation: what has no way is refused") {
    auto g = star(3);
    g.tasks = {{task_type::nominal_comm, 9, 102, 0, 1, {}}};
    g.routes.clear();
    CHECK(
        support::refusal([&] { return simulate(g).time; }) ==
        "FlexNet task graph: tasks[0] (nominal_comm, taskid 9) sends from vertex 0 to vertex 2: no route leads there, and no connection joins them");
    g.devices.push_back({device_type::network, 500, 0, 2, 0});
    g.tasks = {{task_type::comm, 9, 500, 0, 1, {}}};
    CHECK(support::refusal([&] { return simulate(g).time; }) ==
          "FlexNet task graph: tasks[0] (comm, taskid 9) sends from vertex 0 to vertex 2: no connection joins them");
    g.link_bytes_per_ms = 1e-30F;
    g.devices.back().property = g.pair(0, 3);
    CHECK(support::refusal([&] {
              return simulate(g).time;
          }).starts_with("FlexNet task graph: tasks[0] (comm, taskid 9) sends 1 bytes over vertex 0 -> vertex 3: time of "));
}

TEST_CASE("FlexNet simulation: random graphs keep the order of their tasks, and their totals") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const g = support::random_task_graph(rng);
        auto const low = lower(g);
        sim::schedule when;
        sim::scheduler{}.run(low.tasks, sim::discipline::fifo, when);
        std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> span; // of each task: first start, last end
        std::vector<std::int64_t> work(low.computing.size(), 0);
        for (std::uint32_t t = 0; t < low.tasks.size(); ++t) {
            for (auto const p : low.tasks.before(t)) REQUIRE(p < t);
            auto& s = span.try_emplace(g.tasks[low.source[t]].id, when.start[t], when.end[t]).first->second;
            s = {std::min(s.first, when.start[t]), std::max(s.second, when.end[t])};
        }
        std::map<std::uint64_t, std::int64_t> expected;
        byte_count sent = 0;
        for (auto const& t : g.tasks) {
            if (t.type == task_type::forward || t.type == task_type::backward || t.type == task_type::update)
                expected[t.device] += std::llround(static_cast<double>(t.runtime_ms) * 1e9);
            if (t.type == task_type::comm) sent += static_cast<byte_count>(t.bytes);
            if (t.type == task_type::all_reduce) continue;
            for (auto const n : t.next)
                if (span.contains(t.id) && span.contains(n)) CHECK(span.at(t.id).second <= span.at(n).first);
        }
        auto const i = simulate(g);
        CHECK(i.time.count() == when.makespan);
        for (std::size_t d = 0; d < i.devices.size(); ++d) CHECK(i.compute[d].count() == expected[g.devices[i.devices[d]].id]);
        byte_count carried = 0;
        for (auto const b : i.bytes) carried += b;
        CHECK(carried >= sent);
        CHECK(simulate(g, sim::discipline::in_order).time >= *std::max_element(i.compute.begin(), i.compute.end()));
    }
}
