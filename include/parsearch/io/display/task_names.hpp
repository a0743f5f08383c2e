#pragma once
/// What people call the tasks of a simulation, and the devices and links they run on.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

/// "all-reduce": the name of a collective in prose.
[[nodiscard]] inline std::string spoken(std::string_view name) {
    std::string out(name);
    for (auto& c : out)
        if (c == '_') c = '-';
    return out;
}

/// "activations", "weight gradients": what moves, in prose.
[[nodiscard]] constexpr std::string_view spoken(sim::traffic_kind k) noexcept {
    switch (k) {
    case sim::traffic_kind::activation: return "activations";
    case sim::traffic_kind::gradient: return "gradients";
    case sim::traffic_kind::partial_sum: return "partial sums";
    case sim::traffic_kind::weight_gradient: return "weight gradients";
    }
    return "data";
}

/// From which operator to which the data of a task flow, in prose: "fc1 -> fc2" forward, "fc2 -> fc1" backward; "fc1" where they stay
/// at one operator.
[[nodiscard]] inline std::string path_of(graph::dense_graph const& g, sim::task_label const& who) {
    if (who.edge == sim::task_label::no_edge) return g.names[who.op];
    auto const& e = g.edges[who.edge];
    auto const from = e.producer == who.op ? e.consumer : e.producer;
    return text(g.names[from], " -> ", g.names[who.op]);
}

/// True for a message that brings weights back from the device that updated them.
[[nodiscard]] inline bool returns_weights(sim::task_graph const& tasks, std::uint32_t t) noexcept {
    auto const before = tasks.before(t);
    return tasks.kind[t] == sim::task_kind::transfer && tasks.label[t].traffic == sim::traffic_kind::weight_gradient && !before.empty() &&
           tasks.kind[before.front()] == sim::task_kind::update;
}

/// What task `t` does, without its number among those alike: "fc1 forward", "fc1 forward again", "fc1 -> fc2 activations", "fc1 weight gradients,
/// all-reduce", "fc1 weights, all-gather of its block". What comes once per micro-batch has that of all of them.
[[nodiscard]] inline std::string name_of_task(graph::dense_graph const& g, sim::report const& r, std::uint32_t t) {
    auto const& who = r.tasks.label[t];
    auto const run = r.run_of(t);
    auto const more = text(run.part == sim::task_part::whole ? "" : " ", sim::spoken(run.part));
    switch (r.tasks.kind[t]) {
    case sim::task_kind::forward:
    case sim::task_kind::backward:
    case sim::task_kind::update: return text(g.names[who.op], ' ', name_of(r.tasks.kind[t]), more);
    case sim::task_kind::transfer: return text(path_of(g, who), ' ', returns_weights(r.tasks, t) ? "weights" : spoken(who.traffic), more);
    case sim::task_kind::collective: {
        bool const weights = who.traffic == sim::traffic_kind::weight_gradient && r.carried[t].collective == collective_kind::all_gather;
        return text(path_of(g, who), ' ', weights ? "weights" : spoken(who.traffic), ", ", spoken(name_of(r.carried[t].collective)), more);
    }
    case sim::task_kind::barrier: break;
    }
    return "barrier";
}

/// What the number of a task of that kind and label counts.
[[nodiscard]] constexpr std::string_view counted_by(sim::task_kind kind, sim::task_label const& who) noexcept {
    switch (kind) {
    case sim::task_kind::forward:
    case sim::task_kind::backward: return "shard";
    case sim::task_kind::update: return "holder";
    default: break;
    }
    if (who.traffic == sim::traffic_kind::weight_gradient) return "group";
    if (kind == sim::task_kind::transfer && who.edge == sim::task_label::no_edge) return "device"; // copies to hosts
    return kind == sim::task_kind::transfer ? "message" : "collective";
}

/// "device 3", "device 0 -> leaf 1", "device 3 -> host", "host -> device 3": the name of a resource of a task graph on `cluster`.
[[nodiscard]] inline std::string name_of_resource(topology::cluster const& cluster, std::uint32_t resource) {
    if (resource < cluster.size()) return text("device ", resource);
    auto const link = resource - cluster.size();
    if (link < cluster.links().size()) return cluster.name_of_link(static_cast<std::uint32_t>(link));
    auto const copies = link - cluster.links().size();
    return copies % 2 == 0 ? text("device ", copies / 2, " -> host") : text("host -> device ", copies / 2);
}

