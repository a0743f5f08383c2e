#include <parsearch/flexnet/validate.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/flexnet_task_graphs.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::flexnet;

namespace {
/// Two nodes of one GPU on a switch: a task on each, a message and an all-reduce.
task_graph small() {
    task_graph g{.nodes = 2, .switches = 1, .link_bytes_per_ms = 1000, .connections = {{2, 0, 1}, {2, 1, 1}}};
    g.devices = {{device_type::gpu, 10, 0, 0, 0}, {device_type::gpu, 11, 1, 1, 0}, {device_type::nominal_network, 12, device::no_node, 1, 0}};
    g.tasks = {{task_type::forward, 1, 10, 1, 0, {2}},
               {task_type::nominal_comm, 2, 12, 0, 100, {3}},
               {task_type::backward, 3, 11, 2, 0, {4}},
               {task_type::all_reduce, 4, 0, 0, 64, {0, 1}}};
    g.routes = {{0, 1, {{{0, 2, 1}, 1}}}};
    g.rings = {{2, {{1}}}};
    return g;
}
} // namespace

TEST_CASE("FlexNet task graphs: right ones pass, and their ids are found") {
    auto const ids = validate(small());
    CHECK(ids.task.at(3) == 2);
    CHECK(ids.device.at(12) == 2);
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        CHECK(support::refusal([&] { return validate(support::random_task_graph(rng)).task.size(); }).empty());
    }
}

