#pragma once
/// What a simulation tells: timeline, utilisation, critical path, traffic, memory.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/payload.hpp>

namespace parsearch::sim {

/// What a task of a plan with micro-batches is, beside what its kind and label say.
enum class task_part : std::uint8_t {
    whole,            ///< nothing else
    again,            ///< forward that is computed once more, ahead of its backward
    of_block,         ///< moves the weights of the whole block that the operator of its label begins
    weight_gradients, ///< of a backward pass that is cut in two, the gradients of weights; `whole` is the rest then
    to_host,          ///< copies what the segment that begins with the operator of its label keeps to the host of the device of its number
    from_host         ///< copies it back
};
/// "again", as it stands behind a task's name; "" of what is whole.
[[nodiscard]] constexpr std::string_view spoken(task_part p) noexcept {
    constexpr std::array<std::string_view, 6> words{"", "again", "of its block", "of weights", "to host", "from host"};
    return words[static_cast<std::size_t>(p)];
}

/// Which of the runs of its work a task of a plan with micro-batches is.
struct task_run {
    static constexpr std::uint32_t once = ~std::uint32_t{0};

    std::uint32_t micro_batch = once; ///< once: for all of them together, as updates are
    task_part part = task_part::whole;
    friend bool operator==(task_run const&, task_run const&) = default;
};

/// The simulation of one strategy, or of a plan.
struct report {
    picoseconds makespan{};
    task_graph tasks;
    sim::schedule schedule;
    std::vector<payload> carried;                ///< by task: bytes and collective of what moves
    std::vector<double> utilisation;             ///< busy share of the makespan, by resource
    std::vector<std::uint32_t> critical_path;    ///< tasks, first to last, each starting when the one before ends
    std::array<double, traffic_kinds> traffic{}; ///< bytes moved between devices in one iteration, by `traffic_kind`
    std::vector<memory_use> memory;              ///< by device
    std::vector<task_run> runs;                  ///< by task; empty: of a strategy, without micro-batches

    /// Bytes on the fullest device.
    [[nodiscard]] byte_count peak_memory() const noexcept {
        byte_count most = 0;
        for (auto const& m : memory) most = std::max(most, m.total());
        return most;
    }
    [[nodiscard]] task_run run_of(std::uint32_t task) const noexcept { return runs.empty() ? task_run{} : runs[task]; }
    /// The share of the makespan in which the devices that compute anything, on average, compute nothing; what is computed again counts as work.
    [[nodiscard]] double idle_share() const noexcept;
    /// Bytes moved between devices in one iteration.
    [[nodiscard]] double bytes_moved() const noexcept {
        double sum = 0;
        for (auto const b : traffic) sum += b;
        return sum;
    }
};

/// Tasks by resource.
struct resource_tasks {
    std::vector<std::uint32_t> tasks; ///< by resource, then by start, end and number
    std::vector<std::size_t> first;   ///< of resource r: tasks[first[r] ... first[r + 1])

    [[nodiscard]] std::span<std::uint32_t const> of(std::uint32_t resource) const noexcept {
        return std::span(tasks).subspan(first[resource], first[resource + 1] - first[resource]);
    }
};
/// Complexity: O(n log n) in the tasks of a resource that are not launched in their order, else linear.
[[nodiscard]] resource_tasks tasks_by_resource(task_graph const& g, schedule const& s);

/// Busy share of the makespan of each resource; 0 where the makespan is 0.
[[nodiscard]] std::vector<double> utilisation_of(task_graph const& g, schedule const& s);

/// A chain of tasks without a gap from time 0 to the makespan: each starts when the one before it in the chain ends (under `cut_through`, when its
/// head has left), be that a task it waits for or the one before on its resource; under `fair_sharing`, its latency later. Dependencies come first
/// where both end then, and smaller numbers.
[[nodiscard]] std::vector<std::uint32_t> critical_path_of(task_graph const& g, schedule const& s);

/// Simulates `s` with `simulator` and copies everything out. A strategy that does not fit the memory is simulated all the same.
template <class Simulator, class S> [[nodiscard]] report make_report(Simulator& simulator, S const& s) {
    report r;
    r.makespan = simulator.simulate(s);
    r.tasks = simulator.tasks();
    r.schedule = simulator.schedule();
    r.carried = payloads(simulator.plan(), simulator.input().graph, r.tasks, simulator.input().options);
    r.utilisation = utilisation_of(r.tasks, r.schedule);
    r.critical_path = critical_path_of(r.tasks, r.schedule);
    r.traffic = simulator.traffic();
    r.memory = simulator.memory();
    return r;
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/report.ipp>
#endif
