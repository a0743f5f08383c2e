#pragma once
/// A lower bound on all plans: with any number of micro-batches and stages, whatever is shared, computed again or offloaded.

#include <cstdint>
#include <stop_token>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/task/planner.hpp>

namespace parsearch::pipeline {

/// No plan of `problem` that `options` allow, whose operators are split as the space lets them be, has a smaller makespan, and so none costs less.
///
/// Of n micro-batches each runs every operator forward and backward, on whatever devices. A device does one task at a time, so all devices together
/// are busy for n times the work of one micro-batch, and the one that is busy longest for its share of that. No operator of a micro-batch is less
/// work than in the combination of degrees in which it is least, on the kind of device that is fastest (`sim::least_work`). Nothing that a plan may
/// choose beside takes from this: recomputation adds tasks, and so do copies to hosts; orders that cut backward divide its time into two parts of the
/// same sum; stages, launch orders and placements say where and when; sharded states change updates and messages, which are not counted. So the least
/// of all n bounds all plans. Of costs nothing is assumed: each n is asked of the oracle, as less work at once need not take longer in all.
///
/// Complexity: that of a problem and of `sim::work_bound` for each n. Throws what the oracle throws, and `interrupted` once `stop` is requested.
[[nodiscard]] picoseconds plan_bound(parallelization const& problem, partition_options const& options = {}, std::stop_token const& stop = {});

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_bound.ipp>
#endif
