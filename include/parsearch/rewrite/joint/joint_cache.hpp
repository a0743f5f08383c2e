#pragma once
/// What the joint search remembers from one invocation to the next.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::rewrite {

/// The tables of terms that graphs were priced and mapped by, for any number of joint searches: of other networks and rules, on one topology with one
/// oracle, options of simulation, of the space and of pricing. A search finds the same with a cache that others have filled as with one of its own.
/// Not for several threads at once.
class joint_cache {
  public:
    using pricer_type = graph_pricer;

    /// For searches on problems like `problem`. Where no memory limit is given and the problem does not ignore memory, it is that of the smallest
    /// device. Throws `invalid_input` on options out of range.
    explicit joint_cache(parallelization const& problem, graph_pricer_options options = {})
        : base_(problem.workload()), all_(base_, problem.space().options(), limited(*base_, options)),
          one_(alone(*base_), problem.space().options(), unlimited(options)) {}

    /// Prices on all devices, and on the first alone.
    [[nodiscard]] pricer_type& all() noexcept { return all_; }
    [[nodiscard]] pricer_type& one() noexcept { return one_; }
    /// How many tables were made so far.
    [[nodiscard]] std::uint64_t tables_made() const noexcept { return all_.tables_made() + one_.tables_made(); }

    /// Throws `invalid_input` where `problem` has another topology or other options of simulation than the problem for which this was made. That
    /// oracles are equal is a precondition.
    void require_like(parallelization const& problem) const;

  private:
    static graph_pricer_options limited(sim::workload const& w, graph_pricer_options options) {
        if (!options.memory_limit && w.options.memory != sim::memory_policy::ignore)
            options.memory_limit = std::max<byte_count>(1, std::ranges::min_element(w.topology.devices, {}, &device_description::memory)->memory);
        return options;
    }
    static graph_pricer_options unlimited(graph_pricer_options options) {
        options.memory_limit.reset();
        return options;
    }
    static std::shared_ptr<sim::workload const> alone(sim::workload const& w) {
        topology::dense_topology one{.devices = {w.topology.devices[0]}, .kind = {0}, .node = {0}, .links = {}};
        return sim::make_workload(w.graph, std::move(one), w.oracle, w.options);
    }

    std::shared_ptr<sim::workload const> base_;
    pricer_type all_, one_;
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/joint_cache.ipp>
#endif
