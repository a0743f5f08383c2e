#pragma once
// Clusters of nodes with several GPUs, and the machines of the literature.

#include <parsearch/core/error.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

namespace parsearch::topology::detail {

/// What a node of a known device looks like.
struct node_defaults {
    std::string_view kind;
    intra_node intra;
    link_description intra_link;
    bool nic_per_gpu;
    link_description nic, host_link;
    bandwidth reduction{};
};

// PCI Express x16 moves 15.75 GB/s per direction in generation 3, twice that in 4, four times in 5 (PCI-SIG base specifications). One NVLink
// moves 20 GB/s per direction in generation 1 and 25 GB/s since (NVIDIA NVLink page): P100 has 4, V100 6, A100 12, H100 and H200 18; 50 GB/s in
// generation 5: B200 has 18. Through switches, rings of NCCL reach 0.775 of that on A100 (232.5 GB/s: nccl-tests, issue 175) and 0.82 on H100 (370:
// issue 212; taken for H200 and B200), and 0.96 of the rate of InfiniBand interfaces (8 of 25 GB/s: 192; nccl, issue 812): the links have these
// rates. NVLS reaches 480 GB/s of bus bandwidth among 8 H100 (nccl-tests, issue 212) and 475 among 8 H200 (issue 272): 308.6 GB/s of each link, which
// predicts the 258, 265 and 270 GB/s of sums that are measured among 5, 6 and 7 H100 and no gain over rings among 4 (nccl, issue 1455). NCCL counts
// on 0.74 of the links of Blackwell where it does on 0.85 of Hopper's (nvlsEfficiency in its tuning). Latencies are round figures: 1 us between two
// GPUs and over PCIe as in FlexFlow's machine_config_example, 1 us between two InfiniBand interfaces.
inline std::array<node_defaults, 7> const known_nodes{{
    {"k80", intra_node::pcie, {{15.75e9}, std::chrono::microseconds{1}}, false, {{7e9}, std::chrono::microseconds{1}}, {}},
    // Four GPUs: three of the links of each lead to one neighbour each.
    {"p100_sxm",
     intra_node::direct,
     {{20e9}, std::chrono::microseconds{1}},
     false,
     {{12.5e9}, std::chrono::microseconds{1}},
     {{15.75e9}, std::chrono::microseconds{1}}},
    // Four GPUs: two links to each neighbour.
    {"v100_sxm",
     intra_node::direct,
     {{50e9}, std::chrono::microseconds{1}},
     false,
     {{12.5e9}, std::chrono::microseconds{1}},
     {{15.75e9}, std::chrono::microseconds{1}}},
    {"a100_sxm",
     intra_node::nvswitch,
     {{232.5e9}, std::chrono::microseconds{1}},
     true,
     {{24e9}, std::chrono::microseconds{1}},
     {{31.5e9}, std::chrono::microseconds{1}}},
    {"h100_sxm",
     intra_node::nvswitch,
     {{370e9}, std::chrono::microseconds{1}},
     true,
     {{48e9}, std::chrono::microseconds{1}},
     {{63e9}, std::chrono::microseconds{1}},
     {308.6e9}},
    {"h200_sxm",
     intra_node::nvswitch,
     {{370e9}, std::chrono::microseconds{1}},
     true,
     {{48e9}, std::chrono::microseconds{1}},
     {{63e9}, std::chrono::microseconds{1}},
     {308.6e9}},
    {"b200_sxm",
     intra_node::nvswitch,
     {{740e9}, std::chrono::microseconds{1}},
     true,
     {{48e9}, std::chrono::microseconds{1}},
     {{63e9}, std::chrono::microseconds{1}},
     {537e9}},
}};

/// A duplex link of which each direction has `part` of the latency: the whole is passed in two such halves, rounded so that they sum up.
struct half_links {
    link_description whole;
    /// `a` is on the sending side of the first half (forward) and on the receiving side of the second (backward).
    duplex add(cluster_builder& builder, vertex a, vertex b) const {
        auto const first = whole.latency / 2;
        auto const forward = builder.add_link(a, b, link_description{whole.rate, first, whole.reduction});
        return {forward, builder.add_link(b, a, link_description{whole.rate, whole.latency - first, whole.reduction})};
    }
};

} // namespace parsearch::topology::detail

