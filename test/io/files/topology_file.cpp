#include <parsearch/io/files/topology_file.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/topology/machine_file.hpp>
#include <parsearch/topology/nodes.hpp>
#include <parsearch/topology/regular_clusters.hpp>

#include "support/cases.hpp"
#include "support/json_schema.hpp"
#include "support/mutations.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"
#include "support/shuffle.hpp"

using namespace parsearch;
using namespace parsearch::io;
using topology::cluster, topology::cluster_builder, topology::vertex;

namespace {
std::string written(cluster const& c) {
    std::ostringstream out;
    write_topology_json(out, c);
    return out.str();
}
cluster read(std::string const& text) {
    std::istringstream in(text);
    return read_topology_json(in, "c.json");
}
std::string refused(std::string const& text) {
    return support::refusal([&] { return read(text).size(); });
}
std::size_t routes_in(std::string const& text) {
    auto const document = nlohmann::json::parse(text);
    return document.contains("routes") ? document["routes"].size() : 0;
}
support::json_schema const& schema() {
    static support::json_schema const made("topology");
    return made;
}
/// Reads back equal, fits the schema, is written the same again.
void check_round_trip(cluster const& c) {
    auto const text = written(c);
    CHECK(schema().complaint(text) == "");
    auto const back = read(text);
    CHECK(back == c);
    CHECK(written(back) == text);
}

/// A small cluster with everything in it that a builder allows.
cluster random_cluster(std::mt19937_64& rng) {
    auto const below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(uniform_index(rng, n)); };
    auto const chance = [&](double p) { return bernoulli(rng, p); };
    cluster_builder b;
    std::vector<topology::device_spec> kinds;
    for (auto const* const name : {"a", "k80", "kind \"3\"\n"}) {
        topology::device_spec spec;
        spec.kind = name;
        if (chance(0.7)) spec.memory = static_cast<byte_count>(uniform_bits(rng) >> (1 + below(63)));
        if (chance(0.7)) spec.memory_rate = {static_cast<double>(uniform_bits(rng)) / 7};
        if (chance(0.7)) spec.host_rate = {static_cast<double>(uniform_bits(rng)) / 7};
        if (chance(0.7)) spec.launch_overhead = picoseconds{static_cast<std::int64_t>(uniform_bits(rng) >> (1 + below(63)))};
        for (auto* const rates : {&spec.contraction, &spec.elementwise})
            for (auto* const rate : {&rates->f64, &rates->f32, &rates->tf32, &rates->f16, &rates->bf16, &rates->i8})
                if (chance(0.5)) *rate = static_cast<double>(uniform_bits(rng)) * 1e-3;
        if (chance(0.5)) spec.multiprocessors = static_cast<std::uint32_t>(below(200));
        for (auto* const parts : {&spec.reached.matmul, &spec.reached.convolution, &spec.reached.attention})
            for (auto* const part : {&parts->f64, &parts->f32, &parts->tf32, &parts->f16, &parts->bf16, &parts->i8})
                if (chance(0.2)) *part = uniform_unit(rng);
        if (chance(0.2)) spec.reached.memory = uniform_unit(rng);
        kinds.push_back(spec);
    }
    std::vector<vertex> devices, all;
    std::set<std::uint32_t> nodes;
    for (auto n = 1 + below(7); n > 0; --n) {
        auto spec = kinds[below(3)];
        if (chance(0.2)) spec.memory = chance(0.5) ? std::numeric_limits<byte_count>::max() : 12345;
        auto const node = chance(0.1) ? 4294967295u : below(3);
        nodes.insert(node);
        devices.push_back(b.add_device(spec, node));
    }
    all = devices;
    std::vector<std::string> const names{"", "leaf", "leaf", "device 0 -> leaf", "\xe2\x82\xac", "s1", "s2"};
    for (auto n = below(5); n > 0; --n) all.push_back(b.add_switch(chance(0.5) ? names[below(names.size())] : text("switch ", n)));
    std::vector<topology::link_ends> ends;
    auto const rate = [&] { return bandwidth{1 + static_cast<double>(uniform_bits(rng)) / (1 + below(100))}; };
    auto const latency = [&] { return picoseconds{static_cast<std::int64_t>(below(4))}; };
    auto const name = [&] { return chance(0.7) ? std::string() : names[below(names.size())]; };
    auto const link = [&](vertex from, vertex to) {
        (void)b.add_link(from, to, rate(), latency(), name());
        ends.push_back({from, to});
    };
    std::vector<std::uint32_t> buses;
    auto const bus = [&] {
        buses.push_back(b.add_bus(rate(), latency(), name()));
        ends.push_back({});
    };
    if (chance(0.4)) bus();
    bool const joined = buses.empty() || chance(0.7); // by links
    for (std::size_t i = 0; joined && i < devices.size(); ++i) {
        auto const from = devices[i], to = devices[(i + 1) % devices.size()];
        if (from == to) continue;
        if (chance(0.5)) {
            (void)b.add_duplex_link(from, to, rate(), latency());
            ends.push_back({from, to});
            ends.push_back({to, from});
        } else {
            link(from, to);
        }
        if (chance(0.2)) bus();
    }
    for (auto n = below(12); n > 0; --n)
        if (auto const from = all[below(all.size())], to = all[below(all.size())]; !(from == to)) link(from, to);
    // Routes: walks that happen to arrive; where the devices are not joined by links, the bus.
    for (auto const from : devices)
        for (auto const to : devices) {
            if (from == to) continue;
            std::vector<std::uint32_t> route;
            auto at = std::optional(from); // nothing: on a bus
            for (int step = 0; step < 6 && !(at == to) && !ends.empty(); ++step) {
                std::vector<std::uint32_t> next;
                for (std::uint32_t l = 0; l < ends.size(); ++l)
                    if (!at || ends[l].from == *at || ends[l].from.what == vertex::type::bus) next.push_back(l);
                if (next.empty()) break;
                route.push_back(next[below(next.size())]);
                at = ends[route.back()].to.what == vertex::type::bus ? std::nullopt : std::optional(ends[route.back()].to);
            }
            bool const arrives = !route.empty() && (!at || *at == to);
            if (!joined) b.set_route(from, to, arrives ? route : std::vector<std::uint32_t>{buses.front()});
            else if (arrives && chance(0.5)) b.set_route(from, to, route);
        }
    std::vector<std::uint32_t> order(nodes.begin(), nodes.end());
    for (auto n = order.size() > 1 ? below(3) : 0; n > 0; --n) {
        support::shuffle(order, rng);
        b.add_ring(order);
    }
    return b.build();
}

