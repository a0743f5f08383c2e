#pragma once
/// What is proven: networks, clusters and settings, and the special cases.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/models/vit.hpp>
#include <parsearch/ops/reduce.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "plans.hpp"
#include "walk.hpp"

namespace proof {

using ps::sim::discipline, ps::sim::movement;

enum class section : std::uint8_t { networks, special, plans };
[[nodiscard]] constexpr std::string_view title_of(section s) noexcept {
    constexpr std::array<std::string_view, 3> titles{"Networks", "Special cases", "Plans with stages and micro-batches"};
    return titles[static_cast<std::size_t>(s)];
}

struct cell {
    std::string name{}; // unique
    std::string network{}, about{};
    std::uint32_t devices = 0;
    discipline order{};
    movement move{};
    section in = section::networks;
    std::uint64_t seed = 0;
    std::uint64_t times = 1; // as many proposals as other cells
    std::function<counts(std::uint64_t proposals, std::atomic<bool> const& stop)> run{};
};

// ---- oracles

inline std::uint64_t mixed(std::uint64_t h) noexcept {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
    h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
    return h ^ (h >> 31);
}
inline std::uint64_t hash_of(ps::ops::shard_work const& w) noexcept {
    return mixed(std::bit_cast<std::uint64_t>(w.flops) + 3 * std::bit_cast<std::uint64_t>(w.bytes) + static_cast<std::uint64_t>(w.pass));
}

// Few times, nothing among them: ties everywhere.
struct coarse_oracle {
    static ps::picoseconds one_of(std::uint64_t h) noexcept {
        constexpr std::array<std::int64_t, 6> times{0, 0, 1, 1, 2, 5};
        return ps::picoseconds{times[h % times.size()] * 1'000'000};
    }
    ps::picoseconds shard_time(ps::ops::shard_work const& w, std::uint32_t) const noexcept { return one_of(hash_of(w)); }
    ps::picoseconds transfer_time(ps::byte_count bytes, ps::link_description const&) const noexcept {
        return bytes == 0 ? ps::picoseconds{0} : one_of(mixed(static_cast<std::uint64_t>(bytes)));
    }
    ps::picoseconds collective_time(ps::collective_kind, ps::byte_count bytes, ps::collective_group const& g) const noexcept {
        return one_of(mixed(static_cast<std::uint64_t>(bytes) + g.size));
    }
};
// Computation takes next to no time, sums and messages none, collectives long: what a block's tasks make ready in it comes at once.
struct idle_oracle {
    ps::picoseconds shard_time(ps::ops::shard_work const& w, std::uint32_t) const noexcept {
        return ps::picoseconds{w.op->kind.starts_with("reduce") ? 0 : static_cast<std::int64_t>(hash_of(w) % 3)};
    }
    ps::picoseconds transfer_time(ps::byte_count, ps::link_description const&) const noexcept { return {}; }
    ps::picoseconds collective_time(ps::collective_kind, ps::byte_count bytes, ps::collective_group const&) const noexcept {
        return ps::picoseconds{1 + bytes % 7};
    }
};
// No time at all.
struct zero_oracle {
    ps::picoseconds shard_time(ps::ops::shard_work const&, std::uint32_t) const noexcept { return {}; }
    ps::picoseconds transfer_time(ps::byte_count, ps::link_description const&) const noexcept { return {}; }
    ps::picoseconds collective_time(ps::collective_kind, ps::byte_count, ps::collective_group const&) const noexcept { return {}; }
};
// One shard in thirty takes thirteen days: sums go beyond what 64 bits hold.
struct endless_oracle {
    ps::cost::alpha_beta links{};
    ps::picoseconds shard_time(ps::ops::shard_work const& w, std::uint32_t) const noexcept {
        auto const h = hash_of(w);
        return ps::picoseconds{h % 30 == 0 ? std::int64_t{1} << 60 : static_cast<std::int64_t>(h % 5'000'000)};
    }
};

// ---- clusters

inline ps::topology::cluster machine(ps::topology::device_spec const& device, std::uint32_t devices) {
    auto const per_node = std::min(4u, devices);
    return ps::topology::nodes({.count = devices / per_node, .gpus_per_node = per_node, .device = device});
}
// Eight to a node, as DGX.
inline ps::topology::cluster dgx(std::uint32_t devices) {
    auto const per_node = std::min(8u, devices);
    return ps::topology::nodes({.count = devices / per_node, .gpus_per_node = per_node, .device = ps::topology::h100_sxm});
}
// Nodes of four V100 and nodes of four P100 in turn on one switch.
inline ps::topology::cluster mixed_cluster(std::uint32_t nodes) {
    constexpr std::chrono::microseconds latency{1};
    ps::topology::cluster_builder builder;
    auto const network = builder.add_switch("network");
    for (std::uint32_t node = 0; node < nodes; ++node) {
        bool const new_one = node % 2 == 0;
        auto const nic = builder.add_switch(ps::text("node ", node));
        std::vector<ps::topology::vertex> gpus;
        for (int i = 0; i < 4; ++i) {
            gpus.push_back(builder.add_device(new_one ? ps::topology::v100_sxm : ps::topology::p100_sxm, node));
            builder.add_duplex_link(gpus.back(), nic, {15.75e9}, latency);
            for (std::size_t g = 0; g + 1 < gpus.size(); ++g) builder.add_duplex_link(gpus[g], gpus.back(), {new_one ? 50e9 : 20e9}, latency);
        }
        builder.add_duplex_link(nic, network, {12.5e9}, latency);
    }
    return builder.build();
}

// ---- networks

inline ps::graph::operator_graph chain(std::int64_t devices) {
    return ps::models::mlp({.features = 1024, .hidden = std::vector<std::int64_t>(49, 1024), .classes = 1024, .batch = 64 * devices});
}
inline ps::graph::operator_graph inception(std::int64_t devices) { return ps::models::inception_v3({.batch = 16 * devices}); }
inline ps::graph::operator_graph nmt(std::int64_t devices) { return ps::models::nmt({.steps = 6, .batch = 64 * devices}); }
inline ps::graph::operator_graph gpt(std::int64_t devices) {
    return ps::models::gpt(
        {.layers = 3, .hidden = 1024, .heads = 16, .sequence = 1024, .vocabulary = 50304, .batch = 2 * devices, .type = ps::ops::dtype::bf16});
}
// Nothing but products and sums between what attends and normalises: partial sums may pass.
inline ps::graph::operator_graph llama(std::int64_t devices) {
    return ps::models::llama(
        {.layers = 2, .hidden = 512, .heads = 8, .kv_heads = 4, .feed_forward = 1024, .sequence = 256, .vocabulary = 4096, .batch = 2 * devices});
}
// Fifty tokens, which two, five and ten divide; the classifier reads the first alone, so that shards are left whose output nobody reads.
inline ps::graph::operator_graph vit(std::int64_t devices) { return ps::models::vit({.image = 112, .layers = 3, .batch = 16 * devices}); }
// Half of every layer is dropped, some sums go nowhere, and shards of the joined tensor come from one side alone: what lies on no path may
// end last. On two devices a single layer, so that what bounds allow is often all there is.
inline ps::graph::operator_graph slices(std::int64_t devices) {
    ps::graph::operator_graph g;
    auto const samples = g.input("samples", {{16 * devices, 256}, ps::ops::dtype::f32});
    ps::models::detail::chain net{g, samples};
    for (int i = 1; i <= (devices == 2 ? 1 : 4); ++i) {
        net.then(ps::text("fc", i), ps::ops::linear{.out = 512}).then(ps::text("half", i), ps::ops::slice{.axis = 1, .begin = 0, .end = 256});
        g.add(ps::text("sum", i), ps::ops::reduce{.axes = {1}}, net.end);
    }
    auto const side = g.add("side", ps::ops::linear{.out = 256}, samples);
    ps::models::detail::add_loss(g, g.add("joined", ps::ops::concat{.axis = 1}, net.end, side));
    return g;
}

// ---- cells

template <class P> counts run_walk(P const& problem, walk_options options, std::uint64_t proposals, std::atomic<bool> const& stop) {
    options.proposals = proposals;
    return walk<P>(problem, std::move(options), stop).run();
}

inline void add(std::vector<cell>& cells, cell c) {
    c.name = ps::text(c.network, ' ', c.devices, ' ', name_of(c.order), ' ', name_of(c.move), c.about.empty() ? "" : ", ", c.about);
    cells.push_back(std::move(c));
}

inline void add_networks(std::vector<cell>& cells) {
    struct network {
        char const* name;
        ps::graph::operator_graph (*make)(std::int64_t devices);
        ps::topology::cluster (*machine)(std::uint32_t devices);
    };
    static constexpr auto p100s = [](std::uint32_t n) { return machine(ps::topology::p100_sxm, n); };
    static constexpr auto k80s = [](std::uint32_t n) { return machine(ps::topology::k80, n); };
    for (auto const& net :
         {network{"chain", chain, k80s}, network{"Inception-v3", inception, p100s}, network{"NMT", nmt, p100s}, network{"GPT", gpt, dgx}})
        for (std::uint32_t const devices : {4u, 16u, 64u})
            for (auto const order : {discipline::fifo, discipline::in_order})
                for (auto const move : {movement::pairwise, movement::collective}) {
                    auto const seed = cells.size() + 1;
                    add(cells,
                        {.network = net.name, .devices = devices, .order = order, .move = move, .seed = seed, .run = [=](auto n, auto const& stop) {
                             auto const cluster = net.machine(devices);
                             auto const problem = ps::make_problem(net.make(devices), cluster, ps::cost::roofline{cluster},
                                                                   {.simulation = {.movement = move, .discipline = order}});
                             // Layers over the devices of a node, or tensors over them.
                             auto const expert = net.make == nmt ? ps::operation_parallel(problem) : ps::tensor_parallel(problem, 4);
                             return run_walk(problem, {.seed = seed, .most_shards = devices == 64 ? 16 : 0, .expert = expert}, n, stop);
                         }});
                }
}

// A problem on devices with `part` of the memory that data parallelism takes on the fullest.
template <class Make> auto short_of_memory(ps::graph::operator_graph const& g, std::uint32_t devices, double part, Make const& make) {
    auto const enough = make(g, machine(ps::topology::p100_sxm, devices));
    auto simulator = enough.simulator();
    (void)simulator.simulate(ps::data_parallel(enough));
    ps::byte_count most = 0;
    for (auto const& m : simulator.memory()) most = std::max(most, m.total());
    auto spec = ps::topology::p100_sxm;
    spec.memory = static_cast<ps::byte_count>(part * static_cast<double>(most));
    return make(g, machine(spec, devices));
}

inline void add_special(std::vector<cell>& cells) {
    using ps::sim::simulation_options;
    // Both disciplines with one movement each; `problem(options)` makes the problem.
    auto const special = [&](char const* network, std::uint32_t devices, char const* about, simulation_options options, auto const& problem_of,
                             std::optional<std::size_t> cache = {}) {
        for (auto const order : {discipline::fifo, discipline::in_order})
            for (auto const move : {movement::pairwise, movement::collective}) {
                options.discipline = order;
                options.movement = move;
                auto const seed = cells.size() + 1;
                add(cells,
                    {.network = network,
                     .about = about,
                     .devices = devices,
                     .order = order,
                     .move = move,
                     .in = section::special,
                     .seed = seed,
                     .times = network == std::string_view("slices") && devices <= 4 ? 20u : 1u, // next to no tasks
                     .run = [=](auto n, auto const& stop) { return run_walk(problem_of(options), {.seed = seed, .cache_bytes = cache}, n, stop); }});
            }
    };
    auto const on = [](auto const& make, std::uint32_t devices, auto const& oracle) {
        return [=](simulation_options const& o) {
            return ps::make_problem(make(devices), machine(ps::topology::p100_sxm, devices), oracle, {.simulation = o});
        };
    };
    auto const rooflined = [](auto const& make, std::uint32_t devices) {
        return [=](simulation_options const& o) {
            auto const cluster = machine(ps::topology::p100_sxm, devices);
            return ps::make_problem(make(devices), cluster, ps::cost::roofline{cluster}, {.simulation = o});
        };
    };
    auto const cramped = [](auto const& make, std::uint32_t devices, double part) {
        return [=](simulation_options const& o) {
            return short_of_memory(make(devices), devices, part, [&](auto const& g, auto const& cluster) {
                return ps::make_problem(g, cluster, ps::cost::roofline{cluster}, {.simulation = o});
            });
        };
    };
    special("NMT", 8, "few times: ties", {}, on(nmt, 8, coarse_oracle{}));
    special("Inception-v3", 4, "few times: ties", {}, on(inception, 4, coarse_oracle{}));
    special("NMT", 8, "no times", {}, on(nmt, 8, zero_oracle{}));
    special("GPT", 8, "times beyond 64 bits", {}, on(gpt, 8, endless_oracle{}));
    special("Inception-v3", 1, "one device", {}, rooflined(inception, 1));
    special("NMT", 1, "one device, ties", {}, on(nmt, 1, coarse_oracle{}));
    special("NMT", 16, "V100 and P100", {}, [](simulation_options const& o) {
        auto const cluster = mixed_cluster(4);
        return ps::make_problem(nmt(16), cluster, ps::cost::roofline{cluster}, {.simulation = o});
    });
    special("NMT", 8, "parameter servers", {.synchronisation = ps::sim::synchronisation::parameter_server}, rooflined(nmt, 8));
    special("GPT", 8, "parameter servers after backward, ties", {.synchronisation = ps::sim::synchronisation::parameter_server, .overlap = false},
            on(gpt, 8, coarse_oracle{}));
    special("chain", 16, "all-reduce after backward", {.overlap = false}, rooflined(chain, 16));
    special("NMT", 8, "all-reduce after backward, ties", {.overlap = false}, on(nmt, 8, coarse_oracle{}));
    special("GPT", 16, "forward only", {.training = false}, rooflined(gpt, 16));
    special("chain", 8, "0.96 of the memory of data parallelism, else infeasible", {.memory = ps::sim::memory_policy::reject},
            cramped(chain, 8, 0.96));
    special("NMT", 8, "Adam, half the memory of data parallelism, penalised", {.optimizer = ps::sim::optimizer::adam}, cramped(nmt, 8, 0.5));
    special("GPT", 8, "no memory, penalised", {.optimizer = ps::sim::optimizer::momentum}, cramped(gpt, 8, 0));
    special("ViT", 8, "outputs that nobody reads", {}, rooflined(vit, 8));
    special("slices", 8, "outputs that nobody reads, ties", {}, on(slices, 8, coarse_oracle{}));
    special("slices", 2, "outputs that nobody reads, ties", {}, on(slices, 2, coarse_oracle{}));
    special("slices", 2, "outputs that nobody reads", {}, rooflined(slices, 2));
    special("slices", 2, "after backward, ties", {.overlap = false}, on(slices, 2, coarse_oracle{}));
    special("slices", 4, "sums in no time", {.training = false}, on(slices, 4, idle_oracle{}));
    special("slices", 8, "outputs that nobody reads, V100 and P100", {}, [](simulation_options const& o) {
        auto const cluster = mixed_cluster(2);
        return ps::make_problem(slices(8), cluster, ps::cost::roofline{cluster}, {.simulation = o});
    });
    special("Inception-v3", 4, "cache of 1 MB", {}, rooflined(inception, 4), std::size_t{1} << 20);
    special("Llama", 8, "copies and partial sums", {}, [](simulation_options const& o) {
        auto const cluster = machine(ps::topology::p100_sxm, 8);
        return ps::make_problem(llama(8), cluster, ps::cost::roofline{cluster}, {.space = {.copies = 4, .sums = 4}, .simulation = o});
    });
    special("Llama", 8, "copies and partial sums, ties", {}, [](simulation_options const& o) {
        return ps::make_problem(llama(8), machine(ps::topology::p100_sxm, 8), coarse_oracle{}, {.space = {.copies = 8, .sums = 4}, .simulation = o});
    });
}

// Plans with stages and micro-batches: each part that a plan may have in all of a cell's, the others now and then.
inline void add_plans(std::vector<cell>& cells) {
    for (auto const& part : plan_parts)
        for (auto const order : {discipline::fifo, discipline::in_order})
            for (auto const move : {movement::pairwise, movement::collective}) {
                auto const seed = cells.size() + 1;
                add(cells, {.network = "GPT",
                            .about = part.name,
                            .devices = 8,
                            .order = order,
                            .move = move,
                            .in = section::plans,
                            .seed = seed,
                            .run = [=](auto n, auto const& stop) {
                                auto const cluster = machine(ps::topology::p100_sxm, 8);
                                auto const problem =
                                    ps::make_problem(gpt(part.many ? 24 : 8), cluster, ps::cost::roofline{cluster},
                                                     {.simulation = {.movement = move, .discipline = order, .optimizer = ps::sim::optimizer::adam}});
                                return plan_walk(problem, part, seed, stop).run(n);
                            }});
            }
}

inline std::vector<cell> all_cells() {
    std::vector<cell> cells;
    add_networks(cells);
    add_special(cells);
    add_plans(cells);
    return cells;
}

} // namespace proof
