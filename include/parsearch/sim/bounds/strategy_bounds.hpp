#pragma once
/// Lower bounds on the cost of all strategies that extend a partial one: what makes `delta_simulator` a `BoundedEvaluator`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/bounds/choice_source.hpp>
#include <parsearch/sim/input/workload.hpp>

namespace parsearch::sim {

/// Some operators are fixed, each to a configuration of its space by number; `value()` is at most the cost of every strategy of the space that
/// has these. Of the strategies with a fixed part it counts: the critical path, with the least that undecided operators add to it
/// (`remaining_paths`); for every device and link its work, each task not before its data are there; all work over all devices; memory.
/// Holds for both disciplines, every movement and synchronisation, as it counts dependences and work, not queues. See docs/simulation.md.
///
/// The bounds are strongest where operators are fixed in `order()`, which is topological. One object serves one thread.
class strategy_bounds {
  public:
    /// Over any `ConfigurationSpace` of `space::configuration`. Throws `invalid_input` where a configuration of the space does not fit, and what the
    /// oracle throws.
    strategy_bounds(std::shared_ptr<workload const> w, choice_source const& space, table_limits const& limits = {});
    strategy_bounds(strategy_bounds&&) noexcept;
    strategy_bounds& operator=(strategy_bounds&&) noexcept;
    ~strategy_bounds();

    /// Operators in the order in which to fix them.
    [[nodiscard]] std::vector<std::uint32_t> const& order() const noexcept { return work_->graph.order; }

    /// Operator `op`, which is not fixed, takes configuration number `choice` of its space.
    /// Complexity: O(edges of the operator * shards^2); more where a sharing class is complete that was not met before.
    void fix(std::size_t op, std::size_t choice);
    /// Takes back the last `fix`, which was of `op`.
    void release(std::size_t op);
    /// No completion costs less. Complexity: O(fixed operators and edges between them * shards^2 + T log T) for T tasks of these.
    [[nodiscard]] picoseconds value();

  private:
    class body;
    std::shared_ptr<workload const> work_;
    std::unique_ptr<body> body_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/bounds/strategy_bounds.ipp>
#endif