constexpr char const* small = R"({
  "format": "parsearch.topology",
  "version": 1,
  "description": "two of one kind and a fast one",
  "kinds": {
    "slow": {"memory_bytes": 1000, "host_bytes_per_second": 5e9, "contraction_flops_per_second": {"f32": 1e12}, "launch_overhead_s": 5e-6},
    "fast": {"preset": "h100_sxm", "memory_bytes": 2000, "multiprocessors": 114, "reached": {"matmul": {"f16": 0.5}, "memory": 0.9}}
  },
  "devices": [{"kind": "slow", "count": 2}, {"kind": "fast", "node": 1, "memory_bytes": 3000}],
  "switches": ["leaf"],
  "links": [
    {"from": {"device": 0}, "to": {"switch": "leaf"}, "bytes_per_second": 1e9, "latency_s": 1e-6, "duplex": true},
    {"from": {"device": 1}, "to": {"switch": 0}, "bytes_per_second": 1e9, "latency_ps": 7, "duplex": true, "name": "uplink"},
    {"from": {"device": 2}, "to": {"switch": "leaf"}, "bytes_per_second": 1000000000, "latency_ps": 0},
    {"from": {"switch": "leaf"}, "to": {"device": 2}, "bytes_per_second": 2.5e9, "latency_ps": 1},
    {"name": "shared", "bus": true, "bytes_per_second": 1, "latency_ps": 0}
  ],
  "routes": [{"from": 0, "to": 2, "links": [6]}, {"from": 0, "to": 1, "links": [0, 6, 3]}],
  "rings": [[0, 1], [1, 0]]
})";
/// `small` with a part replaced by another.
std::string changed(std::string const& part, std::string const& by) { return support::replaced(small, part, by); }
} // namespace

