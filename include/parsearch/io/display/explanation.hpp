#pragma once
/// Why an operator has the configuration that it has in a plan: what the plan would cost with others.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::io {

/// How much is told.
struct explain_options {
    std::size_t listed = 12;   ///< splits, the cheapest
    std::size_t priced = 1000; ///< configurations, at most
    std::stop_token price{};   ///< once it is requested, no more are priced
    std::stop_token stop{};    ///< once it is requested, no more are told of those priced
};

/// The figures of a plan with one change.
struct changed_plan {
    picoseconds time{};       ///< of an iteration
    picoseconds cost{};       ///< what searches minimise: the time, and the penalty for memory that is missing
    double moved = 0;         ///< bytes between devices in one iteration
    fullest_device fullest{}; ///< and whether all devices hold what they must
};

/// A configuration that an operator may have.
struct operator_option {
    space::configuration configuration{};
    changed_plan alone{};                ///< the plan where only this operator has it
    std::optional<changed_plan> alike{}; ///< where all of `explanation::alike` have it, if they are several and may
    picoseconds forward{}, backward{};   ///< a shard on the slowest of its devices
};

/// How many of the changes that were priced cost less than the plan, and how many as much.
struct change_counts {
    std::size_t less = 0, same = 0;
    friend bool operator==(change_counts const&, change_counts const&) = default;
};

/// An operator's configuration in a plan, and others that it may have on the devices of its stage.
struct explanation {
    std::size_t op = 0;
    std::vector<std::size_t> alike{};      ///< those of its line in a listing that have equal dims, itself among them, ascending
    operator_option chosen{};              ///< the plan's
    std::vector<operator_option> others{}; ///< of each split the placement that costs least, alone or in all alike; the cheapest first
    std::size_t configurations = 0;        ///< that the operator may have beside the plan's
    std::size_t splits = 0;                ///< that these have
    std::size_t priced = 0;                ///< of the configurations
    change_counts alone{}, together{};     ///< of those priced: changed in this operator alone, and in all alike
};

namespace detail {

/// Configurations of an operator that may be the cheapest, by number in its space.
struct candidate_list {
    std::vector<std::uint32_t> numbers; ///< the likely ones first, then of each split the first placement, the second and so on, fast shards first
    std::size_t all = 0, splits = 0;    ///< configurations and splits, also of those left out
};

/// At most `most`, on `devices`, without the plan's. Stops early once `stop` is requested.
[[nodiscard]] candidate_list candidates_of(parallelization const& part, pipeline::pipeline_plan const& plan, std::size_t op, std::size_t most,
                                           std::stop_token const& stop);

} // namespace detail

/// Why operator number `op` has its configuration in `plan` of `problem`: what the plan costs where it has others, alone or with all that are alike.
/// Configurations of the space on the devices of its stage are priced, by the delta simulator where the plan is plain, by that of pipelines where
/// not. Throws `invalid_input` where `op` is no operator with tasks or the plan is not of the problem, and `interrupted` where the plan itself is not
/// simulated before `options.stop` is requested. Complexity: two evaluations for each configuration priced, two simulations for each told.
[[nodiscard]] explanation explain(parallelization const& problem, pipeline::pipeline_plan const& plan, std::size_t op,
                                  explain_options const& options = {});

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/explanation.ipp>
#endif
