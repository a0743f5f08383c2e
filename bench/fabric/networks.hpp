#pragma once
// The networks that the benchmark of fabrics compares, and what is searched on them.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <parsearch/fabric/network/disjoint_rings.hpp>
#include <parsearch/fabric/network/fat_tree_network.hpp>
#include <parsearch/fabric/network/network_price.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>

#include "workloads.hpp"

namespace bench {

namespace ps = parsearch;
namespace fabric = parsearch::fabric;

// One search: a model on servers of four GPUs with `degree` interfaces of `gbps` each, wired as `wiring` says.
struct cell {
    workload model;
    std::uint32_t servers = 0, degree = 0;
    double gbps = 0;
    std::string_view wiring;
    [[nodiscard]] std::uint32_t gpus() const { return servers * 4; }
    [[nodiscard]] std::int64_t batch() const { return model.batch_per_gpu * gpus(); }
};

// Fabrics found in rounds and by joint moves, then networks that do not depend on the model.
inline constexpr std::array<std::string_view, 7> wirings{"found",    "joint moves", "ideal switch",   "ideal fat tree",
                                                         "fat tree", "random",      "fully connected"};

inline ps::link_description interface_of(double gbps) { return {{gbps * 1e9 / 8}, std::chrono::microseconds(1)}; }

inline fabric::network ideal_switch_of(cell const& c) { return fabric::ideal_switch(c.servers, interface_of(c.degree * c.gbps)); }
inline fabric::network fixed_network(cell const& c, std::uint64_t seed) {
    if (c.wiring == "ideal switch") return ideal_switch_of(c);
    if (c.wiring == "fully connected")
        return fabric::with_rings(fabric::fully_connected(c.servers, interface_of(c.degree * c.gbps / (c.servers - 1)))); // as much per server
    auto const direct = fabric::random_links(c.servers, c.degree, seed, interface_of(c.gbps));
    if (c.wiring == "random") return fabric::with_rings(direct);
    ps::link_description const link{fabric::fat_tree_rate_of_similar_price(direct), direct.links.front().each.latency};
    if (c.wiring == "fat tree") return fabric::fat_tree(c.servers, link);
    auto out = fabric::ideal_switch(c.servers, link); // a fat tree where no flows collide, as FlexNet has it
    out.name = "ideal fat tree";
    return out;
}

// Links between servers go through a patch panel. None where the list has no price at the rate of a link.
inline std::optional<double> listed_price(cell const& c, fabric::network const& wired) {
    auto const n = c.wiring == "ideal fat tree" ? fabric::fat_tree(c.servers, wired.links.front().each) : wired;
    fabric::price_list const prices;
    for (auto const& l : n.links) {
        auto const rate = l.each.rate.bytes_per_second;
        if (rate < prices.by_rate.front().rate.bytes_per_second || rate > prices.by_rate.back().rate.bytes_per_second) return {};
    }
    return fabric::price_of(n, fabric::cabling::patch_panel, prices).total();
}

// A100 behind one NVSwitch per server, which has half of a latency on the way to it and half from it.
inline fabric::server_options servers_of_four() {
    return {.gpus_per_server = 4,
            .device = ps::topology::a100_sxm,
            .inside = fabric::inside_server::one_switch,
            .inside_link = {{300e9}, std::chrono::nanoseconds(500)},
            .host_link = {{31.5e9}, std::chrono::microseconds(1)}};
}

// What is searched. Flows are spread over all shortest paths. Messages along an edge are sent together: one by one they would be up to 512^2 tasks.
// Strategies must fit the memory.
inline fabric::fabric_problem problem_of(cell const& c, ps::graph::operator_graph const& model) {
    auto servers = servers_of_four();
    servers.interface = interface_of(c.gbps);
    return {model,
            c.servers,
            {.servers = servers,
             .routes = {.policy = fabric::routing::ecmp},
             .problem = {.simulation = {.movement = ps::sim::movement::grouped, .memory = ps::sim::memory_policy::reject}}}};
}
inline fabric::fabric_problem problem_of(cell const& c) { return problem_of(c, c.model.make(c.batch())); }

} // namespace bench