TEST_CASE("topology JSON: a document by hand") {
    auto const c = read(small);
    CHECK(schema().complaint(std::string(small)) == "");
    CHECK(c.size() == 3);
    CHECK(c.describe_device(0).kind == "slow");
    CHECK(c.describe_device(1).memory == 1000);
    CHECK(c.describe_device(1).host_rate == bandwidth{5e9});
    CHECK(c.describe_device(1).contraction == topology::peak_rates{.f32 = 1e12});
    CHECK(c.describe_device(1).elementwise == topology::peak_rates{});
    CHECK(c.describe_device(1).launch_overhead == std::chrono::microseconds(5));
    auto fast = topology::h100_sxm;
    fast.kind = "fast";
    fast.memory = 3000;
    fast.multiprocessors = 114;
    fast.reached.matmul.f16 = 0.5;
    fast.reached.runs = {}; // they are of another device
    fast.reached.error = {};
    fast.reached.memory = 0.9;
    CHECK(c.describe_device(2) == fast);
    CHECK(c.node_of(1) == 0);
    CHECK(c.node_of(2) == 1);
    CHECK(c.switches() == std::vector<std::string>{"leaf"});
    CHECK(c.links().size() == 7);
    CHECK(c.describe_link(1) == link_description{{1e9}, std::chrono::microseconds(1)});
    CHECK(c.ends_of(1).to == vertex{vertex::type::device, 0});
    CHECK(c.given_name_of_link(2) == "uplink");
    CHECK(c.given_name_of_link(3) == "uplink");
    CHECK(c.name_of_link(5) == "leaf -> device 2");
    CHECK(c.describe_link(5).latency == picoseconds{1});
    auto const passed = [&](std::uint32_t a, std::uint32_t b) { return std::vector<std::uint32_t>(c.route(a, b).begin(), c.route(a, b).end()); };
    CHECK(passed(0, 2) == std::vector<std::uint32_t>{6});
    CHECK(passed(0, 1) == std::vector<std::uint32_t>{0, 6, 3});
    CHECK(passed(1, 0) == std::vector<std::uint32_t>{2, 1});
    CHECK(passed(2, 1) == std::vector<std::uint32_t>{4, 3});
    CHECK(c.rings() == std::vector<std::vector<std::uint32_t>>{{0, 1}, {1, 0}});
    check_round_trip(c);
    CHECK(routes_in(written(c)) == 2);
}

TEST_CASE("topology JSON: the example of the documentation") {
    auto const example = support::documented_example("parsearch.topology");
    CHECK(schema().complaint(example) == "");
    auto const c = read(example);
    CHECK(c.size() == 4);
    CHECK(c.route(1, 3).size() == 4);
    check_round_trip(c);
}

TEST_CASE("topology JSON: every cluster that the library makes reads back equal, with the routes that are not the shortest") {
    link_description const link{{3e9}, picoseconds{11}};
    for (auto const& device :
         {topology::k80, topology::p100_sxm, topology::v100_sxm, topology::a100_sxm, topology::h100_sxm, topology::h200_sxm, topology::b200_sxm})
        for (auto const intra : {topology::intra_node::direct, topology::intra_node::nvswitch, topology::intra_node::pcie})
            for (std::uint32_t const count : {1u, 3u}) {
                auto const c = topology::nodes({.count = count,
                                                .gpus_per_node = 4,
                                                .device = device,
                                                .intra = intra,
                                                .intra_link = link,
                                                .nics_per_node = 1,
                                                .nic = link,
                                                .host_link = link});
                check_round_trip(c);
                CHECK(routes_in(written(c)) == 0);
            }
    for (auto const& c : {topology::nodes({.count = 2, .device = topology::h200_sxm, .nvls = true}), topology::p100_cluster(),
                          topology::k80_cluster(), topology::dgx_a100(2), topology::dgx_h100(4), topology::summit(3),
                          topology::fully_connected({.devices = 9, .device = topology::k80, .link = link}),
                          topology::torus({.extents = {4, 3, 2}, .device = topology::k80, .link = link})}) {
        check_round_trip(c);
        CHECK(routes_in(written(c)) == 0);
    }
    // Up-paths are spread by destination: half of the routes that leave an edge switch are not the first shortest ones, and more that leave a pod.
    auto const tree = topology::fat_tree({.k = 4, .device = topology::k80, .link = link});
    check_round_trip(tree);
    CHECK(routes_in(written(tree)) > 0);
    CHECK(routes_in(written(tree)) < 16 * 15);
}

