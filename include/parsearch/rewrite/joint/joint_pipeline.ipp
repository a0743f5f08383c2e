#pragma once
// Joint search and pipelines: which operators compute a network, how each is parallelized, and the stages and micro-batches in which they run.

#include <parsearch/rewrite/joint/joint_pipeline.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE search::verdict relay::operator()(search::improved<picoseconds> event) {
    if (!(event.cost < best_)) return go_on();
    event.evaluation += done_;
    event.before = std::exchange(best_, event.cost);
    ++improved_;
    return told(to_(event));
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::optional<pipeline::partition_options> left_of(pipeline::partition_options o, search_stats const& used, picoseconds bound) {
    o.bound = std::min(o.bound.value_or(bound), bound);
    if (o.evaluations) *o.evaluations -= std::min(*o.evaluations, used.evaluations);
    if (o.time) *o.time -= std::min(*o.time, std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(used.seconds)));
    if (o.evaluations == 0) return {};
    return o;
}

PARSEARCH_INLINE joint_plan joint_pipeline_fn::in_own_numbers(joint_plan plan, parallelization const& problem) {
    auto const& g = problem.graph();
    bool same = plan.strategy.size() == g.size();
    for (std::size_t k = 0; k < g.size() && same; ++k) same = plan.operators.operations[k].dims == g.operations[g.order[k]].dims;
    auto strategy = problem.space().nearest(data_parallel(problem));
    for (std::size_t k = 0; k < g.size() && same; ++k) strategy[g.order[k]] = plan.strategy[k];
    plan.operators = g;
    plan.strategy = std::move(strategy);
    return plan;
}

} // namespace parsearch::rewrite
