#pragma once
/// The delta simulator: an `IncrementalEvaluator` with the answers of `simulator`, which redoes only what a change touches.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/bounds/strategy_bounds.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::sim {

struct iteration_plan;

/// Options of `delta_simulator`: the answers do not depend on them.
struct delta_options {
    /// How much the blocks of configurations that are not current may take before they are forgotten.
    std::size_t cache_bytes = std::size_t{1} << 30;
    bool fold = true;       ///< simulate one node where a strategy treats all alike
    std::stop_token stop{}; ///< once it is requested, what prices or bounds strategies throws `interrupted`
};

/// Prices changes to a current strategy, equal to the full simulation in every task's ready, start and end. See docs/simulation.md.
/// One simulator serves one thread; copies are independent and start with an empty cache.
class delta_simulator {
  public:
    explicit delta_simulator(std::shared_ptr<workload const> w, delta_options const& options = {});
    delta_simulator(delta_simulator const& other);
    delta_simulator& operator=(delta_simulator const& other);
    delta_simulator(delta_simulator&&) noexcept;
    delta_simulator& operator=(delta_simulator&&) noexcept;
    ~delta_simulator();

    /// Makes `s` current and answers its cost, as `simulator` does.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    template <Strategy<space::configuration> S> picoseconds reset(S const& s) { return reset_flat(space::flat(s, work_->graph.size())); }
    /// The cost of `s`; the current strategy stays. Where there is none, `s` becomes current. Throws as `reset` does, and while a proposal is open.
    template <Strategy<space::configuration> S> picoseconds operator()(S const& s) { return cost(space::flat(s, work_->graph.size())); }

    /// The cost with `changes`, one after the other, applied to the current strategy, or nothing where it is above `bound`: the
    /// simulation stops as soon as that is certain. Throws as `reset` does, and leaves the current strategy; also where there is none.
    /// Each proposal is ended by one `commit` or `roll_back`: a second `propose` before that, and a `commit` without a proposal, throw
    /// `invalid_input` and change nothing.
    std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound);
    /// The same of one operator.
    std::optional<picoseconds> propose(std::size_t op, space::configuration const& c, picoseconds bound);
    /// Keeps the last proposal. Complexity: of the tasks that were scheduled. Throws what the oracle throws only where the proposal was over its
    /// bound.
    void commit();
    /// Drops the last proposal. Complexity: of what it replaced.
    void roll_back() noexcept;

    /// Of the current strategy: its tasks, when they run, memory by device, and bytes moved in one iteration by `traffic_kind`.
    /// Made on the first call after a change. Precondition: there is a current strategy and no open proposal.
    [[nodiscard]] task_graph const& tasks();
    [[nodiscard]] sim::schedule const& schedule();
    [[nodiscard]] std::vector<memory_use> const& memory();
    [[nodiscard]] std::array<double, traffic_kinds> traffic();
    [[nodiscard]] iteration_plan const& plan(); ///< see sim/task/assemble.hpp
    [[nodiscard]] workload const& input() const noexcept { return *work_; }

    /// Lower bounds on all strategies of `space` that extend a partial one. Makes tables: O(pairs of configurations at the edges).
    template <ConfigurationSpace X> [[nodiscard]] strategy_bounds bounds(X const& space) const { return {work_, space, table_limits{.stop = stop_}}; }

    /// Tasks that are scheduled for the current strategy: fewer than it has where nodes are folded into one.
    [[nodiscard]] std::uint64_t scheduled_tasks() const noexcept;
    /// Simulates the current strategy once more without any help from what is known, for measurements. Answers the makespan; drops what was
    /// proposed.
    picoseconds simulate_whole();

  private:
    picoseconds reset_flat(space::flat_strategy const& s);
    picoseconds cost(space::flat_strategy const& s);

    class body;
    std::shared_ptr<workload const> work_;
    std::stop_token stop_;
    std::unique_ptr<body> body_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta_simulator.ipp>
#endif
