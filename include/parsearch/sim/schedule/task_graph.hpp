#pragma once
/// The task graph: what runs on which resource for how long, and what waits for what.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::sim {

/// What a task does.
enum class task_kind : std::uint8_t {
    forward,
    backward,
    update,     ///< computation on a device
    transfer,   ///< part of a point-to-point message: one link of its route
    collective, ///< part of a collective: one link of its rings
    barrier     ///< no time, no device: joins many to many
};
[[nodiscard]] constexpr std::string_view name_of(task_kind k) noexcept {
    constexpr std::array<std::string_view, 6> names{"forward", "backward", "update", "transfer", "collective", "barrier"};
    return names[static_cast<std::size_t>(k)];
}

/// Why bytes move.
enum class traffic_kind : std::uint8_t { activation, gradient, partial_sum, weight_gradient };
inline constexpr std::size_t traffic_kinds = 4;
[[nodiscard]] constexpr std::string_view name_of(traffic_kind k) noexcept {
    constexpr std::array<std::string_view, traffic_kinds> names{"activation", "gradient", "partial_sum", "weight_gradient"};
    return names[static_cast<std::size_t>(k)];
}

/// What a task belongs to, for reports. `sim/task/payload.hpp` tells the bytes and the collective.
struct task_label {
    static constexpr std::uint32_t no_edge = ~std::uint32_t{0};

    std::uint32_t op = 0;         ///< operator; for what moves along an edge, the one that receives
    std::uint32_t number = 0;     ///< shard; message or collective, counted per edge; group or holder of weights
    std::uint32_t edge = no_edge; ///< of the graph, along which data move; none: weights, or sums that nobody reads
    traffic_kind traffic{};       ///< why data move; of no matter for computation
};

/// How a task on a link belongs with others: see `transfer_model`.
struct task_tie {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::uint32_t task = none; ///< cut_through: that whose head it also waits for; fair_sharing: the first of those that flow together
    std::int64_t latency = 0;  ///< in picoseconds; cut_through: from its start until its head leaves; fair_sharing: from ready until it flows
    friend bool operator==(task_tie const&, task_tie const&) = default;
};

/// Tasks in arrays. A task's number is its key: predecessors have smaller numbers, and ties are decided by it.
/// Resources are numbered: devices first, then links, then of plans that offload activations each device's way to its host and that back, and last
/// one for all barriers.
class task_graph {
  public:
    std::vector<std::uint32_t> resource;
    std::vector<std::int64_t> duration; ///< picoseconds
    std::vector<task_kind> kind;
    std::vector<task_label> label;
    std::vector<std::uint32_t> predecessors;      ///< of all tasks, in task order
    std::vector<std::uint32_t> first_predecessor; ///< of task t: predecessors[first_predecessor[t] ... first_predecessor[t + 1])
    std::vector<task_tie> ties;                   ///< by task, under `cut_through` and `fair_sharing`; else empty
    std::uint32_t resources = 0;

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(resource.size()); }
    [[nodiscard]] std::span<std::uint32_t const> before(std::uint32_t task) const noexcept {
        return std::span(predecessors).subspan(first_predecessor[task], first_predecessor[task + 1] - first_predecessor[task]);
    }

    /// Empties the graph, keeping its memory.
    void clear(std::uint32_t resource_count);

    /// Predecessor of the task that the next `add` makes. Precondition: `task` exists.
    void after(std::uint32_t task) { predecessors.push_back(task); }

    /// Adds a task with the predecessors named since the last one. Returns its number.
    std::uint32_t add(std::uint32_t on, std::int64_t picoseconds, task_kind what, task_label who);
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/schedule/task_graph.ipp>
#endif
