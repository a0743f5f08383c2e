#pragma once
/// Samples divided as devices are fast.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

/// Gives the dims of samples of `g` shares for the devices of `t`: those of some rounds under which the slowest device is fastest, all operators
/// together, in data parallelism, by `oracle`, which counts devices as `t`. None where all devices are of one kind, and for operators whose samples
/// are no consecutive parts. Complexity: O(operators * kinds of devices) calls of the oracle, some times.
void balance_samples(graph::dense_graph& g, topology::dense_topology const& t, cost::any_oracle const& oracle, bool training);

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/input/balance.ipp>
#endif
