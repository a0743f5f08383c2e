#pragma once
// What plans with micro-batches and stages may be, and how long `partition` looks for them.

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void validate(partition_options const& o) {
    search::require_budget(search::budget_of(o), "partition");
    auto const positive = [](std::uint64_t value, std::string_view name) {
        if (value < 1) throw invalid_input("partition: option '", name, "' is 0: must be at least 1");
    };
    positive(o.max_stages, "max_stages");
    positive(o.max_micro_batches, "max_micro_batches");
    positive(o.max_interleaved, "max_interleaved");
    positive(o.beam, "beam");
}

PARSEARCH_INLINE picoseconds with_surcharge(partition_options const& o, pipeline_plan const& plan, picoseconds cost) {
    if (!o.surcharge || cost == cost_traits<picoseconds>::infinity()) return cost;
    auto const more = o.surcharge(plan, {});
    if (more < picoseconds::zero()) throw invalid_input("partition: option 'surcharge' answers ", more.count(), " ps: must not be negative");
    return sim::total_cost(cost, more);
}

PARSEARCH_INLINE bool plan_rules::may_shard(sharded_states states, std::size_t group, bool within_nodes) const noexcept {
    if (states == sharded_states::none) return true;
    if (!may_shard() || group * simulation_->replicas == 1 || (states >= sharded_states::gradients && !simulation_->overlap)) return false;
    if (states == sharded_states::parameters_within_nodes) return options_->sharded_parameters && options_->sharded_within_nodes && within_nodes;
    return states == sharded_states::gradients ? options_->sharded_gradients : states < sharded_states::gradients || options_->sharded_parameters;
}

} // namespace parsearch::pipeline
