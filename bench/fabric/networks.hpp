#pragma once
// The networks that the benchmark of fabrics compares, their clusters and problems.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/fabric/network_price.hpp>
#include <parsearch/fabric/networks.hpp>
#include <parsearch/fabric/random_regular.hpp>
#include <parsearch/fabric/server_cluster.hpp>
#include <parsearch/problem/problem.hpp>

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

// Networks that do not depend on the model.
inline constexpr std::array<std::string_view, 4> fixed_wirings{"ideal switch", "fat tree", "random", "fully connected"};

inline fabric::network fixed_network(cell const& c, std::uint64_t seed) {
    auto const link = [](double gbps) { return ps::link_description{{gbps * 1e9 / 8}, std::chrono::microseconds(1)}; };
    if (c.wiring == "ideal switch") return fabric::ideal_switch(c.servers, link(c.degree * c.gbps));
    if (c.wiring == "fully connected") return fabric::fully_connected(c.servers, link(c.degree * c.gbps / (c.servers - 1))); // as much per server
    auto const direct = fabric::random_regular(c.servers, c.degree, seed, link(c.gbps));
    if (c.wiring == "random") return direct;
    return fabric::fat_tree(c.servers, {fabric::fat_tree_rate_of_similar_price(direct), link(1).latency});
}

// Links between servers go through a patch panel. None where the list has no price at the rate of a link.
inline std::optional<double> listed_price(fabric::network const& n) {
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

// Switches and random graphs spread flows over all shortest paths.
inline ps::topology::cluster cluster_of(fabric::network const& n, std::string_view wiring) {
    bool const spread = wiring == "fat tree" || wiring == "random";
    return fabric::server_cluster(n, fabric::routing_options{.policy = spread ? fabric::routing::ecmp : fabric::routing::shortest}, servers_of_four());
}

// Messages along an edge are sent together: one by one they would be up to 512^2 tasks each.
inline ps::problem_options problem_options_of_all() {
    return {.simulation = {.movement = ps::sim::movement::grouped, .memory = ps::sim::memory_policy::reject}};
}
inline auto problem_on(cell const& c, ps::topology::cluster const& cluster) {
    return ps::make_problem(c.model.make(c.batch()), cluster, ps::cost::roofline{cluster}, problem_options_of_all());
}

} // namespace bench
