#pragma once
/// Random problems for the simulators, oracles that mix or fail, and what two simulations differ in.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/collectives.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/plain_topology.hpp"
#include "support/random_network.hpp"

namespace support {

/// Times that depend on everything that the oracle is told, devices of odd numbers slower where they are of a kind of their own; rounded
/// down to multiples of `grain`: coarse ones tie, and many are zero.
struct mixed_oracle {
    std::int64_t grain = 1;
    [[nodiscard]] parsearch::picoseconds shard_time(parsearch::ops::shard_work const& w, std::uint32_t device) const {
        auto const t = static_cast<std::int64_t>(w.flops / 8 + w.bytes / 4) % 500 + 150 * (device % 2);
        return rounded(parsearch::picoseconds{t * static_cast<std::int64_t>(w.op->work != parsearch::ops::work_class::softmax)});
    }
    [[nodiscard]] parsearch::picoseconds transfer_time(parsearch::byte_count bytes, parsearch::link_description const& link) const {
        return rounded(link.latency + parsearch::time_of(bytes, link.rate));
    }
    [[nodiscard]] parsearch::picoseconds collective_time(parsearch::collective_kind kind, parsearch::byte_count bytes,
                                                         parsearch::collective_group const& group) const {
        return rounded(parsearch::cost::alpha_beta{}.collective_time(kind, bytes, group));
    }

  private:
    [[nodiscard]] parsearch::picoseconds rounded(parsearch::picoseconds t) const noexcept {
        return parsearch::picoseconds{t.count() / grain * grain};
    }
};

/// Fails when its budget of answers is used up; shared by all copies.
struct failing_oracle {
    std::shared_ptr<std::int64_t> answers_left;
    bool throws = true;
    [[nodiscard]] parsearch::picoseconds shard_time(parsearch::ops::shard_work const& w, std::uint32_t) const {
        return answer(10 + static_cast<std::int64_t>(w.pass) + static_cast<std::int64_t>(w.bytes));
    }
    [[nodiscard]] parsearch::picoseconds transfer_time(parsearch::byte_count bytes, parsearch::link_description const&) const {
        return answer(bytes);
    }
    [[nodiscard]] parsearch::picoseconds collective_time(parsearch::collective_kind, parsearch::byte_count bytes,
                                                         parsearch::collective_group const&) const {
        return answer(2 * bytes);
    }

  private:
    [[nodiscard]] parsearch::picoseconds answer(std::int64_t t) const {
        if ((*answers_left)-- > 0) return parsearch::picoseconds{t};
        if (throws) throw std::runtime_error("no such measurement");
        return parsearch::picoseconds{-1};
    }
};

/// How large a random problem is.
struct problem_shape {
    std::uint32_t devices = 4;
    std::size_t operators = 8; ///< at most
    bool kinds = false;        ///< devices of odd numbers are of a kind of their own
    std::uint32_t nodes = 0;   ///< of equal size; 0: one node, or nodes of two devices
    parsearch::byte_count memory = parsearch::byte_count{1} << 40;
    double passed_on = 0.2; ///< share of operators that pass their inputs on in rings
};

/// A mesh, a line, a star or a shared medium, some of it in nodes.
inline plain_topology random_topology(std::mt19937_64& rng, problem_shape const& shape) {
    using namespace parsearch;
    auto const t = uniform_index(rng, 4);
    auto topology = t == 0   ? mesh(shape.devices, 2, 3)
                    : t == 1 ? line(shape.devices, 1, 1)
                    : t == 2 ? star(shape.devices, 1, 2)
                             : shared_medium(shape.devices, 4, 0);
    auto const per_node = shape.nodes > 0 ? shape.devices / shape.nodes : shape.devices > 2 && bernoulli(rng, 0.5) ? 2 : shape.devices;
    for (std::uint32_t d = 0; d < shape.devices; ++d) topology.node[d] = d / per_node;
    for (std::uint32_t d = 0; d < shape.devices; ++d) {
        topology.device[d].memory = shape.memory;
        topology.device[d].host_rate = {1e12 / (1 + d % 2)};
        if (shape.kinds && d % 2) topology.device[d].kind = "other";
    }
    return topology;
}

template <class Oracle = mixed_oracle>
auto random_problem(std::mt19937_64& rng, parsearch::sim::simulation_options const& options, problem_shape const& shape, Oracle oracle = {}) {
    auto const topology = random_topology(rng, shape);
    return parsearch::make_problem(random_network(rng, shape.operators), topology, std::move(oracle), {.simulation = options});
}

/// Of the space that is without restrictions, a part.
inline parsearch::space::space_options random_restrictions(std::mt19937_64& rng) {
    using namespace parsearch;
    return {.sample = bernoulli(rng, 0.5),
            .attribute = bernoulli(rng, 0.5),
            .parameter = bernoulli(rng, 0.5),
            .reduction = bernoulli(rng, 0.5),
            .min_shard = static_cast<std::int64_t>(1 + uniform_index(rng, 2)),
            .max_shards = static_cast<std::int32_t>(uniform_index(rng, 4)),
            .placements = bernoulli(rng, 0.5) ? space::placements::contiguous : space::placements::strided};
}

/// What `make_problem` makes, with the workload in reach of tests of the simulator's parts.
struct workload_problem {
    std::shared_ptr<parsearch::sim::workload const> work;
    parsearch::space::strategy_space configurations;

