#pragma once
/// A lower bound for spaces of any size: the least work of all operators, spread evenly over the devices.

#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::sim {

/// The time that operator `op` takes of all devices together under `c`, forward and backward, on the kind of device that is fastest. Throws what the
/// oracle throws.
[[nodiscard]] std::int64_t work_of(planner& p, std::uint32_t op, space::configuration const& c);

/// Of each operator, the first that is priced and planned as it is: with its space, operation and gradients. Complexity: operators, times the
/// different ones among those with their space.
[[nodiscard]] std::vector<std::uint32_t> first_of_equal_work(graph::dense_graph const& g, space::strategy_space const& space);

/// Of each operator, `work_of` in the combination of degrees of `space` in which it is least; 0 of graph inputs. Complexity: O(combinations of
/// degrees of operators that differ * kinds of devices) calls of the oracle.
[[nodiscard]] std::vector<std::int64_t> least_work(planner& p, space::strategy_space const& space);

/// No strategy of `space` has a smaller makespan, wherever its shards are: a device does one task at a time, and no operator is less work than
/// `least_work`. Of weights, messages and dependences it knows nothing. Complexity: as `least_work`. Throws what the oracle throws.
[[nodiscard]] inline picoseconds work_bound(planner& p, space::strategy_space const& space) {
    std::int64_t sum = 0;
    for (auto const work : least_work(p, space)) sum = saturating_sum(sum, work);
    return picoseconds{sum / static_cast<std::int64_t>(p.input().topology.size())};
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/bounds/work_bound.ipp>
#endif