TEST_CASE("topology JSON: a machine file") {
    std::istringstream in(R"(num_nodes = 2
num_sockets_per_node = 2
num_cpus_per_socket = 1
num_gpus_per_socket = 2
membus_latency = 0.0001
membus_bandwidth = 20
upi_latency = 0.0004
upi_bandwidth = 10
nic_latency = 0.001
nic_bandwidth = 12.5
nic_persocket = 1
pci_latency = 0.001
pci_bandwidth = 15.75
nvlink_latency = 0.001
nvlink_bandwidth = 20
intra_socket_sys_mem_to_sys_mem = membus
intra_socket_sys_mem_to_gpu_fb_mem = membus pci_to_dev
intra_socket_gpu_fb_mem_to_sys_mem = pci_to_host membus
intra_socket_gpu_fb_mem_to_gpu_fb_mem = nvlink
inter_socket_sys_mem_to_sys_mem = membus upi membus
inter_socket_sys_mem_to_gpu_fb_mem = membus upi membus pci_to_dev
inter_socket_gpu_fb_mem_to_sys_mem = pci_to_host membus upi membus
inter_socket_gpu_fb_mem_to_gpu_fb_mem = pci_to_host membus upi membus pci_to_dev
inter_node_sys_mem_to_sys_mem = membus nic membus
inter_node_sys_mem_to_gpu_fb_mem = membus nic membus pci_to_dev
inter_node_gpu_fb_mem_to_sys_mem = pci_to_host membus nic membus
inter_node_gpu_fb_mem_to_gpu_fb_mem = pci_to_host membus nic membus pci_to_dev
)");
    auto const c = topology::read_machine_file(in, topology::p100_sxm);
    check_round_trip(c);
    // Within a socket the NVLink is the shortest route; all others pass buses.
    CHECK(routes_in(written(c)) == 8 * 7 - 8);
}

TEST_CASE("topology JSON: random clusters read back equal") {
    constexpr std::uint64_t seed = 31;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::size_t with_routes = 0;
    for (int i = 0; i < support::cases(1200); ++i) {
        auto const c = random_cluster(rng);
        check_round_trip(c);
        with_routes += routes_in(written(c)) > 0;
    }
    CHECK(with_routes > support::cases(300u));
    CHECK(with_routes < support::cases(1100u));
}

TEST_CASE("topology JSON: published runs tell parts of a preset's peaks, not what is given in their place") {
    auto const reached = [](std::string const& more) {
        std::istringstream in(R"({"format": "parsearch.topology", "version": 1, "kinds": {"mine": {"preset": "a100_sxm")" + more +
                              R"(}}, "devices": [{"kind": "mine"}]})");
        auto const c = io::read_topology_json(in, "c.json");
        check_round_trip(c);
        return c.describe_device(0).reached;
    };
    auto const& preset = topology::a100_sxm.reached;
    REQUIRE(preset.runs.matmul.bf16 > 2);
    REQUIRE(preset.error.bf16 > 0);
    CHECK(reached("") == preset);
    CHECK(reached(R"(, "memory_bytes": 12000, "host_bytes_per_second": 1e9)") == preset);
    for (auto const* const changed : {R"(, "reached": {"memory": 0.9})", R"(, "multiprocessors": 100)", R"(, "launch_overhead_s": 1e-6)",
                                      R"(, "memory_bytes_per_second": 1e12)", R"(, "contraction_flops_per_second": {"bf16": 300e12})"}) {
        CHECK(reached(changed).runs == topology::reached_parts::told_by{});
        CHECK(reached(changed).error == topology::by_format{});
        CHECK(reached(changed).matmul == preset.matmul);
    }
    auto const other = reached(R"(, "reached": {"matmul": {"bf16": 0.7}})");
    CHECK(other.matmul.bf16 == 0.7);
    CHECK(other.matmul.f16 == preset.matmul.f16);
    auto const told = reached(R"(, "reached": {"matmul": {"bf16": 0.7}, "runs": {"matmul": {"bf16": 5}}, "error": {"bf16": 0.2}})");
    CHECK(told.runs.matmul.bf16 == 5);
    CHECK(told.error.bf16 == 0.2);
    CHECK(other.runs == topology::reached_parts::told_by{});
}