/// Throws `invalid_input` where `r` is not of a graph of as many operators and a cluster of as many devices and links.
inline void require_report_of(graph::dense_graph const& g, topology::cluster const& cluster, std::size_t configurations, sim::report const& r) {
    auto const resources = cluster.size() + cluster.links().size() + 1;
    if (r.tasks.resources != resources && r.tasks.resources != resources + 2 * cluster.size())
        throw invalid_input("a simulation on ", r.tasks.resources, " devices, links and barriers: the cluster has ", resources,
                            ", must be the same cluster");
    if (configurations != g.size())
        throw invalid_input("a strategy of ", configurations, " configurations: the graph has ", g.size(), " operators, must be one each");
    if (!r.runs.empty() && r.runs.size() != r.tasks.size())
        throw invalid_input("a simulation of ", r.tasks.size(), " tasks has ", r.runs.size(), " runs: must be one each, or none");
    if (r.carried.size() != r.tasks.size() || r.schedule.start.size() != r.tasks.size() || r.schedule.end.size() != r.tasks.size())
        throw invalid_input("a simulation of ", r.tasks.size(), " tasks has ", r.schedule.start.size(), " start times and ", r.carried.size(),
                            " payloads: must be one each");
    for (auto const& who : r.tasks.label)
        if (who.op >= g.size() || (who.edge != sim::task_label::no_edge && who.edge >= g.edges.size()))
            throw invalid_input("a simulation of operator ", who.op, ": the graph has ", g.size(), " operators, must be the same graph");
}

/// The tasks that take time, row by row.
struct shown_tasks {
    static constexpr std::uint32_t left_out = ~std::uint32_t{0};

    std::vector<std::uint32_t> tasks{};  ///< by row, then by start
    std::vector<std::size_t> first{0};   ///< of row n: tasks[first[n] ... first[n + 1])
    std::vector<std::uint32_t> row_of{}; ///< of each device and link: the row that shows what it does, or `left_out`

    [[nodiscard]] std::uint32_t rows() const noexcept { return static_cast<std::uint32_t>(first.size() - 1); }
    /// Devices and links that have no row.
    [[nodiscard]] std::size_t missing() const noexcept { return static_cast<std::size_t>(std::count(row_of.begin(), row_of.end(), left_out)); }
};

/// The rows of what `r` simulated: one for each device and link, in the order of their numbers. Where `fold` is set, those that do the same at the
/// same times, but for numbers of shards and messages, have one row. Rows are left out from where there would be more than `most` tasks. Complexity:
/// linear but for sorting.
[[nodiscard]] inline shown_tasks tasks_to_show(sim::report const& r, bool fold, std::size_t most = ~std::size_t{0}) {
    auto const all = sim::tasks_by_resource(r.tasks, r.schedule);
    auto const work = [&](std::uint32_t t) {
        auto const& who = r.tasks.label[t];
        auto const& carried = r.carried[t];
        auto const run = r.run_of(t);
        return std::tuple(r.schedule.start[t], r.schedule.end[t], r.tasks.kind[t], who.op, who.edge, who.traffic, run.micro_batch, run.part,
                          carried.bytes, carried.devices);
    };
    shown_tasks out;
    std::multimap<std::uint64_t, std::uint32_t> known; // rows by a hash of what they do
    std::vector<std::uint32_t> row;
    for (std::uint32_t resource = 0; resource + 1 < r.tasks.resources; ++resource) {
        row.clear();
        std::uint64_t hash = 0;
        for (auto const t : all.of(resource)) {
            if (r.schedule.end[t] == r.schedule.start[t]) continue;
            row.push_back(t);
            hash = (hash ^ static_cast<std::uint64_t>(r.schedule.start[t])) * 0x9e3779b97f4a7c15U + r.tasks.label[t].op;
        }
        auto const same = [&](auto const& other) {
            auto const begin = out.tasks.begin() + static_cast<std::ptrdiff_t>(out.first[other.second]),
                       end = out.tasks.begin() + static_cast<std::ptrdiff_t>(out.first[other.second + 1]);
            return std::equal(begin, end, row.begin(), row.end(), [&](auto a, auto b) { return work(a) == work(b); });
        };
        auto const [from, to] = known.equal_range(hash);
        if (auto const at = std::find_if(from, to, same); at != to) {
            out.row_of.push_back(at->second);
        } else if (row.size() > most - out.tasks.size()) {
            out.row_of.push_back(shown_tasks::left_out);
        } else {
            out.row_of.push_back(out.rows());
            if (fold) known.emplace(hash, out.rows());
            out.tasks.insert(out.tasks.end(), row.begin(), row.end());
            out.first.push_back(out.tasks.size());
        }
    }
    return out;
}

} // namespace parsearch::io
