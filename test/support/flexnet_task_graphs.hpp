#pragma once
/// Random task graphs of FlexNet.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>

namespace support {

/// A graph that keeps all rules: a tree of nodes and switches with some more links, routes between all nodes over one path or two, rings, devices of
/// several types, and tasks of every type that wait for earlier ones.
inline parsearch::flexnet::task_graph random_task_graph(std::mt19937_64& rng) {
    using namespace parsearch::flexnet;
    auto const below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(parsearch::uniform_index(rng, n)); };
    task_graph g{.gpus_per_node = 1 + below(3),
                 .nodes = 2 + below(4),
                 .switches = below(3),
                 .gpu_bytes_per_ms = 3e8F,
                 .memory_bytes_per_ms = 3e7F,
                 .link_bytes_per_ms = 1.25e7F};
    auto const n = g.vertices();
    std::vector<std::uint32_t> parent(n, 0);
    for (std::uint32_t v = 1; v < n; ++v) {
        parent[v] = below(v);
        g.connections.push_back({v, parent[v], 1 + below(3)});
        for (std::uint32_t u = 0; u < v; ++u)
            if (u != parent[v] && below(4) == 0) g.connections.push_back({v, u, below(3)});
    }
    auto const along_tree = [&](std::uint32_t a, std::uint32_t b) { // up from both ends, the larger vertex first, until they meet
        std::vector<std::uint32_t> from{a}, to{b};
        while (from.back() != to.back()) {
            auto& up = from.back() > to.back() ? from : to;
            up.push_back(parent[up.back()]);
        }
        from.insert(from.end(), to.rbegin() + 1, to.rend());
        return from;
    };
    for (std::uint32_t a = 0; a < g.nodes; ++a)
        for (std::uint32_t b = 0; b < g.nodes; ++b) {
            auto& way = g.routes.emplace_back(vertex_route{a, b, {}});
            if (a == b) continue;
            way.paths.push_back({along_tree(a, b), 1});
            bool const direct = std::any_of(g.connections.begin(), g.connections.end(),
                                            [&](auto const& c) { return c.links > 0 && c.from == std::max(a, b) && c.to == std::min(a, b); });
            if (!direct) continue;
            way.paths.push_back({{a, b}, 0.25F});
            way.paths.front().chance = 0.75F;
        }
    std::uint64_t id = 1000 + below(1000);
    auto const next_id = [&] { return id += 8 * (1 + below(9)); };
    auto const gpus = g.nodes * g.gpus_per_node;
    std::vector<std::uint64_t> compute, messages, nominal;
    for (std::uint32_t i = 0; i < gpus; ++i) {
        g.devices.push_back({device_type::gpu, next_id(), i / g.gpus_per_node, i, 0});
        compute.push_back(id);
    }
    g.devices.push_back({device_type::cpu, next_id(), 0, 0, 0});
    compute.push_back(id);
    for (auto const& c : g.connections)
        if (c.links > 0) {
            g.devices.push_back({device_type::network, next_id(), device::no_node, g.pair(c.to, c.from), 0});
            messages.push_back(id);
        }
    g.devices.push_back({device_type::memory_bus, next_id(), 0, 0, 7'000'000});
    messages.push_back(id);
    if (g.gpus_per_node > 1) {
        g.devices.push_back({device_type::nvlink, next_id(), 0, 1, 0}); // from GPU 0 to GPU 1
        messages.push_back(id);
    }
    for (std::uint32_t a = 0; a < g.nodes; ++a)
        for (std::uint32_t b = 0; b < g.nodes; ++b)
            if (a != b) {
                g.devices.push_back({device_type::nominal_network, next_id(), device::no_node, g.pair(a, b), 0});
                nominal.push_back(id);
            }
    for (std::uint64_t size = 2; size <= gpus; ++size)
        if (below(2) == 0) {
            auto const s = static_cast<std::int32_t>(size);
            g.rings.push_back({size, {{1}}});
            if (below(2) == 0) g.rings.back().jumps.push_back({s - 1});
            if (size > 3) g.rings.back().jumps.push_back({2, -1});
        }
    for (std::uint64_t i = 0; i < 3; ++i) g.operators.push_back({next_id(), below(80), "Dense_" + std::to_string(100 + i)});
    for (std::uint32_t i = 0; i < 40; ++i) {
        task t{static_cast<task_type>(below(task_types)), next_id(), 0, 0, 0, {}};
        auto const any_of = [&](auto const& list) { return list[below(list.size())]; };
        bool const moves = t.type == task_type::comm || t.type == task_type::nominal_comm || t.type == task_type::all_reduce;
        if (moves) t.bytes = below(3) == 0 ? below(20) : below(50'000'000);
        if (t.type == task_type::comm) t.device = any_of(messages);
        else if (t.type == task_type::nominal_comm) t.device = any_of(nominal);
        else if (!moves && t.type != task_type::barrier) {
            t.device = any_of(compute);
            t.runtime_ms = static_cast<float>(below(1'000'000)) * 1e-5F;
        }
        if (t.type == task_type::all_reduce)
            for (std::uint32_t d = 0; d < gpus; ++d)
                if (t.next.empty() || below(2) == 0) t.next.push_back(d);
        for (auto& before : g.tasks)
            if (before.type != task_type::all_reduce && below(8) == 0)
                for (auto times = 1 + (below(5) == 0); times > 0; --times) before.next.push_back(t.id);
        g.tasks.push_back(std::move(t));
    }
    for (std::size_t i = g.tasks.size(); i > 1; --i) std::swap(g.tasks[i - 1], g.tasks[below(i)]); // files need not be sorted
    return g;
}

} // namespace support