TEST_CASE("topology JSON: what is wrong is named") {
    CHECK(refused("[]") == "c.json: the document is an array of 0: must be an object");
    CHECK(refused(changed("parsearch.topology", "parsearch.strategy")) == "c.json: format is \"parsearch.strategy\": must be \"parsearch.topology\"");
    CHECK(refused(changed("\"version\": 1", "\"version\": 2")) == "c.json: version is 2: must be 1, which this release reads");
    CHECK(refused(changed("\"switches\"", "\"switch\"")) ==
          "c.json: switch: unknown member: known are format, version, description, kinds, devices, switches, links, routes, rings");
    CHECK(refused(changed("\"node\": 1, \"memory_bytes\": 3000", "\"memory_bytes\": -1")) ==
          "c.json: devices[1].memory_bytes is -1: must be an integer from 0 to 9223372036854775807");
    CHECK(refused(changed("\"kind\": \"fast\"", "\"kind\": \"faster\"")) ==
          "c.json: devices[1].kind is \"faster\": must be one of the document's kinds");
    CHECK(refused(changed("\"count\": 2", "\"count\": 131073")) == "c.json: devices[0].count is 131073: must be an integer from 1 to 131072");
    CHECK(refused(changed("\"count\": 2", "\"count\": 131072")) == "c.json: devices[1]: device 131072: a cluster has at most 131072");
    CHECK(refused(changed("\"h100_sxm\"", "\"h100\"")) ==
          "c.json: kinds.fast.preset is \"h100\": must be one of k80, p100_sxm, v100_sxm, a100_sxm, h100_sxm, h200_sxm, b200_sxm");
    CHECK(refused(changed("\"f32\": 1e12", "\"f32\": -1")) ==
          "c.json: kinds.slow.contraction_flops_per_second.f32 is -1: must be a number of at least 0");
    CHECK(refused(changed("\"f16\": 0.5", "\"f16\": 1.5")) ==
          "c.json: kinds.fast: the kind (fast) reaches a part of 1.5 in matmul: must be from 0 (not known) to 1");
    CHECK(refused(changed("\"memory\": 0.9", "\"cache\": 0.9")) ==
          "c.json: kinds.fast.reached.cache: unknown member: known are memory, runs, error, matmul, convolution, attention");
    CHECK(refused(changed("\"f32\": 1e12", "\"fp32\": 1")) ==
          "c.json: kinds.slow.contraction_flops_per_second.fp32: unknown member: known are f64, f32, tf32, f16, bf16, i8, f8");
    CHECK(refused(changed("\"launch_overhead_s\": 5e-6", "\"launch_overhead_s\": 5e-6, \"launch_overhead_ps\": 5")) ==
          "c.json: kinds.slow.launch_overhead_s is 5e-06: must not be given beside launch_overhead_ps");
    CHECK(refused(changed("\"launch_overhead_s\": 5e-6", "\"launch_overhead_s\": 1e6")) ==
          "c.json: kinds.slow.launch_overhead_s is 1000000.0: must be at most 86400, a day");
    CHECK(refused(changed("\"slow\": {", "\"\": {")) == "c.json: kinds[\"\"]: the kind has an empty kind: a device's kind is its name");
    CHECK(refused(changed("{\"device\": 0}", "{\"device\": 3}")) == "c.json: links[0].from.device is 3: must be an integer from 0 to 2");
    CHECK(refused(changed("{\"device\": 0}", "{}")) == "c.json: links[0].from is an object: must have either a device or a switch");
    CHECK(refused(changed("{\"switch\": \"leaf\"}", "{\"switch\": \"root\"}")) ==
          "c.json: links[0].to.switch is \"root\": must be the name or the number of a switch");
    CHECK(refused(changed("\"switches\": [\"leaf\"]", "\"switches\": [\"leaf\", \"leaf\"]")) ==
          "c.json: links[0].to.switch is \"leaf\": must be the name of one switch: several have it, use a number");
    CHECK(refused(changed("{\"switch\": 0}", "{\"switch\": 1}")) == "c.json: links[1].to.switch is 1: must be an integer from 0 to 0");
    CHECK(refused(changed("{\"device\": 2}, \"to\"", "{\"switch\": 0}, \"to\"")) ==
          "c.json: links[2]: link 4 leads from leaf to itself: its ends must differ");
    CHECK(refused(changed("\"bytes_per_second\": 2.5e9", "\"bytes_per_second\": 0")) ==
          "c.json: links[3].bytes_per_second is 0: must be a number above 0");
    CHECK(refused(changed("\"latency_ps\": 7, ", "")) == "c.json: links[1]: latency_ps (or latency_s) is missing");
    CHECK(refused(changed("\"latency_ps\": 7", "\"latency_ps\": 7.5")) ==
          "c.json: links[1].latency_ps is 7.5: must be an integer from 0 to 9223372036854775807");
    CHECK(refused(changed("\"latency_ps\": 7", "\"latency_ps\": 86400000000000001")) ==
          "c.json: links[1]: link 2 has a latency of 86400000000000001 ps: must not be negative nor above a day");
    CHECK(refused(changed("\"bus\": true", "\"bus\": true, \"from\": {\"device\": 0}")) ==
          "c.json: links[4].from is an object: must not be given: a bus has no ends");
    CHECK(refused(changed("\"bus\": true", "\"bus\": true, \"duplex\": true")) ==
          "c.json: links[4].duplex is true: must not be given: a bus has no direction");
    CHECK(refused(changed("\"bus\": true", "\"bus\": true, \"reduction_bytes_per_second\": 1e9")) ==
          "c.json: links[4].reduction_bytes_per_second is 1000000000.0: must not be given: a bus has no ends");
    CHECK(refused(changed("\"latency_ps\": 7", "\"latency_ps\": 7, \"reduction_bytes_per_second\": -1")) ==
          "c.json: links[1].reduction_bytes_per_second is -1: must be a number of at least 0");
    CHECK(refused(changed("\"bus\": true, ", "")) == "c.json: links[4]: from is missing");
    CHECK(refused(changed("[0, 6, 3]", "[0, 3, 6]")) == "");
    CHECK(refused(changed("[0, 6, 3]", "[0, 2]")) ==
          "c.json: routes[1]: route from device 0 to device 1 passes link 2 (uplink) from leaf: a link must start where the one before it ends");
    CHECK(refused(changed("[0, 6, 3]", "[]")) == "c.json: routes[1]: route from device 0 to device 1 is empty: must have at least one link");
    CHECK(refused(changed("[0, 6, 3]", "[7]")) == "c.json: routes[1]: route from device 0 to device 1 passes link 7: there are 7 links");
    CHECK(refused(changed("[6]}, {", "[6]}, {\"from\": 0, \"to\": 2, \"links\": [6]}, {")) ==
          "c.json: route from device 0 to device 2 is set twice: at most once");
    CHECK(refused(changed("[1, 0]", "[1]")) == "c.json: rings[1]: ring 1 of nodes has 1 nodes: must have at least two");
    CHECK(refused(changed("[1, 0]", "[1, 2]")) == "c.json: rings[1]: ring 1 of nodes passes node 2: no device is on it");
    CHECK(refused(changed("[1, 0]", "[1, 1]")) == "c.json: rings[1]: ring 1 of nodes passes node 1 twice: each at most once");
    CHECK(refused(changed("[1, 0]", "[1, -1]")) == "c.json: rings[1][1] is -1: must be an integer from 0 to 4294967295");
    CHECK(refused(R"({"format": "parsearch.topology", "version": 1, "kinds": {"a": {}}, "devices": []})") ==
          "c.json: a cluster of no devices: at least one is needed");
    CHECK(refused(R"({"format": "parsearch.topology", "version": 1, "kinds": {"a": {}}, "devices": [{"kind": "a", "count": 2}]})") ==
          "c.json: device 1 cannot be reached from device 0: every pair of devices must be joined by links");
    CHECK(refused(R"({"format": "parsearch.topology", "version": 1, "devices": []})") == "c.json: kinds is missing");
    CHECK(support::refusal([] { return load_topology_json("/nowhere/c.json").size(); }) == "/nowhere/c.json: cannot be opened");
}