TEST_CASE("FlexNet task graphs: what is wrong is named") {
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<std::pair<std::function<void(task_graph&)>, std::string>> const wrong{
        {[](auto& g) { g.nodes = 0; }, "nnode is 0: there must be at least one node"},
        {[](auto& g) { g.switches = 1U << 16; }, "nnode is 2 and nswitch 65536: must be at most 65536 together"},
        {[](auto& g) { g.gpus_per_node = 0; }, "ngpupernode is 0 on 2 nodes: must be from 1, and at most 1048576 GPUs in all"},
        {[&](auto& g) { g.link_bytes_per_ms = nan; }, "netbw is nan: must be finite and not negative"},
        {[](auto& g) { g.memory_bytes_per_ms = -1; }, "drambw is -1: must be finite and not negative"},
        {[](auto& g) {
             g.connections[0] = {0, 2, 1};
         },
         "conn[0] from 0 to 2: must lead from one of 3 vertices to one of a smaller number"},
        {[](auto& g) { g.connections[1].to = 0; }, "conn[1] from 2 to 0: is there twice: must be once"},
        {[](auto& g) { g.devices[1].type = static_cast<device_type>(15); }, "devices[1] (deviceid 11) has type 15: must be from 0 to 14"},
        {[](auto& g) { g.devices[1].type = static_cast<device_type>(-1); }, "devices[1] (deviceid 11) has type -1: must be from 0 to 14"},
        {[](auto& g) { g.devices[1].id = 10; }, "devices[1] (deviceid 10): its id is that of another device: must be its own"},
        {[](auto& g) { g.devices[1].node = 2; }, "devices[1] (deviceid 11) has nodeid 2: there are 2 nodes"},
        {[](auto& g) { g.devices[1].property = 2; }, "devices[1] (deviceid 11) is GPU 2 by its deviceproperty: there are 2"},
        {[](auto& g) { g.devices[1].property = 0; }, "devices[1] (deviceid 11) is GPU 0 by its deviceproperty, as another is: must be one"},
        {[](auto& g) { g.devices[2].property = 4; },
         "devices[2] (deviceid 12) has deviceproperty 4: must be sender * 3 + receiver, of two of 3 vertices"},
        {[](auto& g) { g.devices[2].property = 9; },
         "devices[2] (deviceid 12) has deviceproperty 9: must be sender * 3 + receiver, of two of 3 vertices"},
        {[](auto& g) { g.tasks[0].type = static_cast<task_type>(7); }, "tasks[0] (taskid 1) has type 7: must be from 0 to 6"},
        {[](auto& g) { g.tasks[2].id = 1; }, "tasks[2] (backward, taskid 1): its id is that of another task: must be its own"},
        {[&](auto& g) { g.tasks[0].runtime_ms = nan; }, "tasks[0] (forward, taskid 1) has a runtime of nan ms: must be from 0 to 1e+09"},
        {[](auto& g) { g.tasks[1].bytes = std::uint64_t{1} << 61; },
         "tasks[1] (nominal_comm, taskid 2) has an xfersize of 2305843009213693952 bytes: must be at most 1152921504606846976"},
        {[](auto& g) { g.tasks[0].device = 99; }, "tasks[0] (forward, taskid 1) is on device 99: there is no such deviceid"},
        {[](auto& g) { g.tasks[0].device = 12; }, "tasks[0] (forward, taskid 1) is on device 12 of type nominal_network: must be one that computes"},
        {[](auto& g) { g.tasks[1].device = 10; }, "tasks[1] (nominal_comm, taskid 2) is on device 10 of type gpu: must be one that moves data"},
        {[](auto& g) { g.tasks[1].next = {5}; }, "tasks[1] (nominal_comm, taskid 2) has task 5 in nexttasks: there is no such taskid"},
        {[](auto& g) { g.tasks[3].next = {}; }, "tasks[3] (all_reduce, taskid 4) names no GPU in nexttasks: must name those that take part"},
        {[](auto& g) {
             g.tasks[3].next = {0, 2};
         },
         "tasks[3] (all_reduce, taskid 4) names GPU 2 in nexttasks: there is no GPU of this number"},
        {[](auto& g) {
             g.tasks[3].next = {1, 1};
         },
         "tasks[3] (all_reduce, taskid 4) names GPU 1 twice in nexttasks: a group has each once"},
        {[](auto& g) { g.tasks[2].next = {1}; },
         "tasks[0] (forward, taskid 1) waits for tasks that wait for each other: nexttasks must lead in no circle"},
        {[](auto& g) { g.routes[0].to = 3; }, "routes[0] from 0 to 3: there are 3 vertices"},
        {[](auto& g) { g.routes.push_back(g.routes[0]); }, "routes[1] from 0 to 1: is there twice: must be once"},
        {[](auto& g) { g.routes[0].paths[0].chance = 1.5F; }, "routes[0] from 0 to 1, path 0 has a chance of 1.5: must be from 0 to 1"},
        {[](auto& g) { g.routes[0].paths[0].chance = 0.5F; }, "routes[0] from 0 to 1 has chances of 0.5 in all: must be 1"},
        {[](auto& g) {
             g.routes[0].paths[0].vertices = {0, 2};
         },
         "routes[0] from 0 to 1, path 0: must begin and end with the vertices of its route"},
        {[](auto& g) {
             g.routes[0].paths[0].vertices = {0, 1};
         },
         "routes[0] from 0 to 1, path 0 goes from 0 to 1: no connection joins them"},
        {[](auto& g) {
             g.routes[0].paths[0].vertices = {0, 7, 1};
         },
         "routes[0] from 0 to 1, path 0 passes vertex 7: there are 3"},
        {[](auto& g) {
             g.routes[0].paths[0].vertices = {0, 2, 0, 2, 1};
         },
         "routes[0] from 0 to 1, path 0 passes vertex 0 twice: must be once"},
        {[](auto& g) { g.rings[0].size = 3; }, "rings[0] of size 3: must be from 2 to the 2 GPUs"},
        {[](auto& g) { g.rings.push_back(g.rings[0]); }, "rings[1] of size 2: is there twice: must be once"},
        {[](auto& g) { g.rings[0].jumps = {{2}}; }, "rings[0] of size 2, ring 0 has a jump of 2: must lead to another member"},
        {[](auto& g) {
             g.rings[0].jumps = {{1, 1}};
         },
         "rings[0] of size 2, ring 0 has jumps of 0 in all: must have no factor in common with the size"},
    };
    for (auto const& [spoil, message] : wrong) {
        auto g = small();
        spoil(g);
        CHECK(support::refusal([&] { return validate(g, "g").task.size(); }) == "g: " + message);
    }
}
