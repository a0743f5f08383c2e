#pragma once
/// The task graph of an iteration of ours as one of FlexNet's.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/paths/path_table.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>
#include <parsearch/flexnet/validate.hpp>
#include <parsearch/flexnet/wiring.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::flexnet {

/// A task graph, and what of the iteration it does not say, a sentence each.
struct exported {
    task_graph graph{};
    std::vector<std::string> losses{};
};

namespace detail {

/// Translates the tasks that an assembler made of a plan. A message is on one task per link (and segment) there, a collective on one per link between
/// two barriers; both are runs of tasks with the same label.
class exporter {
  public:
    exporter(graph::dense_graph const& g, sim::iteration_plan const& plan, sim::task_graph const& tasks, wiring w)
        : graph_(g), plan_(plan), tasks_(tasks), wiring_(std::move(w)), out_(std::move(wiring_.graph)) {}

    exported run() &&;

  private:
    /// The tasks of the file to wait for: [first, end).
    struct range {
        std::uint32_t first = 0, end = 0;
        auto operator<=>(range const&) const = default;
    };

    /// Translates the run that begins with task `t`; answers where the next one does.
    std::uint32_t translate(std::uint32_t t);

    [[nodiscard]] static bool same(sim::task_label const& a, sim::task_label const& b) noexcept {
        return a.op == b.op && a.number == b.number && a.edge == b.edge && a.traffic == b.traffic;
    }

    /// Waits for what task `t` waits for, if it is before `run`: the hops of a message wait for each other.
    void wait_as(std::uint32_t t, std::uint32_t run) {
        for (auto const p : tasks_.before(t))
            if (p < run) waits_.push_back(made_[p]);
        make_set(waits_);
    }
    void wait_as(std::uint32_t t) { wait_as(t, t); }

    range add(task made);

    /// From device to device of ours; in a node over the link of the two GPUs, else over the network.
    range send(std::uint32_t from, std::uint32_t to, byte_count bytes);

    [[nodiscard]] std::vector<std::uint32_t> const& devices_of(std::uint32_t op) const { return plan_.operators[op].devices; }
    [[nodiscard]] byte_count element_of(std::uint32_t edge) const {
        auto const& e = graph_.edges[edge];
        return ops::size_of(graph_.operations[e.producer].outputs[e.slot].type);
    }
    range send_pair(std::uint32_t edge, sim::overlap const& pair, bool gradient) {
        auto const& e = graph_.edges[edge];
        auto const made = devices_of(e.producer)[pair.producer], read = devices_of(e.consumer)[pair.consumer];
        return send(gradient ? read : made, gradient ? made : read, pair.elements * element_of(edge));
    }
    range message(std::uint32_t t) {
        auto const& who = tasks_.label[t];
        return send_pair(who.edge, plan_.edges[who.edge].table->pairs[who.number], who.traffic == sim::traffic_kind::gradient);
    }

    /// The clients of a server push one after the other, then pull: their messages have the same label.
    std::uint32_t push_or_pull(std::uint32_t t);

    /// Nothing can wait for an all-reduce: what would, waits for what the all-reduce waits for.
    range all_reduce(std::uint32_t t);

    /// The messages of a collective that something waits for, or may: those between its pairs of shards, or from each to the next along a ring of its
    /// devices in ascending order.
    range messages_of_collective(std::uint32_t t);

    graph::dense_graph const& graph_;
    sim::iteration_plan const& plan_;
    sim::task_graph const& tasks_;
    wiring wiring_;
    task_graph out_;
    std::vector<range> made_;                                                  ///< of each task
    std::vector<range> waits_;                                                 ///< of the run in hand
    std::map<std::pair<device_type, std::uint64_t>, std::uint64_t> device_of_; ///< ids of devices that carry messages, by type and property
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> turns_;     ///< messages so far of a server, by operator and group
    std::uint64_t next_device_ = 0;
    std::size_t along_rings_ = 0; ///< collectives
};

template <class S> [[nodiscard]] exported export_plan(parallelization const& p, S const& s, wiring w) {
    if (auto const n = p.options().replicas; n > 1)
        throw invalid_input("export_plan: simulation option replicas is ", n, ": must be 1, a FlexNet task graph is of all devices");
    auto simulator = p.simulator();
    auto const& tasks = simulator.assemble(s);
    auto out = exporter(p.graph(), simulator.plan(), tasks, std::move(w)).run();
    (void)validate(out.graph);
    return out;
}
} // namespace detail

/// The iteration of problem `p` under strategy `s` as a task graph of FlexNet, for `io::write_flexnet_task_graph`; the network of the topology
/// becomes `star_wiring`. Tasks wait for what they wait for in the simulation, but for updates, which cannot wait for all-reduces in the format.
/// - Shards are forward, backward and update tasks on their GPU, with runtimes in ms, to 2^-24 of each.
/// - Messages are `comm` tasks in a node, `nominal_comm` between nodes; bytes are exact. A message to and from a server of parameters is one as well.
/// - All-reduces of gradients of weights are `all_reduce` tasks. All other collectives are the messages of their pairs of shards (all-to-all) or of
///   one ring through their devices in ascending order, sent at once between two barriers.
/// Throws `invalid_input` as the simulator does, and where the format's limits are passed. Complexity: that of planning, linear in tasks and
/// dependencies.
template <Strategy<space::configuration> S> [[nodiscard]] exported export_plan(parallelization const& p, S const& s) {
    return detail::export_plan(p, s, star_wiring(p.topology()));
}
/// The same for a topology that is `fabric::server_cluster(n, ways, ...)`: its network becomes `wiring_of`.
template <Strategy<space::configuration> S>
[[nodiscard]] exported export_plan(parallelization const& p, S const& s, fabric::network const& n, fabric::path_table const& ways) {
    return detail::export_plan(p, s, wiring_of(n, ways, p.topology()));
}

} // namespace parsearch::flexnet

#ifndef PARSEARCH_COMPILED
#include <parsearch/flexnet/export_plan.ipp>
#endif