TEST_CASE("topology JSON: reader and schema know the same members") {
    CHECK(support::members_known(nlohmann::json::parse(small), refused) == schema().members());
}

TEST_CASE("topology JSON: a chain whose routes would fill the memory is refused before they do") {
    std::string text = R"({"format": "parsearch.topology", "version": 1, "kinds": {"a": {}}, "devices": [{"kind": "a", "count": 64}], "links": [)";
    for (int d = 0; d + 1 < 64; ++d)
        text += parsearch::text(d ? "," : "", R"({"from": {"device": )", d, R"(}, "to": {"device": )", d + 1,
                                R"(}, "bytes_per_second": 1, "latency_ps": 0, "duplex": true})");
    json_limits const limits;
    std::istringstream in(text + "]}");
    json_document const document(in, "c.json", limits);
    CHECK(io::detail::topology_reader(document.root()).read(87360).size() == 64); // 64 * 65 * 63 / 3 hops
    CHECK(support::refusal([&] { return io::detail::topology_reader(document.root()).read(87359).size(); }) ==
          "c.json: route from device 63 to device 62: more than 87359 hops in all routes together");
}

TEST_CASE("topology JSON: whatever a document holds, a cluster or a refusal; what is read fits the schema") {
    auto const counts = support::read_mutations(4711, 2000, small, [&](std::string const& text) {
        auto const c = read(text);
        CHECK(schema().complaint(text) == "");
        CHECK(read(written(c)) == c);
    });
    CHECK(counts.read > 250);
    CHECK(counts.refused > 2000);
}
