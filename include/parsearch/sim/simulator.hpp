#pragma once
/// The full simulator: an `Evaluator` that predicts the time of one training iteration under a strategy from the whole task graph.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::sim {

struct iteration_plan;
struct shard_memory;

/// Predicts the iteration time of strategies for one workload. Callable with any `Strategy` of `space::configuration`.
/// The task graph of another strategy is assembled and scheduled anew: this is the definition that `delta_simulator` is held to. Operators whose
/// configuration did not change since the last call keep their plans, and where none did the task graph stays; the answer depends on the strategy
/// alone.
/// One simulator serves one thread; copies are independent.
class simulator {
  public:
    /// Every call throws `interrupted` once `stop` is requested.
    explicit simulator(std::shared_ptr<workload const> w, std::stop_token const& stop = {});
    simulator(simulator const& other);
    simulator& operator=(simulator const& other);
    simulator(simulator&&) noexcept;
    simulator& operator=(simulator&&) noexcept;
    ~simulator();

    /// The cost of `s`: the makespan, with what `simulation_options::memory` says of devices whose memory is exceeded.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    template <Strategy<space::configuration> S> picoseconds operator()(S const& s) { return cost(space::flat(s, work_->graph.size())); }

    /// The makespan of `s` whatever memory it needs, for the readers below.
    template <Strategy<space::configuration> S> picoseconds simulate(S const& s) { return simulate_flat(space::flat(s, work_->graph.size())); }
    /// The tasks of `s` and its memory, not scheduled: `schedule` stays what it was. `parts`: a number for each operator; those of different parts
    /// receive a tensor that they read alike each for itself; empty: all are of one. Throws as a call does, and where there is another number of
    /// them.
    template <Strategy<space::configuration> S> task_graph const& assemble(S const& s, std::span<std::uint32_t const> parts = {}) {
        return assemble_flat(space::flat(s, work_->graph.size()), parts);
    }
    /// How many task graphs were made: while that stays, `tasks` does.
    [[nodiscard]] std::uint64_t assembled() const noexcept;
    /// The plan of `s` alone: what the other readers tell stays what it was. Throws as a call does.
    template <Strategy<space::configuration> S> iteration_plan const& plan(S const& s) { return plan_flat(space::flat(s, work_->graph.size())); }

    /// Of the last strategy simulated: its tasks, when they ran, memory by device, and bytes moved in one iteration by `traffic_kind`.
    [[nodiscard]] task_graph const& tasks() const noexcept;
    [[nodiscard]] sim::schedule const& schedule() const noexcept;
    [[nodiscard]] std::vector<memory_use> const& memory() const noexcept;
    [[nodiscard]] std::array<double, traffic_kinds> traffic() const noexcept;
    [[nodiscard]] iteration_plan const& plan() const noexcept;              ///< what `tasks` is made of: see sim/task/assemble.hpp
    [[nodiscard]] std::vector<shard_memory> const& shards() const noexcept; ///< what a shard of each operator takes: `plan`'s
    [[nodiscard]] workload const& input() const noexcept { return *work_; }

  private:
    picoseconds cost(space::flat_strategy const& s);
    picoseconds simulate_flat(space::flat_strategy const& s);
    task_graph const& assemble_flat(space::flat_strategy const& s, std::span<std::uint32_t const> parts);
    iteration_plan const& plan_flat(space::flat_strategy const& s);

    class body;
    std::shared_ptr<workload const> work_;
    std::unique_ptr<body> body_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/simulator.ipp>
#endif
