#pragma once
/// Simulates any plan: a network as it is like a strategy, others as pipelines.

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::pipeline {

/// Simulates plans of one problem. Of a `plain` one it tells what `sim::simulator` does, whatever the transfers and however samples are balanced, of
/// others what `pipeline_simulator` does. One object serves one thread.
class plan_simulator {
  public:
    explicit plan_simulator(parallelization problem) : problem_(std::move(problem)) {}

    /// The makespan, whatever memory the plan needs. Throws as the simulators.
    picoseconds simulate(pipelining const& how, space::flat_strategy const& strategy);
    picoseconds simulate(pipeline_plan const& plan) { return simulate(plan.how, plan.strategy); }
    /// The makespan and the penalty: what searches minimise.
    [[nodiscard]] picoseconds operator()(pipeline_plan const& plan) {
        auto const makespan = simulate(plan);
        return sim::total_cost(makespan, penalty());
    }

    /// Of the last plan simulated, all of these. Precondition: there is one. `tasks` and `schedule` take the time of scheduling all tasks.
    [[nodiscard]] std::vector<sim::memory_use> const& memory() const noexcept { return plain_now_ ? plain_->memory() : staged_->memory(); }
    [[nodiscard]] std::array<double, sim::traffic_kinds> traffic() const { return plain_now_ ? plain_->traffic() : staged_->traffic(); }
    [[nodiscard]] sim::iteration_plan const& plan() const { return plain_now_ ? plain_->plan() : staged_->plan(); }
    [[nodiscard]] sim::task_graph const& tasks() { return plain_now_ ? plain_->tasks() : staged_->tasks(); }
    [[nodiscard]] sim::schedule const& schedule() { return plain_now_ ? plain_->schedule() : staged_->schedule(); }
    /// What memory that devices have not costs: see `sim::memory_cost`.
    [[nodiscard]] picoseconds penalty() const noexcept;
    /// Whether every device can hold what the plan needs of it, or memory is ignored.
    [[nodiscard]] bool fits() const noexcept;

  private:
    parallelization problem_;
    std::optional<sim::simulator> plain_;
    std::optional<pipeline_simulator> staged_;
    bool plain_now_ = true;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_simulator.ipp>
#endif
