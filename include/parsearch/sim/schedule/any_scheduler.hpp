#pragma once
/// The schedule of a task graph under any transfer model.

#include <cstdint>
#include <limits>
#include <stop_token>
#include <utility>

#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/fair_sharing.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

/// Simulates task graphs that an `assembler` made for a topology; keeps its buffers from one to the next.
class any_scheduler {
  public:
    any_scheduler(topology::dense_topology const& t, simulation_options const& options)
        : order_(options.discipline), shares_(options.transfers == transfer_model::fair_sharing), fair_(t.size(), t.links) {}

    /// From now on runs throw `interrupted` once `stop` is requested.
    void stop_at(std::stop_token stop) noexcept {
        fair_.stop_at(stop);
        queued_.stop_at(std::move(stop));
    }

    /// False, with `out` unfinished, as soon as the makespan is sure to be above `bound`: see `scheduler` and `fair_scheduler`.
    bool run(task_graph const& g, schedule& out, std::int64_t bound = std::numeric_limits<std::int64_t>::max()) {
        return shares_ ? fair_.run(g, order_, out, bound) : queued_.run(g, order_, out, bound);
    }

  private:
    discipline order_;
    bool shares_;
    scheduler queued_;
    fair_scheduler fair_;
};

} // namespace parsearch::sim
