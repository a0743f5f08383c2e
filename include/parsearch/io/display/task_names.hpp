#pragma once
/// What people call the tasks of a simulation, and the devices and links they run on.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

/// "all-reduce": the name of a collective in prose.
[[nodiscard]] std::string spoken(std::string_view name);

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
[[nodiscard]] std::string path_of(graph::dense_graph const& g, sim::task_label const& who);

/// True for a message that brings weights back from the device that updated them.
[[nodiscard]] inline bool returns_weights(sim::task_graph const& tasks, std::uint32_t t) noexcept {
    auto const before = tasks.before(t);
    return tasks.kind[t] == sim::task_kind::transfer && tasks.label[t].traffic == sim::traffic_kind::weight_gradient && !before.empty() &&
           tasks.kind[before.front()] == sim::task_kind::update;
}

/// What task `t` does, without its number among those alike: "fc1 forward", "fc1 forward again", "fc1 -> fc2 activations", "fc1 weight gradients,
/// all-reduce", "fc1 weights, all-gather of its block". What comes once per micro-batch has that of all of them.
[[nodiscard]] std::string name_of_task(graph::dense_graph const& g, sim::report const& r, std::uint32_t t);

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
[[nodiscard]] std::string name_of_resource(topology::cluster const& cluster, std::uint32_t resource);

/// Throws `invalid_input` where `r` is not of a graph of as many operators and a cluster of as many devices and links.
void require_report_of(graph::dense_graph const& g, topology::cluster const& cluster, std::size_t configurations, sim::report const& r);

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
[[nodiscard]] shown_tasks tasks_to_show(sim::report const& r, bool fold, std::size_t most = ~std::size_t{0});

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/task_names.ipp>
#endif