    [[nodiscard]] std::size_t size() const noexcept { return work->graph.size(); }
    [[nodiscard]] parsearch::graph::dense_graph const& graph() const noexcept { return work->graph; }
    [[nodiscard]] parsearch::topology::dense_topology const& topology() const noexcept { return work->topology; }
    [[nodiscard]] parsearch::space::strategy_space const& space() const noexcept { return configurations; }
    [[nodiscard]] parsearch::sim::simulator simulator() const { return parsearch::sim::simulator(work); }
};

template <class Graph, class Oracle>
workload_problem make_workload_problem(Graph const& graph, plain_topology const& topology, Oracle oracle,
                                       parsearch::sim::simulation_options const& options = {}) {
    using namespace parsearch;
    auto g = graph::read_graph(graph);
    auto t = topology::read_topology(topology);
    auto const work =
        sim::make_workload(std::move(g.graph), std::move(t.topology), cost::any_oracle(std::move(oracle), std::move(t.devices)), options);
    return {work, space::strategy_space(work->graph, work->topology.size())};
}

/// The same, with some of the weights that are not shared as caches.
inline parsearch::graph::dense_graph with_caches(std::mt19937_64& rng, parsearch::graph::dense_graph g) {
    for (auto& op : g.operations)
        for (auto& w : op.weights) w.cache = w.parameter.empty() && parsearch::bernoulli(rng, 0.3);
    return parsearch::graph::read_graph(g).graph;
}

/// Its weights are of several types; in inference some are caches.
template <class Oracle = mixed_oracle>
workload_problem random_workload(std::mt19937_64& rng, parsearch::sim::simulation_options const& options, problem_shape const& shape,
                                 Oracle oracle = {}) {
    auto types = rng;
    auto const topology = random_topology(rng, shape);
    auto const network = parsearch::graph::read_graph(random_network(rng, shape.operators));
    auto typed = with_weight_types(types, network.graph);
    if (!options.training) typed = with_caches(types, std::move(typed));
    return make_workload_problem(with_rings(types, std::move(typed), options.movement == parsearch::sim::movement::pairwise ? 0 : shape.passed_on),
                                 topology, std::move(oracle), options);
}

/// Every choice that `simulation_options` has, but for memory, which is ignored.
inline parsearch::sim::simulation_options random_options(std::mt19937_64& rng) {
    using namespace parsearch;
    sim::simulation_options o;
    o.movement = static_cast<sim::movement>(uniform_index(rng, 3));
    o.discipline = bernoulli(rng, 0.5) ? sim::discipline::fifo : sim::discipline::in_order;
    o.training = bernoulli(rng, 0.8);
    o.synchronisation = bernoulli(rng, 0.7) ? sim::synchronisation::all_reduce : sim::synchronisation::parameter_server;
    o.overlap = bernoulli(rng, 0.7);
    o.optimizer = static_cast<sim::optimizer>(uniform_index(rng, 3));
    o.memory = sim::memory_policy::ignore;
    o.memory_kept_free = 0; // limits of a few bytes
    return o;
}

/// Ten operators on one to four devices, with any options, transfers, and amounts of memory.
inline auto random_problem_of_any_kind(std::mt19937_64& rng) {
    using namespace parsearch;
    auto options = random_options(rng);
    options.transfers = static_cast<sim::transfer_model>(uniform_index(rng, 4));
    options.segment = static_cast<byte_count>(1 + uniform_index(rng, 500));
    problem_shape shape{.devices = static_cast<std::uint32_t>(1 + uniform_index(rng, 4)), .operators = 10, .kinds = bernoulli(rng, 0.4)};
    if (bernoulli(rng, 0.3)) {
        options.memory = bernoulli(rng, 0.5) ? sim::memory_policy::reject : sim::memory_policy::penalise;
        shape.memory = static_cast<byte_count>(500 + uniform_index(rng, 20'000));
    }
    auto const grain = std::int64_t{1} << (4 * uniform_index(rng, 3));
    auto const topology = random_topology(rng, shape);
    auto const network = graph::read_graph(random_network(rng, shape.operators));
    return make_problem(with_rings(rng, network.graph, options.movement == sim::movement::pairwise ? 0 : shape.passed_on), topology,
                        mixed_oracle{.grain = grain}, {.simulation = options});
}

/// Samples over all devices, but for a share of `other` operators.
template <class Problem> std::vector<parsearch::space::configuration> mostly_data_parallel(std::mt19937_64& rng, Problem const& p, double other) {
    auto s = parsearch::space::data_parallel(p.graph(), p.topology().size());
    for (std::size_t op = 0; op < s.size(); ++op)
        if (parsearch::bernoulli(rng, other)) s[op] = random_configuration(rng, p.graph().operations[op], p.space()[op], p.topology().size(), false);
    return s;
}

/// The first thing in which the last simulations of two simulators differ; empty where they are the same.
template <class A, class B> std::string simulation_difference(A&& a, B&& b) {
    auto const& x = a.tasks();
    auto const& y = b.tasks();
    if (x.size() != y.size()) return parsearch::text(x.size(), " tasks, ", y.size());
    for (std::uint32_t t = 0; t < x.size(); ++t) {
        if (x.resource[t] != y.resource[t] || x.duration[t] != y.duration[t] || x.kind[t] != y.kind[t]) return parsearch::text("task ", t);
        auto const &p = x.label[t], &q = y.label[t];
        if (p.op != q.op || p.number != q.number || p.edge != q.edge || p.traffic != q.traffic) return parsearch::text("label of task ", t);
    }
    if (x.predecessors != y.predecessors || x.first_predecessor != y.first_predecessor || x.resources != y.resources) return "predecessors";
    auto const& r = a.schedule();
    auto const& s = b.schedule();
    if (r.ready.size() != x.size() || r.start.size() != x.size() || r.end.size() != x.size()) return "size of the schedule";
    for (std::uint32_t t = 0; t < x.size(); ++t)
        if (r.ready[t] != s.ready[t] || r.start[t] != s.start[t] || r.end[t] != s.end[t])
            return parsearch::text("task ", t, " ready ", r.ready[t], ", start ", r.start[t], ", end ", r.end[t], ": ready ", s.ready[t], ", start ",
                                   s.start[t], ", end ", s.end[t]);
    if (r.makespan != s.makespan) return parsearch::text("makespan ", r.makespan, ", ", s.makespan);
    if (a.traffic() != b.traffic()) return "traffic";
    auto const& m = a.memory();
    auto const& n = b.memory();
    if (m.size() != n.size()) return "number of devices";
    for (std::size_t d = 0; d < m.size(); ++d)
        if (m[d] != n[d]) return parsearch::text("memory of device ", d);
    return {};
}

} // namespace support