namespace parsearch::topology {

PARSEARCH_INLINE complete_nodes complete(nodes_options const& o) {
    validate(o.device, "the device of nodes");
    auto const place = text("nodes of ", o.device.kind, ": ");
    if (o.count < 1) throw invalid_input(place, "count is 0: must be at least 1");
    if (o.gpus_per_node < 1) throw invalid_input(place, "gpus_per_node is 0: must be at least 1");
    detail::node_defaults const* known = nullptr;
    for (auto const& d : detail::known_nodes)
        if (d.kind == o.device.kind) known = &d;
    auto const choose = [&](auto const& given, auto const& fallback, std::string_view name) {
        if (given) return *given;
        if (!known) throw invalid_input(place, name, " is not given: only devices that the library knows have a default");
        return fallback(*known);
    };
    complete_nodes c;
    bool const several_gpus = o.gpus_per_node > 1, several_nodes = o.count > 1;
    if (several_gpus || several_nodes)
        c.intra = choose(
            o.intra, [](auto const& d) { return d.intra; }, "intra");
    if (several_gpus || c.intra == intra_node::pcie)
        c.intra_link = choose(
            o.intra_link, [](auto const& d) { return d.intra_link; }, "intra_link");
    if (o.nvls && several_gpus) {
        if (c.intra != intra_node::nvswitch) throw invalid_input(place, "nvls is true, and intra is not nvswitch: it is the switch that adds up");
        auto& reduction = c.intra_link.reduction;
        if (!(reduction.bytes_per_second > 0) && known) reduction = known->reduction;
        if (!(reduction.bytes_per_second > 0))
            throw invalid_input(place, "nvls is true, and intra_link has no rate of reduction: only h100_sxm, h200_sxm and b200_sxm have a default");
    }
    if (!several_nodes) return c;
    c.nics = choose(
        o.nics_per_node, [&](auto const& d) { return d.nic_per_gpu ? o.gpus_per_node : 1u; }, "nics_per_node");
    c.nic = choose(
        o.nic, [](auto const& d) { return d.nic; }, "nic");
    if (c.nics < 1 || o.gpus_per_node % c.nics != 0)
        throw invalid_input(place, "nics_per_node is ", c.nics, ": must divide gpus_per_node, which is ", o.gpus_per_node);
    if (c.intra == intra_node::pcie && c.nics != 1)
        throw invalid_input(place, "nics_per_node is ", c.nics, ": must be 1 under a PCIe root, which joins the one interface");
    if (c.intra != intra_node::pcie)
        c.host_link = choose(
            o.host_link, [](auto const& d) { return d.host_link; }, "host_link");
    return c;
}

PARSEARCH_INLINE cluster nodes(nodes_options const& o) {
    auto const c = complete(o);
    std::uint64_t const total = std::uint64_t{o.count} * o.gpus_per_node;
    if (total > cluster_builder::max_devices)
        throw invalid_input("nodes: ", o.count, " nodes of ", o.gpus_per_node, " GPUs: a cluster holds at most ", cluster_builder::max_devices);
    if (o.gpus_per_node > cluster_builder::max_group)
        throw invalid_input("nodes: ", o.gpus_per_node, " GPUs on each: must be at most ", cluster_builder::max_group);
    cluster_builder builder;
    detail::half_links const inside{c.intra_link}, outside{c.nic};
    auto const network = o.count > 1 ? builder.add_switch("network") : vertex{};
    for (std::uint32_t node = 0; node < o.count; ++node) {
        std::vector<vertex> gpus, pairs;
        for (std::uint32_t g = 0; g < o.gpus_per_node; ++g) gpus.push_back(builder.add_device(o.device, node));
        switch (c.intra) {
        case intra_node::direct:
            for (std::uint32_t g = 0; g < gpus.size(); ++g)
                for (std::uint32_t h = g + 1; h < gpus.size(); ++h)
                    builder.add_duplex_link(gpus[g], gpus[h], c.intra_link.rate, c.intra_link.latency);
            break;
        case intra_node::nvswitch:
            if (gpus.size() > 1) {
                auto const nvswitch = builder.add_switch(text("node ", node, " nvswitch"));
                for (auto const gpu : gpus) inside.add(builder, gpu, nvswitch);
            }
            break;
        case intra_node::pcie:
            for (std::uint32_t g = 0; g < gpus.size(); ++g) {
                if (g % 2 == 0) pairs.push_back(builder.add_switch(text("node ", node, " pcie ", g / 2)));
                inside.add(builder, gpus[g], pairs.back());
            }
            break;
        }
        if (pairs.empty() && o.count == 1) continue;
        if (c.intra == intra_node::pcie) {
            auto const root = builder.add_switch(text("node ", node, " pcie root"));
            for (auto const pair : pairs) inside.add(builder, pair, root);
            if (o.count > 1) outside.add(builder, root, network);
        } else {
            auto const block = o.gpus_per_node / c.nics;
            for (std::uint32_t i = 0; i < c.nics; ++i) {
                auto const nic = builder.add_switch(text("node ", node, " nic ", i));
                for (std::uint32_t g = i * block; g < (i + 1) * block; ++g)
                    builder.add_duplex_link(gpus[g], nic, c.host_link.rate, c.host_link.latency);
                outside.add(builder, nic, network);
            }
        }
    }
    return builder.build();
}

PARSEARCH_INLINE cluster summit(std::uint32_t count) {
    if (count < 1 || count > cluster_builder::max_devices / 6)
        throw invalid_input("summit of ", count, " nodes: must be from 1 to ", cluster_builder::max_devices / 6);
    constexpr std::chrono::microseconds latency{1};
    cluster_builder builder;
    detail::half_links const port{{{12.5e9}, latency}};
    auto const network = builder.add_switch("network");
    for (std::uint32_t node = 0; node < count; ++node) {
        std::array<vertex, 2> cpus{};
        for (std::uint32_t s = 0; s < 2; ++s) {
            cpus[s] = builder.add_switch(text("node ", node, " cpu ", s));
            std::array<vertex, 3> gpus{};
            for (auto& gpu : gpus) {
                gpu = builder.add_device(v100_sxm, node);
                builder.add_duplex_link(gpu, cpus[s], {50e9}, latency);
            }
            for (std::size_t g = 0; g < gpus.size(); ++g)
                for (std::size_t h = g + 1; h < gpus.size(); ++h) builder.add_duplex_link(gpus[g], gpus[h], {50e9}, latency);
            port.add(builder, cpus[s], network);
        }
        builder.add_duplex_link(cpus[0], cpus[1], {64e9}, latency);
    }
    return builder.build();
}

} // namespace parsearch::topology
